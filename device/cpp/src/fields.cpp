#include "fields.hpp"

#include "refusal.hpp"

namespace gr00t {

void refuse(const std::string& path, const Json& value, const std::string& wanted) {
    std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 80) {
        shown = shown.substr(0, 77) + "...";
    }
    throw Refusal("argument", path + " is " + shown + "; it has to be " + wanted);
}

std::uint64_t checked_number(
    const Json& value, const std::string& path, std::uint64_t least, std::uint64_t most) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most) {
        refuse(path, value, "from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value.get<std::uint64_t>();
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) {
        refuse(path_, object, "an object");
    }
}

const Json& Fields::take(const std::string& name) {
    const auto found = object_.find(name);
    if (found == object_.end()) {
        throw Refusal("argument", path_ + " has no field '" + name + "'");
    }
    taken_.insert(name);
    return *found;
}

std::uint64_t Fields::number(const std::string& name, std::uint64_t least, std::uint64_t most) {
    return checked_number(take(name), path(name), least, most);
}

std::optional<std::uint32_t> Fields::optional_u32(const std::string& name) {
    return take(name).is_null() ? std::nullopt : std::optional(u32(name));
}

bool Fields::boolean(const std::string& name) {
    const Json& value = take(name);
    if (!value.is_boolean()) {
        refuse(path(name), value, "true or false");
    }
    return value.get<bool>();
}

std::string Fields::text(const std::string& name, std::size_t least, std::size_t most) {
    const Json& value = take(name);
    if (!value.is_string()) {
        refuse(path(name), value, "a text");
    }
    std::string text = value.get<std::string>();
    if (text.size() < least || text.size() > most) {
        refuse(path(name), value, "of a length from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return text;
}

std::optional<std::string> Fields::optional_text(const std::string& name) {
    return take(name).is_null() ? std::nullopt : std::optional(text(name));
}

const Json& Fields::array(const std::string& name, std::size_t least) {
    const Json& value = take(name);
    if (!value.is_array() || value.size() < least) {
        refuse(path(name), value, "a list of at least " + std::to_string(least));
    }
    return value;
}

std::vector<std::uint32_t> Fields::numbers(const std::string& name, std::uint64_t most) {
    return list<std::uint32_t>(name, [most](const Json& value, const std::string& path) {
        return static_cast<std::uint32_t>(checked_number(value, path, 0, most));
    });
}

void Fields::finish() const {
    for (const auto& [name, value] : object_.items()) {
        if (!taken_.contains(name)) {
            throw Refusal("argument", path_ + " has a field '" + name + "', which is unknown");
        }
    }
}

}  // namespace gr00t
