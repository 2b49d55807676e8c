// From the client's description of a program to that of tt-metal.
#pragma once

#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/program_descriptors.hpp>
#include <vector>

#include "program.hpp"

namespace gr00t {

tt::tt_metal::CoreRangeSet core_ranges(const std::vector<Rectangle>& rectangles);
tt::tt_metal::ProgramDescriptor descriptor(const Program& program);

}  // namespace gr00t
