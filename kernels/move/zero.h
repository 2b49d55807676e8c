// Zero: fills with zeros.
// Writes: `bytes` bytes of L1 (a multiple of 4, from a multiple of 16 on), there when it returns.
#pragma once
#include "../arguments.h"
#include "../lowered.h"
#include "../memory.h"

namespace move {

// Most of them are copied from the zeros that every core has: the network moves more at a time than the RISC-V core.
inline void zero(lowered::Words words) {
    using lowered::Zero;
    uint32_t target = arguments::l1(words[Zero::address]);
    uint32_t bytes = words[Zero::bytes];
    const uint64_t zeros = get_noc_addr(MEM_ZEROS_BASE);
    for (; bytes >= MEM_ZEROS_SIZE; bytes -= MEM_ZEROS_SIZE, target += MEM_ZEROS_SIZE) {
        noc_async_read(zeros, target, MEM_ZEROS_SIZE);
    }
    if (bytes > 0) {
        memory::fill(target, bytes, 0);
    }
    noc_async_read_barrier();
}

}  // namespace move
