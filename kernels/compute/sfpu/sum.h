// Sums of tiles.
#pragma once

#include "pass.h"
#include "slot.h"

namespace lanes {

// Tile 1 of dest += factor * tile 0, where the product is rounded before it is added; the factor as bits of f32.
inline void add_scaled(uint32_t factor) {
    set<L4>(factor);
    each_slot([&](uint32_t group, uint32_t quarter) {
        load<L0>(slot(0, group, quarter));
        load<L1>(slot(1, group, quarter));
        multiply<L0, L4, L0>();
        add<L0, L1, L1>();
        store<L1>(slot(1, group, quarter));
    });
}

}  // namespace lanes
