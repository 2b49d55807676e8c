// Reads from a place on the network where nothing is: a simulator ends its process.
#include <cstdint>

#include "api/dataflow/dataflow_api.h"

void kernel_main() {
    noc_async_read(get_noc_addr(31, 31, 0), get_write_ptr(0), 64);
    noc_async_read_barrier();
}
