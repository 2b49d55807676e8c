// Cells of a tile of dest to another place of a block.
#pragma once
#include "tile.h"

namespace compute {

// Rows and columns of `part` of tile `index` of dest to rows from `row` on and columns from `column` on of a block; nothing
// else of it changes. Between `begin_packing` and `end_section`.
inline void store_cells(uint32_t index, const Part& part, const Block& to, uint32_t row, uint32_t column) {
    const bool is_in_place = row % lowered::SIDE == part.row && column % lowered::SIDE == part.column;
    if (is_in_place) {
        store_part(index, to.tile(row / lowered::SIDE, column / lowered::SIDE), to.format, part);
        return;
    }
#ifdef TRISC_PACK
    const Block from = cells_of(index, to.format);
    for (uint32_t line = 0; line < part.rows; ++line) {
        copy_row(from, part.row + line, part.column, to, row + line, column, part.columns);
    }
    memory::settle(to.value(row + part.rows - 1, column + part.columns - 1));
#endif
}

}  // namespace compute
