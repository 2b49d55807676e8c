// 1 / (1 + e^-x) of f32.
#pragma once

#include "exp.h"
#include "lanes.h"
#include "reciprocal.h"

namespace lanes {

// L0 = 1 / (1 + e^L0), the logistic function of -L0; uses L1 to L4. Not a number becomes 0 or 1.
// Within 2.5 ulp (measured 2.1) for L0 < 69; above, where it is less than 1e-30, that small again in error.
inline void logistic_of_negative() {
    // So that 1 + e^x does not become infinite; the reciprocal of what it may become is zero.
    set_bits<L1, bits_of(88.0f)>();
    sort<L0, L1>();
    exp();
    add<L0, ONE, L1>();
    reciprocal<L1, L0, L2>();
}

}  // namespace lanes
