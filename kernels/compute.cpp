// Compute of a core: the three threads of its Tensix engine execute one stream once the mover has brought it.
#include <cstdint>

#include "api/compute/common.h"
#include "compute/execute.h"
#include "compute/launch.h"

void kernel_main() {
    compute::State state = {{compute::semaphores_base(), semaphores::COMPUTE, {}}, {}};
    semaphores::await_start(state.semaphores);
    compute::begin_kernel();
    MATH((lanes::begin_kernel()));
    compute::run(state);
}
