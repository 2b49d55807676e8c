// Values that change their places or their format: moves of bits, and rounding to bf16, by the RISC-V core itself.
#pragma once
#include "block.h"

namespace compute {

// What the wheel makes of every NaN.
constexpr uint32_t NAN_BF16 = 0x7fc0;

// The bits of an f32 to those of the nearest bf16, ties to even.
inline uint32_t rounded_to_bf16(uint32_t bits) {
    if (bits << 1 > 0xff000000) {
        return NAN_BF16;
    }
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline volatile uint16_t* half_at(uint32_t address) { return reinterpret_cast<volatile uint16_t*>(address); }

// Bits of a stored value as f32.
inline uint32_t load_bits(uint32_t address, uint32_t format) {
    return format == lowered::F32 ? *memory::at(address) : static_cast<uint32_t>(*half_at(address)) << 16;
}

// Stores the bits of an f32.
inline void store_bits(uint32_t address, uint32_t format, uint32_t bits) {
    if (format == lowered::F32) {
        *memory::at(address) = bits;
    } else {
        *half_at(address) = rounded_to_bf16(bits);
    }
}

// Copies bytes, by words where both sides allow it: loads go ahead of the stores, since each takes a while.
inline void copy_bytes(uint32_t from, uint32_t to, uint32_t bytes) {
    if ((from | to) % 4 == 0) {
        for (; bytes >= 16; bytes -= 16, from += 16, to += 16) {
            const uint32_t words[4] = {
                *memory::at(from), *memory::at(from + 4), *memory::at(from + 8), *memory::at(from + 12)};
            for (uint32_t word = 0; word < 4; ++word) {
                *memory::at(to + 4 * word) = words[word];
            }
        }
        for (; bytes >= 4; bytes -= 4, from += 4, to += 4) {
            *memory::at(to) = *memory::at(from);
        }
    }
    for (; bytes > 0; bytes -= 2, from += 2, to += 2) {
        *half_at(to) = *half_at(from);
    }
}

// Copies `count` values that stand side by side in both places. Those of equal formats keep their bits.
inline void copy_run(uint32_t from, uint32_t from_format, uint32_t to, uint32_t to_format, uint32_t count) {
    if (from_format == to_format) {
        copy_bytes(from, to, count * lowered::value_bytes(from_format));
        return;
    }
    const uint32_t from_step = lowered::value_bytes(from_format);
    const uint32_t to_step = lowered::value_bytes(to_format);
    for (; count > 0; --count, from += from_step, to += to_step) {
        store_bits(to, to_format, load_bits(from, from_format));
    }
}

// Values from `column` on that stand side by side, at most `wanted`.
inline uint32_t run_length(uint32_t column, uint32_t wanted) {
    const uint32_t in_face = lowered::FACE - column % lowered::FACE;
    return wanted < in_face ? wanted : in_face;
}

// Copies a part of a row to another row; columns of both sides are counted on by one.
inline void copy_row(
    const Block& from, uint32_t from_row, uint32_t from_column,
    const Block& to, uint32_t to_row, uint32_t to_column, uint32_t columns) {
    while (columns > 0) {
        const uint32_t count = run_length(from_column, run_length(to_column, columns));
        copy_run(from.value(from_row, from_column), from.format, to.value(to_row, to_column), to.format, count);
        from_column += count;
        to_column += count;
        columns -= count;
    }
}

}  // namespace compute
