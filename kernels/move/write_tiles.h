// WriteTiles: the way back of ReadTiles.
// Reads: `count` pieces of `bytes` bytes of L1, free again when it returns. Writes: DRAM, which has them by then.
#pragma once
#include "network.h"

namespace move {

inline bool write_tiles(lowered::Words words) {
    using lowered::WriteTiles;
    network::Pages buffer;
    if (!network::find_buffer(words[WriteTiles::buffer], buffer)) {
        return false;
    }
    uint32_t tile = words[WriteTiles::tile];
    uint32_t source = arguments::l1(words[WriteTiles::address]);
    for (uint32_t count = words[WriteTiles::count]; count > 0; --count) {
        noc_async_write(source, buffer.at(tile, words[WriteTiles::offset]), words[WriteTiles::bytes]);
        tile += words[WriteTiles::tile_step];
        source += words[WriteTiles::address_step];
    }
    noc_async_write_barrier();
    return true;
}

}  // namespace move
