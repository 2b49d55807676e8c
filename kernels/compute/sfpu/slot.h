// Where in dest, held as f32, the vector unit finds the values of a tile.
//
// A slot is what one load or store moves: rows 4 `group` to 4 `group` + 3 of a tile and, of one half of its columns, every
// second one:
//
//     quarter   columns in lanes 0 to 7 of each row
//     0         0, 2, ..., 14
//     1         1, 3, ..., 15
//     2         16, 18, ..., 30
//     3         17, 19, ..., 31
#pragma once

#include <cstdint>

#include "lanes.h"

namespace lanes {

constexpr uint32_t GROUPS = 8;
constexpr uint32_t QUARTERS = 4;
constexpr uint32_t TILE_ROWS = 64;  // of dest, 16 values each

// The row of dest that a slot of a tile begins at, with the parity of the columns as bit 1.
inline uint32_t slot(uint32_t tile, uint32_t group, uint32_t quarter) {
    const uint32_t face = (group / 4) * 2 + quarter / 2;
    return tile * TILE_ROWS + face * 16 + (group % 4) * 4 + (quarter % 2) * 2;
}

// Where dest holds f32, whatever the formats around are.
constexpr uint32_t AS_F32 = 3;

template <uint32_t D>
inline void load(uint32_t slot) { TT_SFPLOAD(D, AS_F32, ADDR_MOD_7, slot); }

template <uint32_t C>
inline void store(uint32_t slot) { TT_SFPSTORE(C, AS_F32, ADDR_MOD_7, slot); }

// Lanes whose column in the tile is less than `columns`; uses L7.
inline void where_column_below(uint32_t columns, uint32_t quarter) {
    const int32_t end = static_cast<int32_t>(columns) - static_cast<int32_t>((quarter / 2) * 16 + quarter % 2);
    set_bits<L7, 15>();
    bit_and<TWICE_LANE, L7>();
    // Twice the number of the lane in its row, less `end`: negative where the column is one of them.
    TT_SFPIADD(static_cast<uint32_t>(-end) & 0xfff, L7, L7, 1);
}

// Zero in the lanes of D whose column in the tile is not one of `begin .. end`; uses L7.
template <uint32_t D>
inline void keep_columns(uint32_t begin, uint32_t end, uint32_t quarter) {
    if (begin > 0) {
        where_column_below(begin, quarter);
        copy<ZERO, D>();
        all_lanes();
    }
    if (end < 32) {
        where_column_below(end, quarter);
        other_lanes();
        copy<ZERO, D>();
        all_lanes();
    }
}

}  // namespace lanes
