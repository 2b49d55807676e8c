// What a session needs of a card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program.hpp"

namespace gr00t {

struct OpenSettings {
    std::uint32_t device_id;
    std::optional<std::uint32_t> worker_l1_size;
    std::uint32_t l1_small_size;
    std::uint64_t trace_region_size;
    std::uint8_t queues;
};

// The card that was opened: the reply to `open`.
struct CardFacts {
    std::string arch;
    Core grid;
    std::vector<Core> noc;
    std::uint32_t dram_banks, dram_alignment, l1_alignment;
    std::uint64_t l1_bytes;
};

struct DramPlace {
    std::uint32_t page_bytes, pages;
};

struct L1Place {
    std::uint32_t bytes_per_core;
    Rectangle cores;
};

// A buffer. Only its card knows what `number` is.
struct Memory {
    std::uint64_t address, bytes, granule;
    std::size_t number;
};

// A card and what has been made on it; programs, traces and events are numbered from 0. Everything is checked before it
// comes here. Any exception but a Refusal means that the card has failed.
class Card {
public:
    virtual ~Card() = default;

    virtual CardFacts open(const OpenSettings& settings) = 0;
    virtual Memory allocate(const std::string& name, const DramPlace& place) = 0;
    virtual Memory allocate(const std::string& name, const L1Place& place) = 0;

    // Parts that begin and end at granules. What is written may change after the call.
    virtual void write(const Memory& memory, std::uint64_t offset, std::span<const std::byte> data, int queue) = 0;
    virtual void read(const Memory& memory, std::uint64_t offset, std::span<std::byte> into) = 0;

    virtual std::size_t build(const Program& program) = 0;
    // Runs on queue 0 without waiting, or records while a trace is captured.
    virtual void enqueue(std::size_t program) = 0;
    // Until all of that is done. Writes and reads are done when they return.
    virtual void wait() = 0;

    virtual void begin_capture() = 0;
    virtual std::size_t end_capture() = 0;
    // On queue 1, behind what was written there; it replaces the one before.
    virtual void record_event() = 0;
    virtual void replay(std::size_t trace, bool after_event) = 0;

    virtual std::optional<std::uint64_t> allocated_dram() = 0;
    virtual std::optional<std::uint64_t> allocated_l1_per_core() = 0;
    virtual void close() = 0;
};

// What this worker is.
struct Identity {
    std::string worker, tt_metal;
};

Identity identity();
std::unique_ptr<Card> make_card();

}  // namespace gr00t
