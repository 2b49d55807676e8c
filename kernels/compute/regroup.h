// Regroup: as CopyBlock; takes every `x_row_step`-th row to neighbouring rows, and neighbouring columns to every
// `out_column_step`-th.
// Reads: the named cells of `x`. Writes: those of `out`, nothing else; they are in L1 when the unpack thread goes on.
#pragma once
#include "cells.h"

namespace compute {

inline void regroup(lowered::Words words) {
#ifdef TRISC_UNPACK
    using lowered::Regroup;
    const Block x = block(words[Regroup::x], words[Regroup::x_format], words[Regroup::x_row_tiles]);
    const Block out = block(words[Regroup::out], words[Regroup::out_format], words[Regroup::out_row_tiles]);
    const uint32_t x_column = words[Regroup::x_column];
    const uint32_t out_column = words[Regroup::out_column];
    const uint32_t step = words[Regroup::out_column_step];
    const uint32_t columns = words[Regroup::columns];
    uint32_t from = words[Regroup::x_row];
    uint32_t to = words[Regroup::out_row];
    for (uint32_t rows = words[Regroup::rows]; rows > 0; --rows, ++to, from += words[Regroup::x_row_step]) {
        if (step == 1) {
            copy_row(x, from, x_column, out, to, out_column, columns);
            continue;
        }
        for (uint32_t column = 0; column < columns; ++column) {
            copy_row(x, from, x_column + column, out, to, out_column + column * step, 1);
        }
    }
    memory::settle(out.value(words[Regroup::out_row], out_column));
#endif
}

}  // namespace compute
