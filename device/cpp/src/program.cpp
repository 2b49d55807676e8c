#include "program.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "refusal.hpp"

namespace gr00t {
namespace {

constexpr std::uint64_t CIRCULAR_BUFFERS = 32;
constexpr std::uint64_t SEMAPHORES = 16;
constexpr std::size_t MAX_RUNTIME_ARGS = 341;
constexpr std::size_t MAX_NAME_BYTES = 128;

Core read_core(const Json& value, const std::string& path) {
    if (!value.is_array() || value.size() != 2) {
        refuse(path, value, "a list of 2");
    }
    const auto coordinate = [&](std::size_t index) {
        const std::string part = path + "[" + std::to_string(index) + "]";
        return static_cast<std::uint32_t>(checked_number(value[index], part, 0, MAX_U32));
    };
    return {coordinate(0), coordinate(1)};
}

std::string one_of(Fields& fields, const std::string& name, const std::vector<std::string>& accepted) {
    std::string value = fields.text(name);
    if (std::ranges::find(accepted, value) == accepted.end()) {
        std::string list;
        for (const std::string& text : accepted) {
            list += (list.empty() ? "" : ", ") + text;
        }
        refuse(fields.path(name), value, "one of " + list);
    }
    return value;
}

Compute read_compute(const Json& value, const std::string& path) {
    Fields fields(value, path);
    Compute compute{
        .math_fidelity = one_of(fields, "math_fidelity", {"lofi", "hifi2", "hifi3", "hifi4"}),
        .fp32_dest = fields.boolean("fp32_dest"),
        .dst_full_sync = fields.boolean("dst_full_sync"),
        .math_approx = fields.boolean("math_approx"),
        .unpack_to_dest_fp32 = fields.numbers("unpack_to_dest_fp32", CIRCULAR_BUFFERS - 1),
    };
    fields.finish();
    return compute;
}

RuntimeArgs read_runtime_args(const Json& value, const std::string& path) {
    Fields fields(value, path);
    RuntimeArgs args{read_core(fields.take("core"), fields.path("core")), fields.numbers("args")};
    fields.finish();
    return args;
}

std::pair<std::string, std::string> read_define(const Json& value, const std::string& path) {
    if (!value.is_array() || value.size() != 2 || !value[0].is_string() || !value[1].is_string()) {
        refuse(path, value, "a list of 2 texts");
    }
    return {value[0].get<std::string>(), value[1].get<std::string>()};
}

std::string read_text(const Json& value, const std::string& path) {
    if (!value.is_string()) {
        refuse(path, value, "a text");
    }
    return value.get<std::string>();
}

// That there are arguments of each core, once, and not too many.
void check_runtime_args(const Kernel& kernel, const std::vector<Core>& cores, const std::string& path) {
    std::size_t longest = 0;
    std::set<Core> given;
    for (const RuntimeArgs& args : kernel.runtime_args) {
        longest = std::max(longest, args.args.size());
        given.insert(args.core);
    }
    const bool is_whole = kernel.runtime_args.size() == cores.size() && given == std::set(cores.begin(), cores.end());
    if (!kernel.runtime_args.empty() && !is_whole) {
        const std::string count = std::to_string(cores.size());
        throw Refusal("argument", path + ".runtime_args have to be of each of its " + count + " cores, once");
    }
    const std::size_t total = longest + kernel.common_runtime_args.size();
    if (total > MAX_RUNTIME_ARGS) {
        const std::string most = std::to_string(MAX_RUNTIME_ARGS);
        const std::string found = std::to_string(total) + " numbers";
        throw Refusal("argument", path + ".runtime_args are " + found + "; at most " + most + " with the common ones");
    }
}

Kernel read_kernel(const Json& value, const std::string& path, Core grid) {
    Fields fields(value, path);
    Kernel kernel;
    kernel.source = fields.text("source");
    kernel.processor = one_of(fields, "processor", {"brisc", "ncrisc", "trisc"});
    kernel.cores = fields.list<Rectangle>("cores", read_rectangle, 1);
    kernel.compile_time_args = fields.numbers("compile_time_args");
    kernel.defines = fields.list<std::pair<std::string, std::string>>("defines", read_define);
    kernel.include_dirs = fields.list<std::string>("include_dirs", read_text);
    kernel.common_runtime_args = fields.numbers("common_runtime_args");
    kernel.runtime_args = fields.list<RuntimeArgs>("runtime_args", read_runtime_args);
    const Json& compute = fields.take("compute");
    if (compute.is_null() == (kernel.processor == "trisc")) {
        refuse(fields.path("compute"), compute, "given for 'trisc', and null for 'brisc' and 'ncrisc'");
    }
    if (!compute.is_null()) {
        kernel.compute = read_compute(compute, fields.path("compute"));
    }
    fields.finish();
    if (!kernel.source.starts_with("/") || access(kernel.source.c_str(), R_OK) != 0) {
        refuse(fields.path("source"), kernel.source, "the absolute path of a file that can be read");
    }
    check_runtime_args(kernel, all_cores(kernel.cores, grid, fields.path("cores")), path);
    return kernel;
}

CircularBuffer read_circular_buffer(const Json& value, const std::string& path, Core grid) {
    Fields fields(value, path);
    CircularBuffer buffer{
        .index = static_cast<std::uint32_t>(fields.number("index", 0, CIRCULAR_BUFFERS - 1)),
        .cores = fields.list<Rectangle>("cores", read_rectangle, 1),
        .total_bytes = static_cast<std::uint32_t>(fields.number("total_bytes", 1, MAX_U32)),
        .page_bytes = static_cast<std::uint32_t>(fields.number("page_bytes", 1, MAX_U32)),
        .format = one_of(fields, "format", {"bf16", "f32", "bfp8_b", "bfp4_b", "u32"}),
    };
    fields.finish();
    all_cores(buffer.cores, grid, fields.path("cores"));
    if (buffer.total_bytes % buffer.page_bytes != 0) {
        refuse(fields.path("total_bytes"), buffer.total_bytes, "a multiple of page_bytes");
    }
    return buffer;
}

Semaphore read_semaphore(const Json& value, const std::string& path, Core grid) {
    Fields fields(value, path);
    Semaphore semaphore{
        .id = static_cast<std::uint32_t>(fields.number("id", 0, SEMAPHORES - 1)),
        .cores = fields.list<Rectangle>("cores", read_rectangle, 1),
        .initial = fields.u32("initial"),
    };
    fields.finish();
    all_cores(semaphore.cores, grid, fields.path("cores"));
    return semaphore;
}

}  // namespace

Rectangle read_rectangle(const Json& value, const std::string& path) {
    Fields fields(value, path);
    Rectangle rectangle{
        read_core(fields.take("start"), fields.path("start")), read_core(fields.take("end"), fields.path("end"))};
    fields.finish();
    return rectangle;
}

Program read_program(const Json& value, const std::string& path, Core grid) {
    using std::placeholders::_1, std::placeholders::_2;
    Fields fields(value, path);
    Program program;
    program.name = fields.text("name", 1, MAX_NAME_BYTES);
    program.kernels = fields.list<Kernel>("kernels", std::bind(read_kernel, _1, _2, grid), 1);
    program.circular_buffers =
        fields.list<CircularBuffer>("circular_buffers", std::bind(read_circular_buffer, _1, _2, grid));
    program.semaphores = fields.list<Semaphore>("semaphores", std::bind(read_semaphore, _1, _2, grid));
    fields.finish();
    return program;
}

std::vector<Core> all_cores(const std::vector<Rectangle>& rectangles, Core grid, const std::string& path) {
    std::set<Core> cores;
    for (const auto& [start, end] : rectangles) {
        const auto refuse_it = [&, start = start, end = end](const std::string& wanted) {
            const Json corners = {{start.x, start.y}, {end.x, end.y}};
            refuse(path, corners, wanted);
        };
        if (start.x > end.x || start.y > end.y || end.x >= grid.x || end.y >= grid.y) {
            const std::string size = std::to_string(grid.x) + "x" + std::to_string(grid.y);
            refuse_it("upper left to lower right corner on a grid of " + size);
        }
        for (std::uint32_t y = start.y; y <= end.y; ++y) {
            for (std::uint32_t x = start.x; x <= end.x; ++x) {
                if (!cores.insert({x, y}).second) {
                    refuse_it("disjoint with the rectangles before it");
                }
            }
        }
    }
    return {cores.begin(), cores.end()};
}

}  // namespace gr00t
