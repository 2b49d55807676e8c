// Which requests are accepted when.
#pragma once

#include <string>

namespace gr00t {

enum class State { New, Building, Capturing, Captured };

// Refuses a request that is out of turn, or that there is none of.
void check_turn(State state, const std::string& request);

}  // namespace gr00t
