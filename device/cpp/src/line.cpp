#include "line.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace gr00t {
namespace {

constexpr std::size_t HEAD_BYTES = 4;
constexpr std::size_t MAX_FRAME_BYTES = 4 * 1024 * 1024;
constexpr std::size_t MOST_DESCRIPTORS = 3;
constexpr std::size_t READ_BYTES = 1 << 16;

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

void take_descriptors(msghdr& message, std::vector<int>& descriptors) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        const std::size_t before = descriptors.size();
        descriptors.resize(before + count);
        std::memcpy(descriptors.data() + before, CMSG_DATA(part), count * sizeof(int));
    }
}

}  // namespace

Line::Line(const std::string& path) : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (socket_ < 0 || path.size() >= sizeof(address.sun_path)) {
        errno = socket_ < 0 ? errno : ENAMETOOLONG;
        fail("the client's socket '" + path + "' cannot be used");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        fail("the client's socket '" + path + "' cannot be used");
    }
}

Line::~Line() { close(socket_); }

void Line::send(const Json& message) {
    const std::string body = message.dump(-1, ' ', false, Json::error_handler_t::replace);
    std::string frame(HEAD_BYTES, '\0');
    for (std::size_t index = 0; index < HEAD_BYTES; ++index) {
        frame[index] = static_cast<char>(body.size() >> (8 * index));
    }
    frame += body;
    for (std::size_t sent = 0; sent < frame.size();) {
        const ssize_t count = ::send(socket_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
        if (count >= 0) {
            sent += static_cast<std::size_t>(count);
        } else if (errno != EINTR) {
            throw LineEnded("the client has ended the line");
        }
    }
}

std::optional<Json> Line::receive() {
    descriptors_.clear();
    const std::string head = read(HEAD_BYTES);
    if (head.empty()) {
        return std::nullopt;
    }
    std::size_t length = 0;
    for (std::size_t index = 0; index < head.size(); ++index) {
        length |= static_cast<std::size_t>(static_cast<unsigned char>(head[index])) << (8 * index);
    }
    if (head.size() < HEAD_BYTES || length == 0 || length > MAX_FRAME_BYTES) {
        throw BadFrame("a length of " + std::to_string(length) + "; a frame has 1 to 4194304 bytes");
    }
    const std::string body = read(length);
    if (body.size() < length) {
        throw BadFrame("it ends after " + std::to_string(body.size()) + " of " + std::to_string(length) + " bytes");
    }
    Json message = Json::parse(body, nullptr, false);
    if (!message.is_object()) {
        throw BadFrame("its body is no JSON object");
    }
    return message;
}

std::string Line::read(std::size_t count) {
    std::string data;
    std::string buffer(std::min(count, READ_BYTES), '\0');
    while (data.size() < count) {
        iovec part{buffer.data(), std::min(count - data.size(), buffer.size())};
        alignas(cmsghdr) char control[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))];
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        const ssize_t received = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
        if (received < 0 && errno == EINTR) {
            continue;
        }
        if (received <= 0) {
            break;
        }
        take_descriptors(message, descriptors_);
        data.append(buffer, 0, static_cast<std::size_t>(received));
    }
    return data;
}

}  // namespace gr00t
