// What the worker arranges with the operating system.
#pragma once

#include <optional>
#include <string>

namespace gr00t {

// Lets the kernel end this process when nobody can write to the pipe any more: a call into tt-metal may never return.
void arm_lifeline(int descriptor);

// Makes tt-metal keep compiled kernels in this directory, which has to be writable; nothing leaves it with its own. It
// becomes the working directory too: tt-metal writes logs to a folder `generated` there.
void use_cache(const std::optional<std::string>& directory);

}  // namespace gr00t
