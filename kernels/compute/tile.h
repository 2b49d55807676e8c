// Tiles between L1 and dest. Both formats reach dest as they are: f32 with all of its bits.
#pragma once
#include "cells.h"
#include "rounding.h"
#include "scratch.h"

namespace compute {

// Purposes that threads are configured for (`reconfigure`): copies of a format are 1 + format, products above.
constexpr uint32_t COPY = 1;
constexpr uint32_t PRODUCT = 16;

// A tile in L1 to tile `index` of dest, within a section.
inline void load_tile(uint32_t address, uint32_t format, uint32_t index) {
    const uint32_t llk = llk_format(format);
    using ckernel::BroadcastType;
#ifdef TRISC_UNPACK
    constexpr auto NO_REUSE = ckernel::EltwiseBinaryReuseDestType::NONE;
    if (reconfigure(COPY + format)) {
        const uint32_t units = llk_bytes(lowered::tile_bytes(format));
        _llk_unpack_reconfig_data_format_srca_impl_<true, p_dim_stride_target::FACE_ROW_MAJOR>(llk, llk, units);
        _llk_unpack_A_init_<BroadcastType::NONE, false, NO_REUSE, true>(0, 0, ckernel::DEFAULT_TENSOR_SHAPE, llk, llk);
    }
    _llk_unpack_A_<BroadcastType::NONE, false, NO_REUSE, true>(llk_address(address), llk, llk);
#endif
#ifdef TRISC_MATH
    constexpr auto A2D = ckernel::DataCopyType::A2D;
    if (reconfigure(COPY + format)) {
        _llk_math_reconfig_data_format_srca_<true>(llk);
        _llk_math_eltwise_unary_datacopy_init_<A2D, true>(4, llk);
    }
    _llk_math_eltwise_unary_datacopy_<A2D, DstSync::SyncFull, true, BroadcastType::NONE, true>(index, llk, llk);
#endif
}

// Tile `index` of dest to a tile in L1, all of it; where that is bf16, the values in dest have to be rounded already
// (`round_tile_for`). Between `begin_packing` and `end_section`.
inline void store_tile(uint32_t index, uint32_t address, uint32_t format) {
#ifdef TRISC_PACK
    if (reconfigure(COPY + format)) {
        const uint32_t llk = llk_format(format);
        _llk_pack_reconfig_data_format_<true>(llk, llk, llk_bytes(lowered::tile_bytes(format)));
        _llk_pack_init_<ckernel::PackMode::Default>(llk, 16, 32, 4, 1, false);
    }
    _llk_pack_<DstSync::SyncFull, true>(index, llk_address(address));
#endif
}

#ifdef TRISC_PACK
// A tile of dest as one in scratch, for the pack thread to take cells from.
inline Block cells_of(uint32_t index, uint32_t format) {
    store_tile(index, scratch(CELLS), format);
    TTI_STALLWAIT(p_stall::STALL_THCON, p_stall::PACK);
    tensix_sync();
    memory::refresh();
    return {scratch(CELLS), format, 1};
}
#endif

// As `store_tile`, but only the cells of `part` of the tile in L1 change.
inline void store_part(uint32_t index, uint32_t address, uint32_t format, const Part& part) {
#ifdef TRISC_PACK
    if (is_whole(part)) {
        store_tile(index, address, format);
        return;
    }
    const Block from = cells_of(index, format);
    const Block to = {address, format, 1};
    for (uint32_t row = part.row; row < part.row + part.rows; ++row) {
        copy_row(from, row, part.column, to, row, part.column, part.columns);
    }
    memory::settle(to.value(part.row + part.rows - 1, part.column + part.columns - 1));
#endif
}

}  // namespace compute
