// The vector unit at work on dest, within a section.
#pragma once

#include "lanes.h"
#include "slot.h"

namespace lanes {

// Once: the unit is set up, the address mode that loads and stores name leaves addresses alone, and all lanes take part.
inline void begin_kernel() {
    _llk_math_eltwise_unary_sfpu_init_once_();
    enable_conditions();
}

// What the matrix unit and the unpackers wrote to dest may be loaded, all lanes take part.
inline void begin() {
    math::set_dst_write_addr<DstTileShape::Tile32x32, UnpackDestination::SrcRegs>(0);
    TTI_STALLWAIT(p_stall::STALL_SFPU, p_stall::MATH);
    enable_conditions();
}

// What was stored may be used by others.
inline void end() {
    TTI_STALLWAIT(p_stall::STALL_MATH, p_stall::WAIT_SFPU);
    math::clear_dst_reg_addr();
}

// Calls `work(group, quarter)` for every slot of a tile.
template <typename Work>
inline void each_slot(Work work) {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        for (uint32_t quarter = 0; quarter < QUARTERS; ++quarter) {
            work(group, quarter);
        }
    }
}

}  // namespace lanes
