// The activations, of f32.
//
// Each takes x from a slot of dest, where it stays, and gives its result in L0; all other registers may be used. What is
// not a number goes on as 0x7fc00000. Largest errors measured: SiLU 2.2 ulp down to x = -69, the GELUs 1.1e-7 |x| (their
// formulas cancel for negative x).
#pragma once

#include "../../lowered.h"
#include "erf.h"
#include "lanes.h"
#include "pass.h"
#include "round.h"
#include "sigmoid.h"
#include "slot.h"

namespace lanes {

// x, with 0x7fc00000 for what is not a number.
inline void identity(uint32_t x) {
    load<L0>(x);
    multiply<L0, ONE, L0>();
}

// max(x, 0), keeping what is not a number.
inline void relu(uint32_t x) {
    identity(x);
    settle();
    where_negative<L0>();
    copy<ZERO, L0>();
    all_lanes();
}

// x / (1 + e^-x)
inline void silu(uint32_t x) {
    load<L0>(x);
    negate<L0, L0>();
    logistic_of_negative();
    load<L1>(x);
    multiply<L1, L0, L0>();
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
inline void gelu_tanh(uint32_t x) {
    // (1 + tanh u) / 2 = 1 / (1 + e^-2u)
    load<L0>(x);
    multiply<L0, L0, L1>();
    multiply<L1, L0, L1>();
    set_bits<L2, bits_of(0.044715f)>();
    multiply_add<L1, L2, L0, L0>();
    set_bits<L2, bits_of(-1.5957692f)>();
    multiply<L0, L2, L0>();
    logistic_of_negative();
    load<L1>(x);
    multiply<L1, L0, L0>();
}

// 0.5 x (1 + erf(x / sqrt 2))
inline void gelu_erf(uint32_t x) {
    load<L0>(x);
    set_bits<L1, bits_of(0.70710678f)>();
    multiply<L0, L1, L0>();
    erf();
    add<L0, ONE, L0>();
    load<L1>(x);
    set_bits<L2, bits_of(0.5f)>();
    multiply<L1, L2, L1>();
    multiply<L1, L0, L0>();
}

// The result of one of `lowered::Activation`.
inline void activate(uint32_t activation, uint32_t x) {
    switch (activation) {
        case lowered::RELU: return relu(x);
        case lowered::SILU: return silu(x);
        case lowered::GELU_TANH: return gelu_tanh(x);
        case lowered::GELU_ERF: return gelu_erf(x);
        default: return identity(x);
    }
}

// Tile 0 of dest = activation(tile 0), times tile 1 where there is a factor; rounded where it will be bf16.
inline void activate_tile(uint32_t activation, bool has_factor, bool is_bf16) {
    each_slot([&](uint32_t group, uint32_t quarter) {
        const uint32_t x = slot(0, group, quarter);
        activate(activation, x);
        if (has_factor) {
            load<L1>(slot(1, group, quarter));
            multiply<L0, L1, L0>();
        }
        if (is_bf16) {
            round_to_bf16();
        }
        store<L0>(x);
    });
}

}  // namespace lanes
