// Multicast: the same bytes to the same place of every core of a rectangle, which this core is not in.
// Reads: `bytes` bytes of L1, free again when it returns. Writes: as many on each core, there by then.
#pragma once
#include "network.h"

namespace move {

inline void multicast(lowered::Words words) {
    using lowered::Multicast;
    const uint32_t rectangle = words[Multicast::rectangle];
    const uint32_t target = arguments::l1(words[Multicast::target]);
    const uint64_t cores = network::of_rectangle(rectangle, words[Multicast::noc], target);
    const uint32_t source = arguments::l1(words[Multicast::address]);
    noc_async_write_multicast(source, cores, words[Multicast::bytes], network::corners(rectangle).cores());
    noc_async_write_barrier();
}

}  // namespace move
