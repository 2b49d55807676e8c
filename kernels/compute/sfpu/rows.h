// Values of a row brought together: sums, maxima, and one value for all of the row.
//
// A register holds eight columns of each of four rows. Rotations by four, two and one lanes meet every pair of them, and
// give all lanes of a row the same bits.
#pragma once

#include "lanes.h"

namespace lanes {

// D = C with every row rotated by one lane.
template <uint32_t C, uint32_t D>
inline void rotate() {
    settle();
    TTI_SFPSHFT2(0, C, D, 3);
    settle();
}

// T = C with every row rotated by `LANES` lanes.
template <uint32_t C, uint32_t T, uint32_t LANES>
inline void rotate_by() {
    rotate<C, T>();
    for (uint32_t lane = 1; lane < LANES; ++lane) {
        rotate<T, T>();
    }
}

// Every lane of D becomes the sum of its row; uses T.
template <uint32_t D, uint32_t T>
inline void row_sum() {
    rotate_by<D, T, 4>();
    add<D, T, D>();
    rotate_by<D, T, 2>();
    add<D, T, D>();
    rotate_by<D, T, 1>();
    add<D, T, D>();
}

// Every lane of D becomes the largest value of its row, in the order of `sort`; uses T.
template <uint32_t D, uint32_t T>
inline void row_max() {
    rotate_by<D, T, 4>();
    sort<T, D>();
    rotate_by<D, T, 2>();
    sort<T, D>();
    rotate_by<D, T, 1>();
    sort<T, D>();
}

// Every lane of D becomes what the first lane of its row holds; uses T and L7.
template <uint32_t D, uint32_t T>
inline void row_first() {
    set_bits<L7, 15>();
    bit_and<TWICE_LANE, L7>();
    where_zero<L7>();
    other_lanes();
    copy<ZERO, D>();
    all_lanes();
    row_sum<D, T>();
}

}  // namespace lanes
