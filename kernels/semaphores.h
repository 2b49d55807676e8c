// The semaphores of a core: counters that only grow, so that nobody has to subtract from what others add to.
//
// A semaphore has 16 bytes of L1. Word 0 is added to by other cores, over the network; the runtime gives it its first
// value before any core of the program begins. Words 1 to 3 are added to by the mover, the feeder and compute of the core
// itself, one word each, so that every word has one writer. A wait compares the sum of the four words with what this
// engine has waited for so far; hence only one engine of a core waits for a semaphore.
#pragma once
#include <cstdint>

namespace semaphores {

enum Engine : uint32_t { MOVER, FEEDER, COMPUTE };

// Of a core, the last of them for the start of its engines.
constexpr uint32_t COUNT = 16;
constexpr uint32_t START = COUNT - 1;
constexpr uint32_t BYTES = 16;

struct Semaphores {
    uint32_t base;
    Engine engine;
    // What this engine has waited for, by semaphore.
    uint32_t taken[COUNT];

    volatile uint32_t* words(uint32_t semaphore) const {
        return reinterpret_cast<volatile uint32_t*>(base + semaphore * BYTES);
    }

    uint32_t given(uint32_t semaphore) const {
        invalidate_l1_cache();
        volatile uint32_t* of = words(semaphore);
        return of[0] + of[1] + of[2] + of[3];
    }

    // Waits until the semaphore is at least `value`, and subtracts that.
    void wait(uint32_t semaphore, uint32_t value) {
        const uint32_t needed = taken[semaphore] + value;
        while (static_cast<int32_t>(given(semaphore) - needed) < 0) {
        }
        taken[semaphore] = needed;
    }

    // Adds to a semaphore of this core. What was written before has to be in L1.
    void raise(uint32_t semaphore, uint32_t value) const {
        volatile uint32_t* mine = words(semaphore) + 1 + engine;
        *mine = *mine + value;
    }
};

// Until the mover has brought the streams.
inline void await_start(const Semaphores& semaphores) {
    do {
        invalidate_l1_cache();
    } while (*semaphores.words(START) == 0);
}

}  // namespace semaphores
