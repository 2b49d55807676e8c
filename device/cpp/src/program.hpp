// A program of the card, as the client describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fields.hpp"

namespace gr00t {

struct Core {
    std::uint32_t x, y;

    auto operator<=>(const Core&) const = default;
};

// Cores from the upper left one to the lower right one, both inside.
struct Rectangle {
    Core start, end;
};

struct Compute {
    std::string math_fidelity;
    bool fp32_dest, dst_full_sync, math_approx;
    std::vector<std::uint32_t> unpack_to_dest_fp32;
};

struct RuntimeArgs {
    Core core;
    std::vector<std::uint32_t> args;
};

struct Kernel {
    std::string source, processor;
    std::vector<Rectangle> cores;
    std::vector<std::uint32_t> compile_time_args;
    std::vector<std::pair<std::string, std::string>> defines;
    std::vector<std::string> include_dirs;
    std::vector<std::uint32_t> common_runtime_args;
    std::vector<RuntimeArgs> runtime_args;
    std::optional<Compute> compute;
};

struct CircularBuffer {
    std::uint32_t index;
    std::vector<Rectangle> cores;
    std::uint32_t total_bytes, page_bytes;
    std::string format;
};

struct Semaphore {
    std::uint32_t id;
    std::vector<Rectangle> cores;
    std::uint32_t initial;
};

struct Program {
    std::string name;
    std::vector<Kernel> kernels;
    std::vector<CircularBuffer> circular_buffers;
    std::vector<Semaphore> semaphores;
};

Rectangle read_rectangle(const Json& value, const std::string& path);

// Its fields, and that cores lie on a grid of so many columns and rows.
Program read_program(const Json& value, const std::string& path, Core grid);

// All cores of rectangles, which are disjoint and on the grid.
std::vector<Core> all_cores(const std::vector<Rectangle>& rectangles, Core grid, const std::string& path);

}  // namespace gr00t
