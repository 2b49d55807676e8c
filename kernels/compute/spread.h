// Spread: values of bf16 that stand row by row, `x_row_step` values apart, to a block; its columns are `out_column_step`
// apart.
// Reads: `rows` times `columns` values at `x`. Writes: the named cells of `out`, nothing else; they are in L1 when the
// unpack thread goes on.
#pragma once
#include "cells.h"

namespace compute {

inline void spread(lowered::Words words) {
#ifdef TRISC_UNPACK
    using lowered::Spread;
    const Block out = block(words[Spread::out], words[Spread::out_format], words[Spread::out_row_tiles]);
    const uint32_t out_row = words[Spread::out_row];
    const uint32_t out_column = words[Spread::out_column];
    const uint32_t step = words[Spread::out_column_step];
    const uint32_t columns = words[Spread::columns];
    uint32_t line = arguments::l1(words[Spread::x]) + 2 * words[Spread::first];
    for (uint32_t row = 0; row < words[Spread::rows]; ++row, line += 2 * words[Spread::x_row_step]) {
        for (uint32_t column = 0; column < columns; ++column) {
            const uint32_t bits = load_bits(line + 2 * column, lowered::BF16);
            store_bits(out.value(out_row + row, out_column + column * step), out.format, bits);
        }
    }
    memory::settle(out.value(out_row, out_column));
#endif
}

}  // namespace compute
