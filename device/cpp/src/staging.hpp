// Memory that is shared with the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fields.hpp"

namespace gr00t {

// A part of the staging memory, as requests name it.
struct StagingPart {
    std::uint64_t offset, bytes;
};

StagingPart read_staging_part(const Json& value, const std::string& path);

class Staging {
public:
    Staging(int descriptor, std::uint64_t bytes);

    std::span<std::byte> part(const StagingPart& part) const;

private:
    // Mapped until the process ends.
    std::span<std::byte> memory_;
};

}  // namespace gr00t
