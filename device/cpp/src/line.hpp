// Frames on the socket: four bytes of length, then JSON.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fields.hpp"

namespace gr00t {

// What has come is no frame of the protocol.
class BadFrame : public std::runtime_error {
    using runtime_error::runtime_error;
};

// The client has gone in the middle of a frame that was sent to it.
class LineEnded : public std::runtime_error {
    using runtime_error::runtime_error;
};

class Line {
public:
    explicit Line(const std::string& path);
    ~Line();
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    void send(const Json& message);
    // The next frame; nothing where the socket ends between two.
    std::optional<Json> receive();
    // Those that came with the last frame.
    const std::vector<int>& descriptors() const { return descriptors_; }

private:
    // As many bytes, or fewer where the socket ends.
    std::string read(std::size_t count);

    int socket_;
    std::vector<int> descriptors_;
};

}  // namespace gr00t
