// ReadArena: bytes of a bank of the arena.
// Reads: DRAM. Writes: `bytes` bytes of L1, there when it returns.
#pragma once
#include "network.h"

namespace move {

inline uint64_t arena(uint32_t bank, uint32_t offset) {
    return network::of_bank(bank, arguments::common(arguments::ARENA_BASE) + offset);
}

inline void read_arena(lowered::Words words) {
    using lowered::ReadArena;
    const uint64_t source = arena(words[ReadArena::bank], words[ReadArena::offset]);
    noc_async_read(source, arguments::l1(words[ReadArena::address]), words[ReadArena::bytes]);
    noc_async_read_barrier();
}

}  // namespace move
