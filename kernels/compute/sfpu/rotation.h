// Rotary positions: pairs of tiles turned by angles.
#pragma once

#include "pass.h"
#include "round.h"
#include "slot.h"

namespace lanes {

// Tiles 0 and 1 of dest, (a, b), become `(a cos - b sin, b cos + a sin)` with the cosines in tile 2 and the sines in tile 3.
inline void rotate_halves(bool is_bf16) {
    each_slot([&](uint32_t group, uint32_t quarter) {
        const uint32_t a = slot(0, group, quarter);
        const uint32_t b = slot(1, group, quarter);
        load<L3>(a);
        load<L4>(b);
        load<L5>(slot(2, group, quarter));
        load<L6>(slot(3, group, quarter));
        multiply<L3, L5, L0>();
        multiply<L4, L6, L1>();
        subtract<L0, L1, L0>();
        if (is_bf16) {
            round_to_bf16();
        }
        store<L0>(a);
        multiply<L4, L5, L0>();
        multiply<L3, L6, L1>();
        add<L0, L1, L0>();
        if (is_bf16) {
            round_to_bf16();
        }
        store<L0>(b);
    });
}

}  // namespace lanes
