// The line to the client: a reply to each request, until the end. `gr00t_device_worker --socket PATH`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "line.hpp"
#include "refusal.hpp"
#include "session.hpp"

namespace gr00t {
namespace {

constexpr int EXIT_ENVIRONMENT = 2;
constexpr int EXIT_DEVICE = 3;
constexpr int EXIT_FRAME = 4;

Json refused(const std::string& code, const std::string& message) {
    return {{"error", {{"code", code}, {"message", message}}}};
}

Json answer(Session& session, Json message, const std::vector<int>& descriptors) {
    message.erase("id");
    try {
        if (!message.contains("request") || !message["request"].is_string()) {
            throw Refusal("argument", "the message names no request");
        }
        const std::string request = message["request"].get<std::string>();
        message.erase("request");
        Fields fields(message, request);
        return {{"ok", session.obey(request, fields, descriptors)}};
    } catch (const Refusal& refusal) {
        return refused(refusal.code(), refusal.what());
    } catch (const std::exception& error) {
        return refused("device", Refusal("device", error.what()).what());
    }
}

int serve(Line& line, Session& session) {
    const Identity self = identity();
    const Json hello = {
        {"protocol", PROTOCOL}, {"worker", self.worker}, {"tt_metal", self.tt_metal}, {"pid", getpid()}};
    line.send({{"id", 0}, {"ok", hello}});
    while (!session.is_over()) {
        const std::optional<Json> message = line.receive();
        if (!message) {
            break;
        }
        const Json id = message->value("id", Json());
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() == 0) {
            throw BadFrame("its id is " + id.dump());
        }
        Json reply = answer(session, *message, line.descriptors());
        const bool has_failed = reply.contains("error") && reply["error"]["code"] == "device";
        reply["id"] = id;
        line.send(reply);
        if (has_failed) {
            return EXIT_DEVICE;
        }
    }
    session.leave();
    return EXIT_SUCCESS;
}

int run(const std::string& path) {
    try {
        Line line(path);
        Session session;
        try {
            return serve(line, session);
        } catch (const BadFrame& error) {
            std::fprintf(stderr, "this is no frame of the protocol: %s\n", error.what());
            session.leave();
            return EXIT_FRAME;
        } catch (const LineEnded&) {
            session.leave();
            return EXIT_SUCCESS;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_ENVIRONMENT;
    }
}

}  // namespace
}  // namespace gr00t

int main(int count, char** words) {
    if (count != 3 || std::string(words[1]) != "--socket") {
        std::fprintf(stderr, "usage: %s --socket PATH\n", words[0]);
        return gr00t::EXIT_ENVIRONMENT;
    }
    const int status = gr00t::run(words[2]);
    std::fflush(nullptr);
    // After a failure the destructors of tt-metal may wait for a card that does not answer.
    _exit(status);
}
