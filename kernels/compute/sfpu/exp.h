// e^x of f32.
#pragma once

#include "lanes.h"

namespace lanes {

// Beyond these e^x is infinity and zero.
constexpr float EXP_MAX = 89.0f;
constexpr float EXP_MIN = -104.0f;

// L0 = e^L0, within 1 ulp (measured 0.90, or 7.5e-8 relative); uses L1 to L4. Results below 2^-126 are zero. Not a number
// becomes infinity or zero by its sign: `keep_not_a_number` puts it back.
//
// x = n ln 2 + r with a whole n and |r| <= ln(2) / 2; e^r = 1 + r + r^2 q(r).
inline void exp() {
    constexpr uint32_t X = L0, SHIFTED = L1, N = L2, Q = L3, FACTOR = L4;
    // Adding it to a number of less than 2^22 leaves the nearest whole number in the low bits of the sum.
    constexpr uint32_t ROUND = bits_of(12582912.0f);

    set_bits<L1, bits_of(EXP_MAX)>();
    sort<X, L1>();
    set_bits<L1, bits_of(EXP_MIN)>();
    sort<L1, X>();

    set_bits<Q, bits_of(1.44269504f)>();
    set_bits<FACTOR, ROUND>();
    multiply_add<X, Q, FACTOR, SHIFTED>();
    subtract<SHIFTED, FACTOR, N>();
    // ln 2 in two parts; the first has so few bits that its products with n are exact.
    set_bits<Q, bits_of(0.693359375f)>();
    subtract_product<N, Q, X, X>();
    set_bits<Q, bits_of(-2.12194440e-4f)>();
    subtract_product<N, Q, X, X>();

    set_bits<N, ROUND>();
    subtract_from_integer<SHIFTED, N>();

    set_bits<Q, bits_of(0.0013814599f)>();
    set_bits<FACTOR, bits_of(0.008368717f)>();
    multiply_add<X, Q, FACTOR, Q>();
    set_bits<FACTOR, bits_of(0.04166839f)>();
    multiply_add<X, Q, FACTOR, Q>();
    set_bits<FACTOR, bits_of(0.16666521f)>();
    multiply_add<X, Q, FACTOR, Q>();
    set_bits<FACTOR, bits_of(0.49999994f)>();
    multiply_add<X, Q, FACTOR, Q>();
    multiply<X, X, FACTOR>();
    multiply_add<FACTOR, Q, X, Q>();
    add<Q, ONE, Q>();

    // 2^n in two steps: either factor is a normal number for every n that can occur.
    shift_signed<N, FACTOR, -1>();
    copy<FACTOR, SHIFTED>();
    subtract_from_integer<N, FACTOR>();
    add_small_integer<FACTOR, FACTOR, 127>();
    shift<FACTOR, FACTOR, 23>();
    multiply<Q, FACTOR, Q>();
    add_small_integer<SHIFTED, SHIFTED, 127>();
    shift<SHIFTED, SHIFTED, 23>();
    multiply<Q, SHIFTED, X>();
}

// Where C is not a number, D is not a number either; uses L6 and L7. All lanes take part.
template <uint32_t C, uint32_t D>
inline void keep_not_a_number() {
    magnitude<C, L6>();
    set_bits<L7, 0x7f800000>();
    where_greater<L6, L7>();
    copy<C, D>();
    all_lanes();
}

}  // namespace lanes
