// Send: pieces that are equally far apart, to another core or within this one.
// Reads: `count` pieces of `bytes` bytes of L1, free again when it returns. Writes: as many in the L1 of `core`, there by
// then, so that a Signal that follows tells of bytes that have come.
#pragma once
#include "network.h"

namespace move {

inline void send(lowered::Words words) {
    using lowered::Send;
    uint32_t source = arguments::l1(words[Send::address]);
    uint32_t target = arguments::l1(words[Send::target]);
    for (uint32_t count = words[Send::count]; count > 0; --count) {
        noc_async_write(source, network::of_core(words[Send::core], target), words[Send::bytes]);
        source += words[Send::step];
        target += words[Send::target_step];
    }
    noc_async_write_barrier();
}

}  // namespace move
