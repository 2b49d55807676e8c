// Norms of whole rows, or of groups of columns in rows: what LayerNorm and RmsNorm have in common.
//
// A row of tiles of a group at a time: its moments are gathered from all of its columns and put by in scratch; then column
// by column of tiles is normalised. Columns are added lane by lane, the lanes by pairs.
#pragma once
#include "cells_out.h"
#include "number.h"
#include "vectors.h"
#ifdef TRISC_MATH
#include "sfpu/moments.h"
#include "sfpu/normalise.h"
#endif

namespace compute {

// Columns from `begin` to before `end`.
struct Columns {
    uint32_t begin;
    uint32_t end;

    // Those that both have; none where the end is not behind the beginning.
    Columns common(const Columns& other) const {
        return {begin > other.begin ? begin : other.begin, end < other.end ? end : other.end};
    }

    // Those in one column of tiles, counted from its first one.
    Columns in_tile(uint32_t tile) const {
        const uint32_t left = tile * lowered::SIDE;
        const Columns here = common({left, left + lowered::SIDE});
        return {here.begin - left, here.end - left};
    }

    bool is_empty() const { return end <= begin; }
    uint32_t first_tile() const { return begin / lowered::SIDE; }
    uint32_t end_tile() const { return lowered::tiles_of(end); }
};

struct RowNorm {
    Block x;
    Block out;
    uint32_t first_row;
    uint32_t rows;
    // Columns that are written, to column 0 of `out` and on.
    Columns strip;
    uint32_t eps;
    bool is_centred;
    bool is_gain_beyond_one;
    // Vectors with a value for each column of a group; 0 where there are none.
    uint32_t gain;
    uint32_t shift;
};

// Leaves means and factors of a group in scratch.
inline void gather(const RowNorm& norm, const Columns& group, uint32_t row_tile) {
    begin_section();
    for (uint32_t tile = group.first_tile(); tile < group.end_tile(); ++tile) {
        load_tile(norm.x.tile(row_tile, tile), norm.x.format, 0);
#ifdef TRISC_MATH
        const Columns here = group.in_tile(tile);
        lanes::begin();
        lanes::add_moments(0, here.begin, here.end, 1, tile == group.first_tile());
        lanes::end();
#endif
    }
#ifdef TRISC_MATH
    lanes::begin();
    lanes::gather_moments(1);
    lanes::finish_moments({f32_bits(group.end - group.begin), norm.eps, norm.is_centred}, 1);
    lanes::end();
#endif
    begin_packing();
    store_tile(1, scratch(MOMENTS_TILE), lowered::F32);
    end_section();
    await_results();
}

// Gain and shift of the columns `here` of a tile, the first of which is number `column` of its group.
inline void prepare_vectors(const RowNorm& norm, const Columns& here, uint32_t column) {
#ifdef TRISC_UNPACK
    await_unpacker();
    if (norm.gain != 0) {
        spread_vector(norm.gain + 2 * column, here.begin, here.end, GAIN_TILE);
    }
    if (norm.shift != 0) {
        spread_vector(norm.shift + 2 * column, here.begin, here.end, SHIFT_TILE);
    }
#endif
}

inline void normalise_tile(const RowNorm& norm, const Columns& group, uint32_t row_tile, uint32_t tile) {
    const Columns here = group.common(norm.strip).in_tile(tile);
    const uint32_t column = tile * lowered::SIDE + here.begin;
    prepare_vectors(norm, here, column - group.begin);
    begin_section();
    load_tile(norm.x.tile(row_tile, tile), norm.x.format, 0);
    load_tile(scratch(MOMENTS_TILE), lowered::F32, 1);
    if (norm.gain != 0) {
        load_tile(scratch(GAIN_TILE), lowered::BF16, 2);
    }
    if (norm.shift != 0) {
        load_tile(scratch(SHIFT_TILE), lowered::BF16, 3);
    }
#ifdef TRISC_MATH
    const bool is_bf16 = norm.out.format == lowered::BF16;
    lanes::begin();
    lanes::normalise({norm.is_centred, norm.gain != 0, norm.is_gain_beyond_one, norm.shift != 0, is_bf16});
    lanes::end();
#endif
    begin_packing();
    Part part = rows_in_tile(row_tile, norm.first_row, norm.rows, here.end - here.begin);
    part.column = here.begin;
    store_cells(0, part, norm.out, row_tile * lowered::SIDE + part.row, column - norm.strip.begin);
    end_section();
}

// All rows of one group.
inline void normalise_group(const RowNorm& norm, const Columns& group) {
    const Columns written = group.common(norm.strip);
    if (written.is_empty()) {
        return;
    }
    const uint32_t end = lowered::tiles_of(norm.first_row + norm.rows);
    for (uint32_t row_tile = norm.first_row / lowered::SIDE; row_tile < end; ++row_tile) {
        gather(norm, group, row_tile);
        for (uint32_t tile = written.first_tile(); tile < written.end_tile(); ++tile) {
            normalise_tile(norm, group, row_tile, tile);
        }
    }
}

}  // namespace compute
