// Whole numbers as the bits of f32.
#pragma once
#include <cstdint>

namespace compute {

// Of 1 to 2^24 - 1, which f32 holds exactly.
constexpr uint32_t f32_bits(uint32_t number) {
    uint32_t exponent = 127 + 23;
    while (number < 1u << 23) {
        number <<= 1;
        --exponent;
    }
    return exponent << 23 | (number & 0x7fffff);
}

}  // namespace compute
