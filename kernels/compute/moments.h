// Moments: sum and sum of squares of each row of a block one tile wide.
// Reads: rows `0 .. rows` of `x` in their first `columns` columns. Writes: `rows` pairs of f32 at `out`, nothing else.
//
// Columns are added lane by lane and the lanes by pairs, in another order than one after the other.
#pragma once
#include "tile.h"
#ifdef TRISC_MATH
#include "sfpu/moments.h"
#endif

namespace compute {

// The first two columns of rows of a tile of f32 as neighbouring pairs.
inline void store_pairs(uint32_t index, uint32_t to, uint32_t rows) {
#ifdef TRISC_PACK
    const Block from = cells_of(index, lowered::F32);
    for (uint32_t row = 0; row < rows; ++row, to += 8) {
        *memory::at(to) = *memory::at(from.value(row, 0));
        *memory::at(to + 4) = *memory::at(from.value(row, 1));
    }
    memory::settle(to - 4);
#endif
}

inline void moments(lowered::Words words) {
    using lowered::Moments;
    const uint32_t rows = words[Moments::rows];
    const Block x = block(words[Moments::x], words[Moments::format], lowered::tiles_of(rows));
    const uint32_t out = arguments::l1(words[Moments::out]);
    for (uint32_t tile = 0; tile < x.row_tiles; ++tile) {
        begin_section();
        load_tile(x.tile(tile, 0), x.format, 0);
#ifdef TRISC_MATH
        lanes::begin();
        lanes::add_moments(0, 0, words[Moments::columns], 1, true);
        lanes::gather_moments(1);
        lanes::end();
#endif
        begin_packing();
        store_pairs(1, out + tile * lowered::SIDE * 8, rows_in_tile(tile, 0, rows, 2).rows);
        end_section();
    }
    await_results();
}

}  // namespace compute
