// Addresses on the network of a data-movement core: cores of the grid, banks of DRAM, pages of buffers and tables.
#pragma once
#include <cstdint>

#include "../arguments.h"
#include "../lowered.h"

namespace network {

constexpr uint32_t BANKS = 8;
static_assert(NUM_DRAM_BANKS == BANKS, "tiles are dealt out to eight banks");

struct Place {
    uint32_t x;
    uint32_t y;
};

inline uint32_t packed_byte(uint32_t first_word, uint32_t index) {
    return arguments::common(first_word + index / 4) >> (8 * (index % 4)) & 0xff;
}

// Of a core, as operands name it: its column in the lowest byte, its row in the next one.
inline Place place(uint32_t core) {
    return {packed_byte(arguments::COLUMN_PLACES, core & 0xff), packed_byte(arguments::ROW_PLACES, core >> 8 & 0xff)};
}

// `address` is where it is in the core's L1, not an address of the streams.
inline uint64_t of_core(uint32_t core, uint32_t address) {
    const Place at = place(core);
    return get_noc_addr(at.x, at.y, address);
}

// A rectangle of cores, whichever of its corners an operand names first.
struct Corners {
    uint32_t left;
    uint32_t top;
    uint32_t right;
    uint32_t bottom;

    uint32_t cores() const { return (right - left + 1) * (bottom - top + 1); }
};

inline Corners corners(uint32_t rectangle) {
    const uint32_t x[2] = {rectangle & 0xff, rectangle >> 16 & 0xff};
    const uint32_t y[2] = {rectangle >> 8 & 0xff, rectangle >> 24};
    return {x[x[1] < x[0]], y[y[1] < y[0]], x[x[1] >= x[0]], y[y[1] >= y[0]]};
}

// The corners of a rectangle stand in the order of the network `noc`; this mover has one network, and turns the corners
// round where it is the other one.
inline uint64_t of_rectangle(uint32_t rectangle, uint32_t noc, uint32_t address) {
    Place start = place(rectangle & 0xffff);
    Place end = place(rectangle >> 16);
    if (noc != noc_index) {
        const Place first = start;
        start = end;
        end = first;
    }
    return get_noc_multicast_addr(start.x, start.y, end.x, end.y, address);
}

inline uint64_t of_bank(uint32_t bank, uint32_t address) { return get_noc_addr_from_bank_id<true>(bank, address); }

// A buffer or a table: equally long pages, page `p` in bank `p % 8`.
struct Pages {
    uint32_t address;
    uint32_t bytes;

    uint64_t at(uint32_t page, uint32_t offset) const {
        return of_bank(page % BANKS, address + page / BANKS * bytes + offset);
    }
};

// Looks up the number of a buffer among `count` entries of the common arguments that begin with word `entry`.
inline bool find(uint32_t number, uint32_t count, uint32_t entry, Pages& pages) {
    for (uint32_t index = 0; index < count; ++index, entry += arguments::DRAM_WORDS) {
        if (arguments::common(entry) == number) {
            pages = {arguments::common(entry + 1), arguments::common(entry + 2)};
            return true;
        }
    }
    return false;
}

inline bool find_buffer(uint32_t number, Pages& pages) {
    return find(number, arguments::common(arguments::BUFFERS), arguments::DRAM, pages);
}

inline bool find_table(uint32_t number, Pages& pages) {
    const uint32_t buffers = arguments::common(arguments::BUFFERS);
    const uint32_t first = arguments::DRAM + buffers * arguments::DRAM_WORDS;
    return find(number, arguments::common(arguments::TABLES), first, pages);
}

}  // namespace network
