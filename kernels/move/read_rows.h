// ReadRows: part of rows of a DRAM table: of row `first` and those behind it, or of the rows that a list in L1 names.
// Reads: DRAM; words `first .. first + count` of the list. Writes: `count` pieces of `bytes` bytes of L1, there when it
// returns.
#pragma once
#include "../memory.h"
#include "network.h"

namespace move {

inline bool read_rows(lowered::Words words) {
    using lowered::ReadRows;
    network::Pages table;
    if (!network::find_table(words[ReadRows::table], table)) {
        return false;
    }
    const uint32_t list = words[ReadRows::list];
    const uint32_t first = words[ReadRows::first];
    const uint32_t count = words[ReadRows::count];
    memory::refresh();
    uint32_t target = arguments::l1(words[ReadRows::address]);
    for (uint32_t number = first; number < first + count; ++number) {
        const uint32_t row = list == lowered::NONE ? number : *memory::at(arguments::l1(list) + 4 * number);
        noc_async_read(table.at(row, words[ReadRows::offset]), target, words[ReadRows::bytes]);
        target += words[ReadRows::address_step];
    }
    noc_async_read_barrier();
    return true;
}

}  // namespace move
