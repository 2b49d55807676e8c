// LayerNorm: `(x - mean) / sqrt(variance + eps)` of rows, scaled.
// Reads: rows `first_row .. first_row + rows` of `x` in all its columns, `gain` and `shift`. Writes: columns
// `first .. first + count` of the result, to the same rows of `out` in columns `0 .. count`, nothing else.
#pragma once
#include "row_norm.h"

namespace compute {

// False where scratch is too small.
inline bool layer_norm(lowered::Words words) {
    using lowered::LayerNorm;
    if (free_bytes() < NORM_BYTES) {
        return false;
    }
    const uint32_t row_tiles = words[LayerNorm::row_tiles];
    const uint32_t first = words[LayerNorm::first];
    const bool is_scaled = words[LayerNorm::scaling] != lowered::UNSCALED;
    const RowNorm norm = {
        block(words[LayerNorm::x], words[LayerNorm::x_format], row_tiles),
        block(words[LayerNorm::out], words[LayerNorm::out_format], row_tiles),
        words[LayerNorm::first_row],
        words[LayerNorm::rows],
        {first, first + words[LayerNorm::count]},
        words[LayerNorm::eps],
        true,
        words[LayerNorm::scaling] == lowered::MODULATED,
        is_scaled ? arguments::l1(words[LayerNorm::gain]) : 0,
        is_scaled ? arguments::l1(words[LayerNorm::shift]) : 0};
    normalise_group(norm, {0, words[LayerNorm::columns]});
    await_results();
    return true;
}

}  // namespace compute
