// Rounding to bf16.
#pragma once

#include "lanes.h"
#include "pass.h"
#include "slot.h"

namespace lanes {

// L0 = the bf16 nearest to L0, ties to even; uses L1 and L2. Not a number has to be what arithmetic gives: 0x7fc00000.
//
// The rounding instruction of the hardware takes ties away from zero and makes infinity of what is not a number.
inline void round_to_bf16() {
    settle();
    shift<L0, L1, -16>();
    set_bits<L2, 1>();
    bit_and<L2, L1>();
    add_integer<L1, L0>();
    set_bits<L2, 0x7fff>();
    add_integer<L2, L0>();
    set_bits<L2, 0xffff0000>();
    bit_and<L2, L0>();
}

// A tile of dest; whatever is not a number becomes 0x7fc00000 first.
inline void round_tile(uint32_t tile) {
    each_slot([&](uint32_t group, uint32_t quarter) {
        load<L0>(slot(tile, group, quarter));
        multiply<L0, ONE, L0>();
        round_to_bf16();
        store<L0>(slot(tile, group, quarter));
    });
}

}  // namespace lanes
