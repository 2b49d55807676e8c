// MoveRows: rows of a block one tile wide to places that a list names, or from there; ScatterAdd adds them.
// Reads: `count` words of the list, and the named rows of `x` (and of `out`, where they are added to). Writes: the named
// rows of `out` in their first `columns` columns, nothing else. Scratch: two tiles of f32.
#pragma once
#include "accumulate.h"

namespace compute {

// Rows of a tile in scratch that are added at once: sums of one row follow one another, so a row that comes again waits
// for the next batch.
struct Batch {
    uint32_t first;
    uint32_t count;
};

inline uint32_t list_word(uint32_t list, uint32_t number) { return *memory::at(list + 4 * number); }

inline Batch next_batch(uint32_t list, uint32_t first, uint32_t all) {
    uint32_t count = 0;
    while (count < lowered::SIDE && first + count < all) {
        for (uint32_t other = 0; other < count; ++other) {
            if (list_word(list, first + other) == list_word(list, first + count)) {
                return {first, count};
            }
        }
        ++count;
    }
    return {first, count};
}

// Sums of the rows in scratch, by the vector unit.
inline void add_rows(const Block& terms, const Block& sums) {
    begin_section();
    load_tile(terms.address, terms.format, 0);
    load_tile(sums.address, sums.format, 1);
    constexpr uint32_t F32_ONE = 0x3f800000;
    add_scaled(F32_ONE);
    begin_packing();
    store_tile(1, sums.address, sums.format);
    end_section();
    await_results();
}

// Where rows come from and go to, as the operands say.
struct Rows {
    Block x;
    uint32_t x_row;
    Block out;
    uint32_t out_row;
    uint32_t list;
    uint32_t count;
    uint32_t columns;
};

inline void scatter_add(const Rows& rows) {
    const Block terms = {scratch(FREE), lowered::F32, 1};
    const Block sums = {scratch(FREE + F32_TILE), lowered::F32, 1};
#ifdef TRISC_UNPACK
    uint32_t done = 0;
    while (done < rows.count) {
        const Batch batch = next_batch(rows.list, done, rows.count);
        for (uint32_t row = 0; row < batch.count; ++row) {
            const uint32_t to = rows.out_row + list_word(rows.list, batch.first + row);
            copy_row(rows.x, rows.x_row + batch.first + row, 0, terms, row, 0, rows.columns);
            copy_row(rows.out, to, 0, sums, row, 0, rows.columns);
        }
        memory::settle(sums.address);
        tell_others(1);
        add_rows(terms, sums);
        for (uint32_t row = 0; row < batch.count; ++row) {
            const uint32_t to = rows.out_row + list_word(rows.list, batch.first + row);
            copy_row(sums, row, 0, rows.out, to, 0, rows.columns);
        }
        done += batch.count;
    }
    memory::settle(rows.out.address);
    tell_others(0);
#else
    while (told_by_unpacker() != 0) {
        add_rows(terms, sums);
    }
#endif
}

#ifdef TRISC_UNPACK
inline void copy_rows(const Rows& rows, bool gathers) {
    for (uint32_t number = 0; number < rows.count; ++number) {
        const uint32_t word = list_word(rows.list, number);
        const uint32_t from = rows.x_row + (gathers ? word : number);
        const uint32_t to = rows.out_row + (gathers ? number : word);
        copy_row(rows.x, from, 0, rows.out, to, 0, rows.columns);
    }
    memory::settle(rows.out.address);
}

inline bool is_list_valid(const Rows& rows, uint32_t limit) {
    for (uint32_t number = 0; number < rows.count; ++number) {
        if (list_word(rows.list, number) >= limit) {
            return false;
        }
    }
    return true;
}
#endif

// False where a word of the list is too large, or scratch too small.
inline bool move_rows(lowered::Words words) {
    using lowered::MoveRows;
    const Rows rows = {
        block(words[MoveRows::x], words[MoveRows::x_format], words[MoveRows::x_row_tiles]), words[MoveRows::x_row],
        block(words[MoveRows::out], words[MoveRows::out_format], words[MoveRows::out_row_tiles]), words[MoveRows::out_row],
        arguments::l1(words[MoveRows::list]), words[MoveRows::count], words[MoveRows::columns]};
    const uint32_t motion = words[MoveRows::motion];
    if (motion == lowered::SCATTER_ADD && free_bytes() < ADD_ROWS_BYTES) {
        return false;
    }
#ifdef TRISC_UNPACK
    if (!is_list_valid(rows, words[MoveRows::limit])) {
        return false;
    }
#endif
    if (motion == lowered::SCATTER_ADD) {
        scatter_add(rows);
        return true;
    }
    UNPACK((copy_rows(rows, motion == lowered::GATHER)));
    return true;
}

}  // namespace compute
