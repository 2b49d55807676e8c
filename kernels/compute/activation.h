// Activations of a tile of dest, in f32.
#pragma once
#include "engine.h"

#ifdef TRISC_MATH
#include "sfpu/activation.h"
#include "sfpu/pass.h"
#endif

namespace compute {

// Whether `activate` knows this one.
constexpr bool is_known(uint32_t activation) { return activation <= lowered::GELU_ERF; }

inline void activate(uint32_t index, uint32_t activation) {
#ifdef TRISC_MATH
    if (activation == lowered::IDENTITY) {
        return;
    }
    lanes::begin();
    lanes::each_slot([&](uint32_t group, uint32_t quarter) {
        const uint32_t slot = lanes::slot(index, group, quarter);
        lanes::activate(activation, slot);
        lanes::store<lanes::L0>(slot);
    });
    lanes::end();
#endif
}

}  // namespace compute
