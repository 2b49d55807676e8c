// Working memory of the norms, and vectors of bf16 in it: a tile that has the value of each column in its first four rows,
// as many as one load of the vector unit takes.
#pragma once
#include "tile.h"

namespace compute {

constexpr uint32_t MOMENTS_TILE = FREE;
constexpr uint32_t GAIN_TILE = MOMENTS_TILE + F32_TILE;
constexpr uint32_t SHIFT_TILE = GAIN_TILE + BF16_TILE;
static_assert(SHIFT_TILE + BF16_TILE == FREE + NORM_BYTES);

constexpr uint32_t VECTOR_ROWS = 4;

#ifdef TRISC_UNPACK
constexpr uint32_t ROW_BYTES = 2 * lowered::FACE;

// Values side by side in the first row of a face, to all of those rows.
inline void spread_run(uint32_t values, uint32_t to, uint32_t count) {
    // By pairs as far as that goes: vectors seldom begin or end within one.
    const bool is_aligned = (values | to) % 4 == 0;
    const uint32_t paired = is_aligned ? count / 2 * 2 : 0;
    for (uint32_t at = 0; at < 2 * paired; at += 4) {
        const uint32_t pair = *memory::at(values + at);
        for (uint32_t row = 0; row < VECTOR_ROWS; ++row) {
            *memory::at(to + row * ROW_BYTES + at) = pair;
        }
    }
    for (uint32_t at = 2 * paired; at < 2 * count; at += 2) {
        const uint16_t value = *half_at(values + at);
        for (uint32_t row = 0; row < VECTOR_ROWS; ++row) {
            *half_at(to + row * ROW_BYTES + at) = value;
        }
    }
}
#endif

// Columns `begin .. end` of such a tile, from values that follow one another at `values`.
inline void spread_vector(uint32_t values, uint32_t begin, uint32_t end, uint32_t offset) {
#ifdef TRISC_UNPACK
    const Block tile = {scratch(offset), lowered::BF16, 1};
    for (uint32_t column = begin; column < end;) {
        const uint32_t count = run_length(column, end - column);
        spread_run(values, tile.value(0, column), count);
        values += 2 * count;
        column += count;
    }
    memory::settle(tile.value(VECTOR_ROWS - 1, end - 1));
#endif
}

}  // namespace compute
