// The worker's "no".
#pragma once

#include <stdexcept>
#include <string>

namespace gr00t {

// Ends a request, not the session; but for "device".
class Refusal : public std::runtime_error {
public:
    Refusal(std::string code, const std::string& message) : runtime_error(shortened(message)), code_(std::move(code)) {}

    const std::string& code() const { return code_; }

private:
    static constexpr std::size_t MAX_BYTES = 8000;

    // Begin and end of a text: an error of tt-metal names its cause first, one of a compiler last.
    static std::string shortened(const std::string& text) {
        if (text.size() <= MAX_BYTES) {
            return text;
        }
        const std::size_t half = MAX_BYTES / 2 - 3;
        return text.substr(0, half) + " [...] " + text.substr(text.size() - half);
    }

    std::string code_;
};

}  // namespace gr00t
