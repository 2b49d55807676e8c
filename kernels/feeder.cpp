// The feeder of a core (NCRISC): executes its stream once the mover has brought it.
#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "move/execute.h"

void kernel_main() {
    semaphores::Semaphores semaphores = {get_semaphore(0), semaphores::FEEDER, {}};
    semaphores::await_start(semaphores);
    move::run(semaphores);
}
