// Blocks in L1: matrices as tiles, one column of tiles after the other, and the places of values in them.
#pragma once
#include "engine.h"

namespace compute {

// Rows and columns of a block, or of a tile.
struct Part {
    uint32_t row;
    uint32_t rows;
    uint32_t column;
    uint32_t columns;
};

// Number of a value of a tile among those that are stored: four faces, each row by row.
constexpr uint32_t place(uint32_t row, uint32_t column) {
    const uint32_t face = row / lowered::FACE * 2 + column / lowered::FACE;
    return face * lowered::FACE_VALUES + row % lowered::FACE * lowered::FACE + column % lowered::FACE;
}

struct Block {
    // In the L1 of this core.
    uint32_t address;
    uint32_t format;
    uint32_t row_tiles;

    uint32_t tile(uint32_t row_tile, uint32_t column_tile) const {
        return address + (column_tile * row_tiles + row_tile) * lowered::tile_bytes(format);
    }

    // Address of a value.
    uint32_t value(uint32_t row, uint32_t column) const {
        const uint32_t of = tile(row / lowered::SIDE, column / lowered::SIDE);
        return of + place(row % lowered::SIDE, column % lowered::SIDE) * lowered::value_bytes(format);
    }
};

inline Block block(uint32_t address, uint32_t format, uint32_t row_tiles) {
    return {arguments::l1(address), format, row_tiles};
}

// The part of one row of tiles that belongs to rows `first .. first + rows` of a block; `columns` from the left.
inline Part rows_in_tile(uint32_t row_tile, uint32_t first, uint32_t rows, uint32_t columns) {
    const uint32_t top = row_tile * lowered::SIDE;
    const uint32_t begin = first > top ? first - top : 0;
    const uint32_t end = first + rows - top < lowered::SIDE ? first + rows - top : lowered::SIDE;
    return {begin, end - begin, 0, columns};
}

inline bool is_whole(const Part& part) {
    return part.rows == lowered::SIDE && part.columns == lowered::SIDE;
}

}  // namespace compute
