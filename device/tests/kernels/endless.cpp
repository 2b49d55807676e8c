// Never ends.
#include <cstdint>

#include "api/dataflow/dataflow_api.h"

void kernel_main() {
    volatile uint32_t turns = 0;
    while (true) {
        turns = turns + 1;
    }
}
