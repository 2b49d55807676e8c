// CopyBlock: a rectangle of one block to another; rounds where the target is bf16.
// Reads: the rectangle of `x`. Writes: that of `out`, nothing else; it is in L1 when the unpack thread goes on.
#pragma once
#include "cells.h"

namespace compute {

inline void copy_block(lowered::Words words) {
#ifdef TRISC_UNPACK
    using lowered::CopyBlock;
    const Block x = block(words[CopyBlock::x], words[CopyBlock::x_format], words[CopyBlock::x_row_tiles]);
    const Block out = block(words[CopyBlock::out], words[CopyBlock::out_format], words[CopyBlock::out_row_tiles]);
    const uint32_t x_row = words[CopyBlock::x_row];
    const uint32_t out_row = words[CopyBlock::out_row];
    const uint32_t x_column = words[CopyBlock::x_column];
    const uint32_t out_column = words[CopyBlock::out_column];
    const uint32_t columns = words[CopyBlock::columns];
    for (uint32_t row = 0; row < words[CopyBlock::rows]; ++row) {
        copy_row(x, x_row + row, x_column, out, out_row + row, out_column, columns);
    }
    memory::settle(out.value(out_row, out_column));
#endif
}

}  // namespace compute
