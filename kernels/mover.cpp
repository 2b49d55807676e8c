// The mover of a core (BRISC): brings the streams of all three engines, lets them begin, and executes its own.
#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "move/execute.h"

namespace {

void bring_streams() {
    const uint32_t bytes = arguments::own(arguments::STREAMS_BYTES);
    const uint32_t source = arguments::own(arguments::STREAMS_SOURCE);
    const uint64_t place = network::of_bank(arguments::own(arguments::STREAMS_BANK), source);
    noc_async_read(place, arguments::l1(arguments::own(arguments::STREAMS)), bytes);
    noc_async_read_barrier();
}

// The runtime has set the first word of every semaphore; the others are this core's own.
void clear_own_words(const semaphores::Semaphores& semaphores) {
    for (uint32_t semaphore = 0; semaphore < semaphores::COUNT; ++semaphore) {
        for (uint32_t engine = 0; engine < 3; ++engine) {
            semaphores.words(semaphore)[1 + engine] = 0;
        }
    }
    memory::settle(semaphores.base + semaphores::START * semaphores::BYTES + 12);
}

}  // namespace

void kernel_main() {
    semaphores::Semaphores semaphores = {get_semaphore(0), semaphores::MOVER, {}};
    clear_own_words(semaphores);
    bring_streams();
    *semaphores.words(semaphores::START) = 1;
    move::run(semaphores);
}
