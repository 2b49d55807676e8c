// Attention: `out = softmax(scale q k^T) v` of one head, over blocks of bf16.
// Reads: rows `0 .. rows` of `q`, `0 .. keys` of `k` and `v`, in whole columns of tiles; what fills up the last column of
// tiles of `q` and `k` is zero, and rows of `v` behind the last key are numbers. Writes: rows `0 .. rows` of `out` in its
// first `head_dim` columns, nothing else.
//
// A row of tiles of queries at a time, in one stay in dest:
//
//     tile 0      scores of a tile of keys, then weights
//     tile 1      of every row the largest score and the sum of weights
//     tiles 2..   context, one for each 32 of head_dim
//
// Scores are computed twice, to find the largest ones and to weigh, which needs scratch for a single tile of weights.
#pragma once
#include "matmul.h"
#ifdef TRISC_MATH
#include "sfpu/softmax.h"
#endif

namespace compute {

constexpr uint32_t CONTEXT = 2;
// Where a tile of weights is put by, from FREE on.
constexpr uint32_t WEIGHTS_TILE = FREE;
static_assert(WEIGHTS_TILE + BF16_TILE == FREE + ATTENTION_BYTES);

// A purpose of its own behind those of products.
constexpr uint32_t TRANSPOSED_PRODUCT = PRODUCT + 3 * DEST_TILES;

// Tile 0 of dest += a tile at `x` times the transpose of one at `w`, both of bf16.
inline void multiply_transposed(uint32_t x, uint32_t w) {
    constexpr uint32_t bf16 = llk_format(lowered::BF16);
    constexpr uint32_t units = llk_bytes(BF16_TILE);
#ifdef TRISC_UNPACK
    if (reconfigure(TRANSPOSED_PRODUCT)) {
        constexpr auto ROW_MAJOR = p_dim_stride_target::FACE_ROW_MAJOR;
        _llk_unpack_reconfig_data_format_srca_impl_<true, ROW_MAJOR>(bf16, bf16, units);
        _llk_unpack_reconfig_data_format_srcb_impl_<true, ROW_MAJOR>(bf16, bf16, units);
        _llk_unpack_AB_matmul_init_(1, 1, 1, 1);
    }
    _llk_unpack_AB_matmul_(llk_address(x), llk_address(w), 0, 0, units, units, false, false, 1, 1, 1);
#endif
#ifdef TRISC_MATH
    if (reconfigure(TRANSPOSED_PRODUCT)) {
        _llk_math_reconfig_data_format_<true>(bf16, bf16);
        _llk_math_matmul_init_<fidelity(Exactness::AS_BUILT)>(32, 32, 32, 32, false, 1, 1, 1);
    }
    _llk_math_matmul_<fidelity(Exactness::AS_BUILT)>(0, 1, 1);
#endif
}

struct Head {
    Block q;
    Block k;
    Block v;
    Block out;
    uint32_t rows;
    uint32_t keys;
    uint32_t head_dim;
    uint32_t scale;
    uint32_t before;

    bool is_causal() const { return before != lowered::NONE; }
    uint32_t column_tiles() const { return lowered::tiles_of(head_dim); }

    // Tiles of keys that rows of a tile see.
    uint32_t key_tiles(uint32_t row_tile) const {
        const uint32_t last = row_tile * lowered::SIDE + lowered::SIDE;
        const uint32_t seen = is_causal() ? before + last : keys;
        return lowered::tiles_of(seen < keys ? seen : keys);
    }

#ifdef TRISC_MATH
    lanes::Sight sight(uint32_t row_tile, uint32_t key_tile) const {
        const int32_t left = key_tile * lowered::SIDE;
        const int32_t first_row_sees = static_cast<int32_t>(before + row_tile * lowered::SIDE + 1) - left;
        return {static_cast<int32_t>(keys) - left, is_causal(), first_row_sees};
    }
#endif
};

inline void score(const Head& head, uint32_t row_tile, uint32_t key_tile) {
    for (uint32_t column = 0; column < head.column_tiles(); ++column) {
        multiply_transposed(head.q.tile(row_tile, column), head.k.tile(key_tile, column));
    }
}

inline void find_largest(const Head& head, uint32_t row_tile) {
    for (uint32_t key_tile = 0; key_tile < head.key_tiles(row_tile); ++key_tile) {
        score(head, row_tile, key_tile);
#ifdef TRISC_MATH
        lanes::begin();
        lanes::find_largest(head.scale, head.sight(row_tile, key_tile), key_tile == 0);
        lanes::end();
#endif
    }
#ifdef TRISC_MATH
    lanes::begin();
    lanes::gather_largest();
    lanes::end();
#endif
}

// Weights from dest to scratch, where they are an operand; everything in dest stays.
inline void put_weights_by() {
    begin_packing();
    store_tile(0, scratch(WEIGHTS_TILE), lowered::BF16);
    PACK((_llk_pack_dest_section_done_<DstSync::SyncFull, true, false>()));
    await_results();
    begin_section();
}

inline void add_context(const Head& head, uint32_t row_tile) {
    for (uint32_t key_tile = 0; key_tile < head.key_tiles(row_tile); ++key_tile) {
        score(head, row_tile, key_tile);
#ifdef TRISC_MATH
        lanes::begin();
        lanes::weigh(head.scale, head.sight(row_tile, key_tile), key_tile == 0);
        lanes::end();
#endif
        put_weights_by();
        for (uint32_t column = 0; column < head.column_tiles(); ++column) {
            const uint32_t values = head.v.tile(key_tile, column);
            multiply<Exactness::AS_BUILT>(scratch(WEIGHTS_TILE), values, lowered::WEIGHTS_BF16, 1, CONTEXT + column);
        }
#ifdef TRISC_MATH
        lanes::begin();
        lanes::clear(lanes::SCORES);
        lanes::end();
#endif
    }
}

inline void finish_context(const Head& head, uint32_t row_tile) {
#ifdef TRISC_MATH
    lanes::begin();
    lanes::gather_totals();
    for (uint32_t column = 0; column < head.column_tiles(); ++column) {
        lanes::divide_by_totals(CONTEXT + column);
    }
    lanes::end();
#endif
    begin_packing();
    for (uint32_t column = 0; column < head.column_tiles(); ++column) {
        const uint32_t left = head.head_dim - column * lowered::SIDE;
        const Part part = rows_in_tile(row_tile, 0, head.rows, left < lowered::SIDE ? left : lowered::SIDE);
        store_part(CONTEXT + column, head.out.tile(row_tile, column), lowered::BF16, part);
    }
    end_section();
}

// False where dest or scratch is too small.
inline bool attention(lowered::Words words) {
    using lowered::Attention;
    const uint32_t row_tiles = words[Attention::row_tiles];
    const uint32_t key_tiles = words[Attention::key_tiles];
    const Head head = {
        block(words[Attention::q], lowered::BF16, row_tiles),
        block(words[Attention::k], lowered::BF16, key_tiles),
        block(words[Attention::v], lowered::BF16, key_tiles),
        block(words[Attention::out], lowered::BF16, row_tiles),
        words[Attention::rows],
        words[Attention::keys],
        words[Attention::head_dim],
        words[Attention::scale],
        words[Attention::before]};
    if (CONTEXT + head.column_tiles() > DEST_TILES || free_bytes() < ATTENTION_BYTES) {
        return false;
    }
    for (uint32_t row_tile = 0; row_tile < lowered::tiles_of(head.rows); ++row_tile) {
        begin_section();
        find_largest(head, row_tile);
        add_context(head, row_tile);
        finish_context(head, row_tile);
    }
    await_results();
    return true;
}

}  // namespace compute
