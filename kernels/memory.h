// L1 as a RISC-V core sees it: through a cache that does not notice what others write.
#pragma once
#include <cstdint>

namespace memory {

using Pointer = volatile uint32_t*;

inline Pointer at(uint32_t address) { return reinterpret_cast<Pointer>(address); }

// Lets this core see what the network, the packer or another core has written.
inline void refresh() { invalidate_l1_cache(); }

// Returns when the stores of this core are in L1. `address` is that of one of them: what is there is stored once more and
// loaded back, which comes after all stores before it.
inline void settle(uint32_t address) {
    auto* const value = reinterpret_cast<volatile uint16_t*>(address);
    *value = *value;
    invalidate_l1_cache();
    const uint32_t found = *value;
    asm volatile("andi x0, %0, 0" : : "r"(found) : "memory");
}

// `address` and `bytes` are multiples of 4.
inline void fill(uint32_t address, uint32_t bytes, uint32_t word) {
    for (uint32_t end = address + bytes; address < end; address += 4) {
        *at(address) = word;
    }
    settle(address - 4);
}

}  // namespace memory
