// Copies pages of interleaved DRAM from one buffer to another, by way of L1.
//
// Run-time arguments, or common ones where COMMON is defined: address of the source, of the target, first page, pages.
// Compile-time arguments: bytes of a page, banks. Circular buffer 0 has room for a page.
#include <cstdint>

#include "api/dataflow/dataflow_api.h"

#ifdef COMMON
#define ARGUMENT get_common_arg_val<uint32_t>
#else
#define ARGUMENT get_arg_val<uint32_t>
#endif

void kernel_main() {
    const uint32_t source = ARGUMENT(0);
    const uint32_t target = ARGUMENT(1);
    const uint32_t first = ARGUMENT(2);
    const uint32_t pages = ARGUMENT(3);
    constexpr uint32_t page_bytes = get_compile_time_arg_val(0);
    constexpr uint32_t banks = get_compile_time_arg_val(1);
    const uint32_t l1 = get_write_ptr(0);
    for (uint32_t page = first; page < first + pages; ++page) {
        const uint32_t bank = page % banks;
        const uint32_t offset = page / banks * page_bytes;
        noc_async_read(get_noc_addr_from_bank_id<true>(bank, source + offset), l1, page_bytes);
        noc_async_read_barrier();
        noc_async_write(l1, get_noc_addr_from_bank_id<true>(bank, target + offset), page_bytes);
        noc_async_write_barrier();
    }
}
