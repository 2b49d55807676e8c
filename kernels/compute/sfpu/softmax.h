// Softmax of rows of scores, tile by tile: what is largest, weights, and their sum.
//
// Of every row the largest score so far and the sum of weights so far are kept in a tile of dest, lane by lane: they are
// gathered when all keys have been seen.
#pragma once

#include "exp.h"
#include "lanes.h"
#include "pass.h"
#include "reciprocal.h"
#include "round.h"
#include "rows.h"
#include "slot.h"

namespace lanes {

// Tiles of dest, and the quarters of the second one.
constexpr uint32_t SCORES = 0;
constexpr uint32_t ROWS = 1;
constexpr uint32_t LARGEST = 0;
constexpr uint32_t TOTAL = 1;

// Which keys of a tile of scores a row sees: columns before `columns`, and where `is_causal` those before `first_row_sees`
// of row 0 of the tile, one more with every row. Both may be anything.
struct Sight {
    int32_t columns;
    bool is_causal;
    int32_t first_row_sees;
};

constexpr int32_t within_twelve_bits(int32_t value) { return value < -64 ? -64 : value > 64 ? 64 : value; }

// Lanes where the number in L7 is not less than `end` get the value of L6 in L0.
inline void hide_from(int32_t end) {
    TT_SFPIADD(static_cast<uint32_t>(-within_twelve_bits(end)) & 0xfff, L7, L7, 1);
    other_lanes();
    copy<L6, L0>();
    all_lanes();
}

// The value of L6 to L0 where a row does not see a key; uses L7 and L5.
inline void hide(const Sight& sight, uint32_t group, uint32_t quarter) {
    const int32_t column = (quarter / 2) * 16 + quarter % 2;
    if (sight.columns < 32) {
        set_bits<L7, 15>();
        bit_and<TWICE_LANE, L7>();
        hide_from(sight.columns - column);
    }
    if (sight.is_causal && sight.first_row_sees < 32) {
        set_bits<L5, 15>();
        bit_and<TWICE_LANE, L5>();
        shift<TWICE_LANE, L7, -4>();
        // The number of the lane's column, counted by twos, less that of its row.
        subtract_from_integer<L5, L7>();
        hide_from(sight.first_row_sees + 4 * static_cast<int32_t>(group) - column);
    }
}

// L0 = the bf16 nearest to scale times a score, where the scale is in L4.
inline void load_score(uint32_t at) {
    load<L0>(at);
    multiply<L0, L4, L0>();
    round_to_bf16();
}

// Takes the scores of a tile into the largest ones, and leaves zeros in their place for the next products.
inline void find_largest(uint32_t scale, const Sight& sight, bool is_first) {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        const uint32_t largest = slot(ROWS, group, LARGEST);
        if (is_first) {
            set_bits<L3, 0xff800000>();
        } else {
            load<L3>(largest);
        }
        for (uint32_t quarter = 0; quarter < QUARTERS; ++quarter) {
            set<L4>(scale);
            load_score(slot(SCORES, group, quarter));
            set_bits<L6, 0xff800000>();
            hide(sight, group, quarter);
            sort<L0, L3>();
            store<ZERO>(slot(SCORES, group, quarter));
        }
        store<L3>(largest);
    }
}

inline void gather_largest() {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        load<L0>(slot(ROWS, group, LARGEST));
        row_max<L0, L1>();
        store<L0>(slot(ROWS, group, LARGEST));
    }
}

// Scores of a tile to weights `e^(score - largest)` as bf16, zero where a key is not seen; adds them to the sums.
inline void weigh(uint32_t scale, const Sight& sight, bool is_first) {
    each_slot([&](uint32_t group, uint32_t quarter) {
        const uint32_t at = slot(SCORES, group, quarter);
        const uint32_t total = slot(ROWS, group, TOTAL);
        set<L4>(scale);
        load_score(at);
        load<L1>(slot(ROWS, group, LARGEST));
        subtract<L0, L1, L0>();
        copy<L0, L5>();
        exp();
        keep_not_a_number<L5, L0>();
        round_to_bf16();
        copy<ZERO, L6>();
        hide(sight, group, quarter);
        store<L0>(at);
        if (is_first && quarter == 0) {
            store<L0>(total);
        } else {
            load<L1>(total);
            add<L0, L1, L0>();
            store<L0>(total);
        }
    });
}

// The sums become their reciprocals, in every lane of their rows.
inline void gather_totals() {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        load<L0>(slot(ROWS, group, TOTAL));
        row_sum<L0, L1>();
        reciprocal<L0, L1, L2>();
        store<L1>(slot(ROWS, group, TOTAL));
    }
}

// A tile times the reciprocals of the sums, as bf16.
inline void divide_by_totals(uint32_t tile) {
    each_slot([&](uint32_t group, uint32_t quarter) {
        load<L0>(slot(tile, group, quarter));
        load<L1>(slot(ROWS, group, TOTAL));
        multiply<L0, L1, L0>();
        round_to_bf16();
        store<L0>(slot(tile, group, quarter));
    });
}

inline void clear(uint32_t tile) {
    each_slot([&](uint32_t group, uint32_t quarter) { store<ZERO>(slot(tile, group, quarter)); });
}

}  // namespace lanes
