// Rope: rotates the halves (a, b) of each head of `2 * half` columns in place: `(a cos - b sin, b cos + a sin)`.
// Reads and writes: rows `first_row .. first_row + rows` of `x` in columns `column .. column + columns`. Reads: the same
// rows of `cos` and `sin`, of bf16, `half` columns wide.
//
// A half at a time in pieces of up to 32 columns. Pieces that do not begin with a tile are brought to scratch first.
#pragma once
#include "cells_out.h"
#ifdef TRISC_MATH
#include "sfpu/rotation.h"
#endif

namespace compute {

// Where pieces of the two halves are brought together, from FREE on.
constexpr uint32_t A_PIECE = FREE;
constexpr uint32_t B_PIECE = A_PIECE + F32_TILE;
static_assert(B_PIECE + F32_TILE == FREE + ROPE_BYTES);

// A piece of some rows from `column` on as a tile: where it lies, or else in scratch.
inline uint32_t bring_piece(const Block& x, uint32_t row_tile, const Part& part, uint32_t column, uint32_t offset) {
    if (column % lowered::SIDE == 0) {
        return x.tile(row_tile, column / lowered::SIDE);
    }
#ifdef TRISC_UNPACK
    await_unpacker();
    const Block piece = {scratch(offset), x.format, 1};
    for (uint32_t row = part.row; row < part.row + part.rows; ++row) {
        copy_row(x, row_tile * lowered::SIDE + row, column, piece, row, 0, part.columns);
    }
    memory::settle(piece.value(part.row + part.rows - 1, part.columns - 1));
#endif
    return scratch(offset);
}

// `part` of a row of tiles from columns `a` and `b` on, with those from `angle` on of the tables.
struct Rotation {
    uint32_t row_tile;
    Part part;
    uint32_t a;
    uint32_t b;
    uint32_t angle;
};

inline void rotate(const Block& x, const Block& cos, const Block& sin, const Rotation& of) {
    const uint32_t a = bring_piece(x, of.row_tile, of.part, of.a, A_PIECE);
    const uint32_t b = bring_piece(x, of.row_tile, of.part, of.b, B_PIECE);
    begin_section();
    load_tile(a, x.format, 0);
    load_tile(b, x.format, 1);
    load_tile(cos.tile(of.row_tile, of.angle / lowered::SIDE), lowered::BF16, 2);
    load_tile(sin.tile(of.row_tile, of.angle / lowered::SIDE), lowered::BF16, 3);
    #ifdef TRISC_MATH
    lanes::begin();
    lanes::rotate_halves(x.format == lowered::BF16);
    lanes::end();
#endif
    begin_packing();
    const uint32_t row = of.row_tile * lowered::SIDE + of.part.row;
    store_cells(0, of.part, x, row, of.a);
    store_cells(1, of.part, x, row, of.b);
    end_section();
}

// False where scratch is too small.
inline bool rope(lowered::Words words) {
    using lowered::Rope;
    if (free_bytes() < ROPE_BYTES) {
        return false;
    }
    const uint32_t row_tiles = words[Rope::row_tiles];
    const Block x = block(words[Rope::x], words[Rope::format], row_tiles);
    const Block cos = block(words[Rope::cos], lowered::BF16, row_tiles);
    const Block sin = block(words[Rope::sin], lowered::BF16, row_tiles);
    const uint32_t first = words[Rope::first_row];
    const uint32_t rows = words[Rope::rows];
    const uint32_t half = words[Rope::half];
    const uint32_t end = words[Rope::column] + words[Rope::columns];
    for (uint32_t tile = first / lowered::SIDE; tile < lowered::tiles_of(first + rows); ++tile) {
        for (uint32_t head = words[Rope::column]; head < end; head += 2 * half) {
            for (uint32_t angle = 0; angle < half; angle += lowered::SIDE) {
                const uint32_t columns = half - angle < lowered::SIDE ? half - angle : lowered::SIDE;
                const Part part = rows_in_tile(tile, first, rows, columns);
                rotate(x, cos, sin, {tile, part, head + angle, head + half + angle, angle});
            }
        }
    }
    await_results();
    return true;
}

}  // namespace compute
