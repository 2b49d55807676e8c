// Rounding in dest to what bf16 can hold, to nearest, ties to even. What packs dest to bf16 then only drops zeros, however it
// rounds itself.
#pragma once
#include "engine.h"

#ifdef TRISC_MATH
#include "sfpu/pass.h"
#include "sfpu/round.h"
#endif

namespace compute {

// Rounds where `format` is bf16.
inline void round_tile_for(uint32_t index, uint32_t format) {
#ifdef TRISC_MATH
    if (format != lowered::BF16) {
        return;
    }
    lanes::begin();
    lanes::round_tile(index);
    lanes::end();
#endif
}

}  // namespace compute
