// What a norm needs to know of rows: sums and sums of squares, mean and factor.
//
// They are kept in a tile of dest: of a row the sum, later the mean, in quarter 0, the sum of squares, later the factor, in
// quarter 1.
#pragma once

#include "lanes.h"
#include "pass.h"
#include "reciprocal.h"
#include "rows.h"
#include "rsqrt.h"
#include "slot.h"

namespace lanes {

constexpr uint32_t FIRST_OF_PAIR = 0;
constexpr uint32_t SECOND_OF_PAIR = 1;

// Adds the columns `begin .. end` of tile `values` to the sums of tile `sums`, which begin with it where it is the first.
// Columns are added lane by lane: every lane holds a part of the sum of its row.
inline void add_moments(uint32_t values, uint32_t begin, uint32_t end, uint32_t sums, bool is_first) {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        const uint32_t sum = slot(sums, group, FIRST_OF_PAIR);
        const uint32_t squares = slot(sums, group, SECOND_OF_PAIR);
        if (is_first) {
            copy<ZERO, L4>();
            copy<ZERO, L5>();
        } else {
            load<L4>(sum);
            load<L5>(squares);
        }
        for (uint32_t quarter = 0; quarter < QUARTERS; ++quarter) {
            load<L0>(slot(values, group, quarter));
            keep_columns<L0>(begin, end, quarter);
            add<L4, L0, L4>();
            multiply_add<L0, L0, L5, L5>();
        }
        store<L4>(sum);
        store<L5>(squares);
    }
}

// Every lane of the sums becomes the sum of its row.
inline void gather_moments(uint32_t sums) {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        load<L0>(slot(sums, group, FIRST_OF_PAIR));
        row_sum<L0, L1>();
        store<L0>(slot(sums, group, FIRST_OF_PAIR));
        load<L0>(slot(sums, group, SECOND_OF_PAIR));
        row_sum<L0, L1>();
        store<L0>(slot(sums, group, SECOND_OF_PAIR));
    }
}

// How sums become mean and factor; all three are bits of f32.
struct Moments {
    // Values of a row.
    uint32_t width;
    uint32_t eps;
    // Whether the mean is taken off: if not, it is not computed.
    bool is_centred;
};

// From the slots of a sum and a sum of squares to those of the mean and of `1 / sqrt(variance + eps)`, or of
// `1 / sqrt(mean of squares + eps)`; uses all registers.
inline void finish_moments(const Moments& moments, uint32_t sum, uint32_t squares) {
    set<L6>(moments.width);
    reciprocal<L6, L5, L1>();
    load<L0>(sum);
    divide<L6, L5, L1, L2>();
    copy<L0, L4>();
    store<L4>(sum);
    load<L0>(squares);
    divide<L6, L5, L1, L2>();
    if (moments.is_centred) {
        multiply<L4, L4, L1>();
        subtract<L0, L1, L0>();
        settle();
        // Below zero by rounding alone.
        where_negative<L0>();
        copy<ZERO, L0>();
        all_lanes();
    }
    set<L1>(moments.eps);
    add<L0, L1, L0>();
    rsqrt();
    store<L0>(squares);
}

inline void finish_moments(const Moments& moments, uint32_t sums) {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        finish_moments(moments, slot(sums, group, FIRST_OF_PAIR), slot(sums, group, SECOND_OF_PAIR));
    }
}

// Spreads pairs that stand in the first two columns of a tile over their rows.
inline void spread_pairs(uint32_t pairs) {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        load<L0>(slot(pairs, group, FIRST_OF_PAIR));
        row_first<L0, L1>();
        store<L0>(slot(pairs, group, FIRST_OF_PAIR));
        load<L0>(slot(pairs, group, SECOND_OF_PAIR));
        row_first<L0, L1>();
        store<L0>(slot(pairs, group, SECOND_OF_PAIR));
    }
}

}  // namespace lanes
