// ReturnCredits: gives credits back to this core's reader, as slots of the ring become free.
// Waits: the ring's semaphore for free slots, `count` times. Raises: semaphore `credit` of `reader`, each time.
#pragma once
#include "signal.h"

namespace move {

inline void return_credits(semaphores::Semaphores& semaphores, lowered::Words words) {
    using lowered::ReturnCredits;
    for (uint32_t count = words[ReturnCredits::count]; count > 0; --count) {
        semaphores.wait(arguments::own(arguments::RING_FREED), 1);
        add(semaphores, words[ReturnCredits::reader], words[ReturnCredits::credit], 1);
    }
}

}  // namespace move
