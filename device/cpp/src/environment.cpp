#include "environment.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "refusal.hpp"

namespace gr00t {

void arm_lifeline(int descriptor) {
    std::signal(SIGIO, SIG_DFL);
    const int flags = fcntl(descriptor, F_GETFL);
    const bool is_armed = flags >= 0 && fcntl(descriptor, F_SETOWN, getpid()) == 0 &&
                          fcntl(descriptor, F_SETFL, flags | O_ASYNC) == 0;
    if (!is_armed) {
        throw Refusal("argument", "the third descriptor of 'open' is no pipe");
    }
    pollfd hung_up{descriptor, POLLIN, 0};
    if (poll(&hung_up, 1, 0) > 0) {
        std::raise(SIGIO);
    }
}

void use_cache(const std::optional<std::string>& directory) {
    if (!directory) {
        return;
    }
    std::error_code error;
    std::filesystem::create_directories(*directory, error);
    std::string probe = *directory + "/probe-XXXXXX";
    const int file = error ? -1 : mkstemp(probe.data());
    if (file < 0) {
        const std::string reason = error ? error.message() : std::generic_category().message(errno);
        const std::string what = "compiled kernels cannot be kept in '" + *directory + "': " + reason;
        throw Refusal("cache", what + "; name a writable directory");
    }
    unlink(probe.c_str());
    close(file);
    std::filesystem::current_path(*directory);
    setenv("TT_METAL_CACHE", std::filesystem::current_path().c_str(), 1);
}

}  // namespace gr00t
