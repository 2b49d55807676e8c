// Combine: the moments of several parts of rows to mean and `1 / sqrt(variance + eps)` of whole rows.
// Reads: `count` times `rows` pairs of f32, `step` bytes apart. Writes: `rows` pairs of f32 at `out`, nothing else.
//
// Pairs lie as they come in a tile of dest: eight in a row of a face, the first of each in an even column. Tiles are read
// as a whole; what lies behind the pairs is worked on and left.
#pragma once
#include "number.h"
#include "tile.h"
#ifdef TRISC_MATH
#include "sfpu/pairs.h"
#endif

namespace compute {

constexpr uint32_t PAIR_BYTES = 8;
constexpr uint32_t PAIRS_IN_TILE = lowered::TILE_VALUES / 2;

// So many words of a tile of f32, as they lie in it.
inline void store_words(uint32_t index, uint32_t to, uint32_t count) {
#ifdef TRISC_PACK
    const Block from = cells_of(index, lowered::F32);
    copy_run(from.address, lowered::F32, to, lowered::F32, count);
    memory::settle(to + 4 * (count - 1));
#endif
}

inline void combine(lowered::Words words) {
    using lowered::Combine;
    const uint32_t rows = words[Combine::rows];
    for (uint32_t row = 0; row < rows; row += PAIRS_IN_TILE) {
        const uint32_t pairs = rows - row < PAIRS_IN_TILE ? rows - row : PAIRS_IN_TILE;
        const uint32_t parts = arguments::l1(words[Combine::parts] + row * PAIR_BYTES);
        begin_section();
        load_tile(parts, lowered::F32, 0);
        for (uint32_t part = 1; part < words[Combine::count]; ++part) {
            load_tile(parts + part * words[Combine::step], lowered::F32, 1);
#ifdef TRISC_MATH
            lanes::begin();
            lanes::add_pairs(pairs);
            lanes::end();
#endif
        }
#ifdef TRISC_MATH
        lanes::begin();
        lanes::finish_pairs({f32_bits(words[Combine::width]), words[Combine::eps], true}, pairs);
        lanes::end();
#endif
        begin_packing();
        store_words(0, arguments::l1(words[Combine::out] + row * PAIR_BYTES), 2 * pairs);
        end_section();
    }
    await_results();
}

}  // namespace compute
