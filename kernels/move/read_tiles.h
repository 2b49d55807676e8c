// ReadTiles: part of every `tile_step`-th tile of a DRAM buffer, to places in L1 that are `address_step` apart.
// Reads: DRAM. Writes: `count` pieces of `bytes` bytes of L1; all are there when it returns.
#pragma once
#include "network.h"

namespace move {

inline bool read_tiles(lowered::Words words) {
    using lowered::ReadTiles;
    network::Pages buffer;
    if (!network::find_buffer(words[ReadTiles::buffer], buffer)) {
        return false;
    }
    uint32_t tile = words[ReadTiles::tile];
    uint32_t target = arguments::l1(words[ReadTiles::address]);
    for (uint32_t count = words[ReadTiles::count]; count > 0; --count) {
        noc_async_read(buffer.at(tile, words[ReadTiles::offset]), target, words[ReadTiles::bytes]);
        tile += words[ReadTiles::tile_step];
        target += words[ReadTiles::address_step];
    }
    noc_async_read_barrier();
    return true;
}

}  // namespace move
