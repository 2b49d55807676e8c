// Signal and SignalAll: add to a semaphore of this core, of another one, or of all cores of a rectangle. Transfers are
// complete when they return, so that what they moved is there before the semaphore tells of it.
#pragma once
#include "../semaphores.h"
#include "network.h"

namespace move {

// Semaphores lie at the same address on every core of a program.
inline void add(const semaphores::Semaphores& semaphores, uint32_t core, uint32_t semaphore, uint32_t value) {
    const uint32_t own = get_absolute_logical_x() | get_absolute_logical_y() << 8;
    if (core == own) {
        semaphores.raise(semaphore, value);
        return;
    }
    const uint32_t address = semaphores.base + semaphore * semaphores::BYTES;
    noc_semaphore_inc(network::of_core(core, address), value);
    noc_async_atomic_barrier();
}

inline void signal(const semaphores::Semaphores& semaphores, lowered::Words words) {
    using lowered::Signal;
    add(semaphores, words[Signal::core], words[Signal::semaphore], words[Signal::value]);
}

// One increment for each core: increments that are multicast are not known to work.
inline void signal_all(const semaphores::Semaphores& semaphores, lowered::Words words) {
    using lowered::SignalAll;
    const network::Corners corners = network::corners(words[SignalAll::rectangle]);
    const uint32_t address = semaphores.base + words[SignalAll::semaphore] * semaphores::BYTES;
    for (uint32_t y = corners.top; y <= corners.bottom; ++y) {
        for (uint32_t x = corners.left; x <= corners.right; ++x) {
            noc_semaphore_inc(network::of_core(x | y << 8, address), words[SignalAll::value]);
        }
    }
    noc_async_atomic_barrier();
}

}  // namespace move
