// Normalise: `out = (x - mean) * factor`, then `* (1 + scale) + shift` where given; blocks one tile wide.
// Reads: rows `0 .. rows` of `x`, as many pairs of mean and factor, `scale` and `shift` of the pass. Writes: those rows of
// `out`, of bf16, in their first `columns` columns, nothing else.
#pragma once
#include "vectors.h"
#ifdef TRISC_MATH
#include "sfpu/moments.h"
#include "sfpu/normalise.h"
#endif

namespace compute {

// Pairs to the first two columns of rows of the tile in scratch; its other columns are never used.
inline void prepare_pairs(uint32_t pairs, uint32_t rows) {
#ifdef TRISC_UNPACK
    await_unpacker();
    const Block tile = {scratch(MOMENTS_TILE), lowered::F32, 1};
    for (uint32_t row = 0; row < rows; ++row, pairs += 8) {
        copy_run(pairs, lowered::F32, tile.value(row, 0), lowered::F32, 2);
    }
    memory::settle(tile.value(rows - 1, 1));
#endif
}

// False where scratch is too small.
inline bool normalise(lowered::Words words, uint32_t pass) {
    using lowered::Normalise;
    if (free_bytes() < NORM_BYTES) {
        return false;
    }
    const uint32_t row_tiles = words[Normalise::row_tiles];
    const Block x = block(words[Normalise::x], words[Normalise::format], row_tiles);
    const Block out = block(words[Normalise::out], lowered::BF16, row_tiles);
    const uint32_t rows = words[Normalise::rows];
    const uint32_t columns = words[Normalise::columns];
    const uint32_t pairs = arguments::l1(words[Normalise::moments]);
    const bool has_scale = words[Normalise::scale] != lowered::NONE;
    const bool has_shift = words[Normalise::shift] != lowered::NONE;
    const uint32_t of_pass = pass * words[Normalise::vector_step];
    UNPACK((await_unpacker()));
    if (has_scale) {
        spread_vector(arguments::l1(words[Normalise::scale] + of_pass), 0, columns, GAIN_TILE);
    }
    if (has_shift) {
        spread_vector(arguments::l1(words[Normalise::shift] + of_pass), 0, columns, SHIFT_TILE);
    }
    for (uint32_t tile = 0; tile < lowered::tiles_of(rows); ++tile) {
        const Part part = rows_in_tile(tile, 0, rows, columns);
        prepare_pairs(pairs + tile * lowered::SIDE * 8, part.rows);
        begin_section();
        load_tile(x.tile(tile, 0), x.format, 0);
        load_tile(scratch(MOMENTS_TILE), lowered::F32, 1);
        if (has_scale) {
            load_tile(scratch(GAIN_TILE), lowered::BF16, 2);
        }
        if (has_shift) {
            load_tile(scratch(SHIFT_TILE), lowered::BF16, 3);
        }
#ifdef TRISC_MATH
        lanes::begin();
        lanes::spread_pairs(lanes::MOMENTS);
        lanes::normalise({true, has_scale, true, has_shift, true});
        lanes::end();
#endif
        begin_packing();
        store_part(0, out.tile(tile, 0), out.format, part);
        end_section();
    }
    await_results();
    return true;
}

}  // namespace compute
