#include "state.hpp"

#include <map>
#include <set>

#include "refusal.hpp"

namespace gr00t {
namespace {

using Names = std::set<std::string>;

const Names ALLOCATING = {"allocate", "upload", "build"};
const Names ALL = {"open",        "allocate",     "upload", "build", "run",       "begin_capture",
                   "end_capture", "write_inputs", "replay", "read",  "telemetry", "close"};

const std::map<State, std::pair<std::string, Names>> ACCEPTED = {
    {State::New, {"new", {"open", "close"}}},
    {State::Building,
     {"building",
      {"allocate", "upload", "build", "run", "begin_capture", "write_inputs", "read", "telemetry", "close"}}},
    {State::Capturing, {"capturing", {"run", "end_capture", "telemetry", "close"}}},
    {State::Captured,
     {"captured", {"run", "begin_capture", "write_inputs", "replay", "read", "telemetry", "close"}}},
};

}  // namespace

void check_turn(State state, const std::string& request) {
    if (!ALL.contains(request)) {
        throw Refusal("argument", "there is no request '" + request + "'");
    }
    const auto& [name, accepted] = ACCEPTED.at(state);
    if (accepted.contains(request)) {
        return;
    }
    if (ALLOCATING.contains(request) && state != State::New) {
        const std::string rule = " after a capture has begun: allocate, upload and build all before the first one";
        throw Refusal("captured", request + rule);
    }
    std::string list;
    for (const std::string& text : accepted) {
        list += (list.empty() ? "" : ", ") + text;
    }
    throw Refusal("state", request + " in state '" + name + "', which accepts " + list);
}

}  // namespace gr00t
