// Strict reading of JSON: every field there, none besides, each of its type and in its range.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gr00t {

using Json = nlohmann::json;

constexpr std::uint64_t MAX_U32 = 0xFFFF'FFFF;
constexpr std::uint64_t MAX_SAFE = (std::uint64_t{1} << 53) - 1;

// The fields of an object. Each has to be asked for once; `finish` refuses those that were not.
class Fields {
public:
    Fields(const Json& object, std::string path);

    const Json& take(const std::string& name);
    std::string path(const std::string& name) const { return path_ + "." + name; }

    std::uint64_t number(const std::string& name, std::uint64_t least, std::uint64_t most);
    std::uint32_t u32(const std::string& name) { return static_cast<std::uint32_t>(number(name, 0, MAX_U32)); }
    std::optional<std::uint32_t> optional_u32(const std::string& name);
    bool boolean(const std::string& name);
    std::string text(const std::string& name, std::size_t least = 0, std::size_t most = 1 << 16);
    std::optional<std::string> optional_text(const std::string& name);
    std::vector<std::uint32_t> numbers(const std::string& name, std::uint64_t most = MAX_U32);

    template <typename T>
    std::vector<T> list(
        const std::string& name, std::function<T(const Json&, const std::string&)> read, std::size_t least = 0) {
        const Json& values = array(name, least);
        std::vector<T> items;
        for (std::size_t index = 0; index < values.size(); ++index) {
            items.push_back(read(values[index], path(name) + "[" + std::to_string(index) + "]"));
        }
        return items;
    }

    void finish() const;

private:
    const Json& array(const std::string& name, std::size_t least);

    const Json& object_;
    std::string path_;
    std::set<std::string> taken_;
};

// One number of a list.
std::uint64_t checked_number(const Json& value, const std::string& path, std::uint64_t least, std::uint64_t most);

// Ends the request, naming the value and what it has to be.
[[noreturn]] void refuse(const std::string& path, const Json& value, const std::string& wanted);

}  // namespace gr00t
