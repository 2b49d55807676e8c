// RmsNorm: `weight * x / sqrt(mean of squares + eps)` over groups of columns.
// Reads: rows `first_row .. first_row + rows` of `x` in the columns of groups that are written, `weight`. Writes: columns
// `first .. first + count` of the result, to the same rows of `out` in columns `0 .. count`, nothing else.
#pragma once
#include "row_norm.h"

namespace compute {

// False where scratch is too small.
inline bool rms_norm(lowered::Words words) {
    using lowered::RmsNorm;
    if (free_bytes() < NORM_BYTES) {
        return false;
    }
    const uint32_t row_tiles = words[RmsNorm::row_tiles];
    const uint32_t first = words[RmsNorm::first];
    const uint32_t group = words[RmsNorm::group];
    const RowNorm norm = {
        block(words[RmsNorm::x], words[RmsNorm::x_format], row_tiles),
        block(words[RmsNorm::out], words[RmsNorm::out_format], row_tiles),
        words[RmsNorm::first_row],
        words[RmsNorm::rows],
        {first, first + words[RmsNorm::count]},
        words[RmsNorm::eps],
        false,
        false,
        arguments::l1(words[RmsNorm::weight]),
        0};
    for (uint32_t column = 0; column < words[RmsNorm::columns]; column += group) {
        normalise_group(norm, {column, column + group});
    }
    await_results();
    return true;
}

}  // namespace compute
