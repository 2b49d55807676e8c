// The runtime arguments, the same for the three kernels of a core; README.md says what the host puts there.
//
// Common to all cores of a program: a head, then three words for each DRAM buffer and table of the program.
// Of one core: a head, then five words for each segment.
#pragma once
#include <cstdint>

namespace arguments {

// Common words.
constexpr uint32_t L1_BASE = 0;
constexpr uint32_t ARENA_BASE = 1;
constexpr uint32_t BUFFERS = 2;
constexpr uint32_t TABLES = 3;
// Places of the grid's columns and rows on the network, four bytes a word.
constexpr uint32_t COLUMN_PLACES = 4;
constexpr uint32_t ROW_PLACES = 7;
constexpr uint32_t DRAM = 10;
constexpr uint32_t DRAM_WORDS = 3;

// Words of one core.
constexpr uint32_t STREAMS_BANK = 0;
constexpr uint32_t STREAMS_SOURCE = 1;
constexpr uint32_t STREAMS = 2;
constexpr uint32_t STREAMS_BYTES = 3;
constexpr uint32_t SCRATCH = 4;
constexpr uint32_t SCRATCH_BYTES = 5;
constexpr uint32_t RING = 6;
constexpr uint32_t RING_SLOTS = 7;
constexpr uint32_t RING_PACKETS = 8;
constexpr uint32_t RING_FREED = 9;
constexpr uint32_t BANK = 10;
constexpr uint32_t SEGMENTS = 11;
constexpr uint32_t SEGMENT = 12;

// Words of a segment.
constexpr uint32_t FIRST_PASS = 0;
constexpr uint32_t PASSES = 1;
constexpr uint32_t COUNTS = 2;  // instructions of mover, feeder and compute
constexpr uint32_t SEGMENT_WORDS = 5;

inline uint32_t common(uint32_t word) { return get_common_arg_val<uint32_t>(word); }
inline uint32_t own(uint32_t word) { return get_arg_val<uint32_t>(word); }

// Where address 0 of the streams lies in L1.
inline uint32_t l1(uint32_t address) { return common(L1_BASE) + address; }

}  // namespace arguments
