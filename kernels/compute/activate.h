// Activate: `out = activation(x)`, times `factor` where it is given; blocks one tile wide.
// Reads: rows `first_row .. first_row + rows` of `x` and `factor`. Writes: those of `out` in their first `columns` columns,
// nothing else.
#pragma once
#include "activation.h"
#include "tile.h"

namespace compute {

inline void activate_block(lowered::Words words) {
    using lowered::Activate;
    const uint32_t row_tiles = words[Activate::row_tiles];
    const Block x = block(words[Activate::x], words[Activate::x_format], row_tiles);
    const Block out = block(words[Activate::out], words[Activate::out_format], row_tiles);
    const bool has_factor = words[Activate::factor] != lowered::NONE;
    const Block factor = block(words[Activate::factor], words[Activate::factor_format], row_tiles);
    const uint32_t first = words[Activate::first_row];
    const uint32_t rows = words[Activate::rows];
    for (uint32_t tile = first / lowered::SIDE; tile < lowered::tiles_of(first + rows); ++tile) {
        begin_section();
        load_tile(x.tile(tile, 0), x.format, 0);
        if (has_factor) {
            load_tile(factor.tile(tile, 0), factor.format, 1);
        }
        #ifdef TRISC_MATH
        lanes::begin();
        lanes::activate_tile(words[Activate::activation], has_factor, out.format == lowered::BF16);
        lanes::end();
#endif
        begin_packing();
        store_part(0, out.tile(tile, 0), out.format, rows_in_tile(tile, first, rows, words[Activate::columns]));
        end_section();
    }
    await_results();
}

}  // namespace compute
