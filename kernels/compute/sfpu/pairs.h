// Moments of rows as pairs of neighbouring values: eight pairs in a row of a face, the first of each in an even column.
#pragma once

#include "lanes.h"
#include "moments.h"
#include "slot.h"

namespace lanes {

// A slot holds one side of so many pairs.
constexpr uint32_t PAIRS_IN_SLOT = 32;
// From the slot of the first values of pairs to that of the second ones.
constexpr uint32_t OTHER_SIDE = 2;

inline uint32_t pair_slot(uint32_t tile, uint32_t number) { return tile * TILE_ROWS + number * 4; }

// Tile 0 of dest += tile 1, for so many pairs.
inline void add_pairs(uint32_t pairs) {
    for (uint32_t number = 0; number * PAIRS_IN_SLOT < pairs; ++number) {
        for (uint32_t side = 0; side <= OTHER_SIDE; side += OTHER_SIDE) {
            load<L0>(pair_slot(0, number) + side);
            load<L1>(pair_slot(1, number) + side);
            add<L0, L1, L0>();
            store<L0>(pair_slot(0, number) + side);
        }
    }
}

// Sums in tile 0 become means and factors.
inline void finish_pairs(const Moments& moments, uint32_t pairs) {
    for (uint32_t number = 0; number * PAIRS_IN_SLOT < pairs; ++number) {
        finish_moments(moments, pair_slot(0, number), pair_slot(0, number) + OTHER_SIDE);
    }
}

}  // namespace lanes
