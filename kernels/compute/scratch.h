// Working memory of the compute engine in L1, which no instruction names; the arguments say where it is.
#pragma once
#include "engine.h"

namespace compute {

constexpr uint32_t BF16_TILE = lowered::tile_bytes(lowered::BF16);
constexpr uint32_t F32_TILE = lowered::tile_bytes(lowered::F32);

// A tile whose first column is 1 and the rest 0: a product with it repeats the first row of the other operand.
constexpr uint32_t ONES = 0;
// A tile of bf16 that is 0 below its first row.
constexpr uint32_t ROW = ONES + BF16_TILE;
// A tile of which only some cells are wanted, before they are copied to their place.
constexpr uint32_t CELLS = ROW + BF16_TILE;
// What is left is for the instruction at hand.
constexpr uint32_t FREE = CELLS + F32_TILE;

// What instructions take of that; src/backend/blackhole/lowered/scratch.rs reserves as much.
constexpr uint32_t NORM_BYTES = F32_TILE + 2 * BF16_TILE;
constexpr uint32_t ROPE_BYTES = 2 * F32_TILE;
constexpr uint32_t ATTENTION_BYTES = BF16_TILE;
constexpr uint32_t ADD_ROWS_BYTES = 2 * F32_TILE;
// Of a product: for each row of tiles, if there are more than dest holds, and for tiles of f32 to be rounded.
constexpr uint32_t SUMS_BYTES = F32_TILE;
constexpr uint32_t ROUNDED_BYTES = DEST_TILES * BF16_TILE;

inline uint32_t scratch(uint32_t offset) { return arguments::l1(arguments::own(arguments::SCRATCH) + offset); }

// Bytes from FREE on.
inline uint32_t free_bytes() {
    const uint32_t all = arguments::own(arguments::SCRATCH_BYTES);
    return all < FREE ? 0 : all - FREE;
}

#ifdef TRISC_UNPACK
inline bool has_ones = false;

// Writes the tile of ones and clears that of the row, once.
inline void prepare_ones() {
    if (has_ones) {
        return;
    }
    has_ones = true;
    memory::fill(scratch(ONES), 2 * BF16_TILE, 0);
    constexpr uint32_t ONE = 0x3f80;
    for (uint32_t row = 0; row < lowered::SIDE; ++row) {
        const uint32_t face = row / lowered::FACE * 2;
        const uint32_t value = face * lowered::FACE_VALUES + row % lowered::FACE * lowered::FACE;
        *memory::at(scratch(ONES) + 2 * value) = ONE;
    }
    memory::settle(scratch(ONES));
}
#endif

}  // namespace compute
