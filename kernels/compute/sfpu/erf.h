// The error function of f32.
#pragma once

#include "exp.h"
#include "lanes.h"

namespace lanes {

// Horner's step: D = D * X + the coefficient; uses L4.
template <uint32_t X, uint32_t D, uint32_t BITS>
inline void horner() {
    set_bits<L4, BITS>();
    multiply_add<D, X, L4, D>();
}

// L0 = erf(L0) within 1 ulp (measured 0.68); uses L1 to L7. Not a number becomes 1 or -1.
//
// Near zero a polynomial in x^2, else 1 - e^-l(|x|) with a polynomial l.
inline void erf() {
    constexpr uint32_t X = L5, T = L6, NEAR = L7;
    constexpr float SMALL = 0.92f;
    copy<L0, X>();
    magnitude<X, T>();

    multiply<T, T, L1>();
    set_bits<NEAR, bits_of(8.382391e-5f)>();
    horner<L1, NEAR, bits_of(-8.1455975e-4f)>();
    horner<L1, NEAR, bits_of(5.201286e-3f)>();
    horner<L1, NEAR, bits_of(-0.0268595f)>();
    horner<L1, NEAR, bits_of(0.11283697f)>();
    horner<L1, NEAR, bits_of(-0.37612635f)>();
    horner<L1, NEAR, bits_of(0.12837917f)>();
    multiply_add<T, NEAR, T, NEAR>();

    copy<T, L1>();
    set_bits<L2, bits_of(4.0f)>();
    sort<L1, L2>();
    set_bits<L0, bits_of(-1.959373e-4f)>();
    horner<L1, L0, bits_of(3.043218e-3f)>();
    horner<L1, L0, bits_of(-0.022226922f)>();
    horner<L1, L0, bits_of(0.1039316f)>();
    horner<L1, L0, bits_of(0.63718224f)>();
    horner<L1, L0, bits_of(1.1276757f)>();
    horner<L1, L0, bits_of(1.9567493e-4f)>();
    negate<L0, L0>();
    exp();
    subtract<ONE, L0, L0>();

    set_bits<L1, bits_of(SMALL)>();
    where_greater<L1, T>();
    copy<NEAR, L0>();
    all_lanes();
    take_magnitude<L0, X>();
    copy<X, L0>();
}

}  // namespace lanes
