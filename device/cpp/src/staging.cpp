#include "staging.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "refusal.hpp"

namespace gr00t {

namespace {
constexpr std::uint64_t MAX_STAGING_BYTES = std::uint64_t{1} << 30;
}

StagingPart read_staging_part(const Json& value, const std::string& path) {
    Fields fields(value, path);
    StagingPart part{fields.number("offset", 0, MAX_STAGING_BYTES), fields.number("bytes", 1, MAX_STAGING_BYTES)};
    fields.finish();
    return part;
}

Staging::Staging(int descriptor, std::uint64_t bytes) {
    struct stat found{};
    if (fstat(descriptor, &found) != 0 || static_cast<std::uint64_t>(found.st_size) != bytes) {
        const std::string sizes = std::to_string(found.st_size) + " bytes, 'open' says " + std::to_string(bytes);
        throw Refusal("argument", "the staging memory has " + sizes);
    }
    void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED) {
        throw Refusal("argument", std::string("the staging memory cannot be mapped: ") + std::strerror(errno));
    }
    memory_ = {static_cast<std::byte*>(start), bytes};
}

std::span<std::byte> Staging::part(const StagingPart& part) const {
    const std::uint64_t end = part.offset + part.bytes;
    if (end > memory_.size()) {
        const std::string size = std::to_string(memory_.size());
        throw Refusal(
            "argument", "staging ends at " + std::to_string(end) + "; the staging memory has " + size + " bytes");
    }
    return memory_.subspan(part.offset, part.bytes);
}

}  // namespace gr00t
