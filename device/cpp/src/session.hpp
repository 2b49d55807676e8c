// One client's session: obeys requests in their turn.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "card.hpp"
#include "staging.hpp"
#include "state.hpp"

namespace gr00t {

constexpr std::uint32_t PROTOCOL = 1;

class Session {
public:
    // The fields of the reply.
    Json obey(const std::string& request, Fields& fields, const std::vector<int>& descriptors);
    // Closes the card, if it is open.
    void leave();
    bool is_over() const { return is_over_; }

private:
    struct Buffer {
        std::string label;
        Memory memory;
    };

    struct Built {
        std::string name;
        std::size_t number;
        // Whether it has run: its kernels are compiled and lie on the card.
        bool is_warm;
    };

    struct Transfer {
        const Buffer* buffer;
        std::uint64_t offset;
        std::span<std::byte> data;
    };

    Json open(Fields& fields, const std::vector<int>& descriptors);
    Json allocate(Fields& fields);
    Json upload(Fields& fields);
    Json build(Fields& fields);
    Json run(Fields& fields);
    Json begin_capture(Fields& fields);
    Json end_capture(Fields& fields);
    Json write_inputs(Fields& fields);
    Json replay(Fields& fields);
    Json read(Fields& fields);
    Json telemetry(Fields& fields);
    Json close(Fields& fields);

    Transfer read_transfer(Fields& fields);

    State state_ = State::New;
    bool has_captured_ = false;
    bool is_over_ = false;
    std::uint8_t queues_ = 1;
    std::uint64_t event_ = 0;
    // Whether queue 1 may still be writing.
    bool is_writing_ = false;
    CardFacts facts_;
    std::unique_ptr<Card> card_;
    std::optional<Staging> staging_;
    std::vector<Buffer> buffers_;
    std::vector<Built> programs_;
    std::vector<std::size_t> traces_;
};

}  // namespace gr00t
