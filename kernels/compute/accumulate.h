// Accumulate: `out += factor * x` for some rows of two blocks one tile wide; `out` is f32.
// Reads: rows `first_row .. first_row + rows` of `x` and `out`. Writes: those of `out` in their first `columns` columns,
// nothing else.
#pragma once
#include "tile.h"
#ifdef TRISC_MATH
#include "sfpu/sum.h"
#endif

namespace compute {

// Tile 1 of dest += factor * tile 0.
inline void add_scaled(uint32_t factor) {
#ifdef TRISC_MATH
    lanes::begin();
    lanes::add_scaled(factor);
    lanes::end();
#endif
}

inline void accumulate(lowered::Words words) {
    using lowered::Accumulate;
    const Block x = block(words[Accumulate::x], words[Accumulate::x_format], words[Accumulate::row_tiles]);
    const Block out = block(words[Accumulate::out], lowered::F32, words[Accumulate::row_tiles]);
    const uint32_t first = words[Accumulate::first_row];
    const uint32_t rows = words[Accumulate::rows];
    for (uint32_t tile = first / lowered::SIDE; tile < lowered::tiles_of(first + rows); ++tile) {
        begin_section();
        load_tile(x.tile(tile, 0), x.format, 0);
        load_tile(out.tile(tile, 0), out.format, 1);
        add_scaled(words[Accumulate::factor]);
        begin_packing();
        store_part(1, out.tile(tile, 0), out.format, rows_in_tile(tile, first, rows, words[Accumulate::columns]));
        end_section();
    }
    await_results();
}

}  // namespace compute
