#include "session.hpp"

#include <chrono>
#include <map>

#include "environment.hpp"
#include "refusal.hpp"

namespace gr00t {
namespace {

constexpr std::size_t DESCRIPTORS = 3;
constexpr std::uint64_t MIN_STAGING_BYTES = 4096;
constexpr std::uint64_t MAX_STAGING_BYTES = std::uint64_t{1} << 30;
constexpr std::uint32_t L1_GRANULE = 64;
constexpr std::size_t MAX_NAME_BYTES = 128;

// Things that the client calls by number, from 1.
template <typename T>
T& numbered(std::vector<T>& items, std::uint64_t number, const std::string& what) {
    if (number < 1 || number > items.size()) {
        const std::string count = std::to_string(items.size());
        throw Refusal("unknown", "there is no " + what + " " + std::to_string(number) + "; there are " + count);
    }
    return items[number - 1];
}

// Nanoseconds that something takes.
template <typename Work>
std::uint64_t timed(Work work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const auto took = std::chrono::steady_clock::now() - begin;
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
}

void check_multiple(const std::string& path, std::uint64_t value, std::uint64_t of) {
    if (value % of != 0) {
        refuse(path, value, "a multiple of " + std::to_string(of));
    }
}

// That a part of a buffer lies in it, on its granules.
void check_part(const Memory& memory, const std::string& label, std::uint64_t offset, std::uint64_t count) {
    const std::uint64_t end = offset + count;
    if (end > memory.bytes) {
        const std::string part = std::to_string(offset) + " to " + std::to_string(end);
        throw Refusal(
            "argument", label + " has " + std::to_string(memory.bytes) + " bytes; " + part + " do not lie in it");
    }
    for (const std::uint64_t at : {offset, end}) {
        if (at % memory.granule != 0 && at != memory.bytes) {
            const std::string rule = " begin and end at multiples of " + std::to_string(memory.granule);
            throw Refusal("argument", "parts of " + label + rule + " or at its end, not at " + std::to_string(at));
        }
    }
}

void check_version(Fields& fields) {
    const Identity self = identity();
    const Json expected = {fields.take("protocol"), fields.take("worker"), fields.take("tt_metal")};
    const Json found = {PROTOCOL, self.worker, self.tt_metal};
    if (expected != found) {
        throw Refusal("version", "the client wants " + expected.dump() + ", this worker is " + found.dump());
    }
}

Json or_null(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

Json Session::obey(const std::string& request, Fields& fields, const std::vector<int>& descriptors) {
    check_turn(state_, request);
    if (request == "open") {
        return open(fields, descriptors);
    }
    static const std::map<std::string, Json (Session::*)(Fields&)> HANDLERS = {
        {"allocate", &Session::allocate},
        {"upload", &Session::upload},
        {"build", &Session::build},
        {"run", &Session::run},
        {"begin_capture", &Session::begin_capture},
        {"end_capture", &Session::end_capture},
        {"write_inputs", &Session::write_inputs},
        {"replay", &Session::replay},
        {"read", &Session::read},
        {"telemetry", &Session::telemetry},
        {"close", &Session::close},
    };
    return (this->*HANDLERS.at(request))(fields);
}

void Session::leave() {
    if (state_ != State::New) {
        state_ = State::New;
        card_->close();
    }
}

Json Session::open(Fields& fields, const std::vector<int>& descriptors) {
    check_version(fields);
    OpenSettings settings{};
    settings.device_id = fields.u32("device_id");
    settings.worker_l1_size = fields.optional_u32("worker_l1_size");
    settings.l1_small_size = fields.u32("l1_small_size");
    settings.trace_region_size = fields.number("trace_region_size", 0, MAX_SAFE);
    settings.queues = static_cast<std::uint8_t>(fields.number("queues", 1, 2));
    const std::uint64_t staging_bytes = fields.number("staging_bytes", MIN_STAGING_BYTES, MAX_STAGING_BYTES);
    const std::optional<std::string> cache = fields.optional_text("cache_dir");
    fields.finish();
    if (descriptors.size() != DESCRIPTORS) {
        const std::string count = std::to_string(descriptors.size());
        throw Refusal("argument", "'open' came with " + count + " descriptors; it has to have 3");
    }
    // The second one is the lock of the card, which is only kept.
    arm_lifeline(descriptors[2]);
    staging_.emplace(descriptors[0], staging_bytes);
    use_cache(cache);
    queues_ = settings.queues;
    try {
        card_ = make_card();
        facts_ = card_->open(settings);
    } catch (const Refusal&) {
        throw;
    } catch (const std::exception& error) {
        const std::string number = std::to_string(settings.device_id);
        throw Refusal("open", "device " + number + " cannot be opened: " + error.what());
    }
    state_ = State::Building;
    Json noc = Json::array();
    for (const Core& core : facts_.noc) {
        noc.push_back({core.x, core.y});
    }
    return {
        {"arch", facts_.arch},
        {"grid", {{"columns", facts_.grid.x}, {"rows", facts_.grid.y}}},
        {"noc", noc},
        {"dram_banks", facts_.dram_banks},
        {"dram_alignment", facts_.dram_alignment},
        {"l1_alignment", facts_.l1_alignment},
        {"l1_bytes", facts_.l1_bytes},
    };
}

Json Session::allocate(Fields& fields) {
    const std::string name = fields.text("name", 1, MAX_NAME_BYTES);
    Fields place(fields.take("place"), fields.path("place"));
    fields.finish();
    const std::string kind = place.text("kind");
    Memory memory{};
    if (kind == "dram") {
        const auto page_bytes = static_cast<std::uint32_t>(place.number("page_bytes", 1, MAX_U32));
        const auto pages = static_cast<std::uint32_t>(place.number("pages", 1, MAX_U32));
        place.finish();
        check_multiple(place.path("page_bytes"), page_bytes, facts_.dram_alignment);
        memory = card_->allocate(name, DramPlace{page_bytes, pages});
    } else if (kind == "l1") {
        const auto bytes = static_cast<std::uint32_t>(place.number("bytes_per_core", 1, MAX_U32));
        const Rectangle cores = read_rectangle(place.take("cores"), place.path("cores"));
        place.finish();
        check_multiple(place.path("bytes_per_core"), bytes, L1_GRANULE);
        all_cores({cores}, facts_.grid, place.path("cores"));
        memory = card_->allocate(name, L1Place{bytes, cores});
    } else {
        refuse(place.path("kind"), kind, "one of dram, l1");
    }
    buffers_.push_back({"buffer '" + name + "'", memory});
    return {
        {"buffer", buffers_.size()},
        {"address", memory.address},
        {"bytes", memory.bytes},
        {"granule", memory.granule},
    };
}

Session::Transfer Session::read_transfer(Fields& fields) {
    const std::uint32_t number = fields.u32("buffer");
    const std::uint64_t offset = fields.number("offset", 0, MAX_SAFE);
    const StagingPart part = read_staging_part(fields.take("staging"), fields.path("staging"));
    fields.finish();
    const Buffer& buffer = numbered(buffers_, number, "buffer");
    const std::span<std::byte> data = staging_->part(part);
    check_part(buffer.memory, buffer.label, offset, data.size());
    return {&buffer, offset, data};
}

Json Session::upload(Fields& fields) {
    const Transfer transfer = read_transfer(fields);
    card_->write(transfer.buffer->memory, transfer.offset, transfer.data, 0);
    card_->wait();
    return Json::object();
}

Json Session::build(Fields& fields) {
    const Program program = read_program(fields.take("program"), fields.path("program"), facts_.grid);
    fields.finish();
    programs_.push_back({program.name, card_->build(program), false});
    return {{"program", programs_.size()}};
}

Json Session::run(Fields& fields) {
    const std::vector<std::uint32_t> numbers = fields.numbers("programs");
    fields.finish();
    if (numbers.empty()) {
        refuse("run.programs", Json::array(), "a list of at least 1");
    }
    std::vector<Built*> programs;
    for (const std::uint32_t number : numbers) {
        programs.push_back(&numbered(programs_, number, "program"));
    }
    for (const Built* program : programs) {
        if (has_captured_ && !program->is_warm) {
            const std::string what = "program '" + program->name + "' has not run before the first capture";
            throw Refusal("not_warm", what + "; run it once before");
        }
    }
    if (is_writing_ && state_ != State::Capturing) {
        card_->wait();
        is_writing_ = false;
    }
    const std::uint64_t took = timed([&] {
        for (const Built* program : programs) {
            card_->enqueue(program->number);
        }
        if (state_ != State::Capturing) {
            card_->wait();
        }
    });
    for (Built* program : programs) {
        program->is_warm = true;
    }
    return {{"nanoseconds", took}};
}

Json Session::begin_capture(Fields& fields) {
    fields.finish();
    has_captured_ = true;
    card_->begin_capture();
    state_ = State::Capturing;
    return Json::object();
}

Json Session::end_capture(Fields& fields) {
    fields.finish();
    traces_.push_back(card_->end_capture());
    state_ = State::Captured;
    return {{"trace", traces_.size()}};
}

Json Session::write_inputs(Fields& fields) {
    if (queues_ < 2) {
        throw Refusal("argument", "write_inputs needs queue 1; open the device with 2 queues");
    }
    const auto read_write = [this](const Json& value, const std::string& path) {
        Fields write(value, path);
        return read_transfer(write);
    };
    const std::vector<Transfer> writes = fields.list<Transfer>("writes", read_write, 1);
    fields.finish();
    for (const Transfer& write : writes) {
        card_->write(write.buffer->memory, write.offset, write.data, 1);
    }
    card_->record_event();
    is_writing_ = true;
    return {{"event", ++event_}};
}

Json Session::replay(Fields& fields) {
    const std::size_t trace = numbered(traces_, fields.u32("trace"), "trace");
    const Json& after = fields.take("after");
    if (!after.is_null() && fields.number("after", 0, MAX_SAFE) != event_) {
        const std::string newest = std::to_string(event_);
        throw Refusal("unknown", "event " + after.dump() + " is not the newest one, which is " + newest);
    }
    if (!after.is_null() && event_ == 0) {
        throw Refusal("unknown", "there is no event yet");
    }
    fields.finish();
    return {{"nanoseconds", timed([&] { card_->replay(trace, !after.is_null()); })}};
}

Json Session::read(Fields& fields) {
    const Transfer transfer = read_transfer(fields);
    card_->read(transfer.buffer->memory, transfer.offset, transfer.data);
    return Json::object();
}

Json Session::telemetry(Fields& fields) {
    fields.finish();
    // This worker reads no sensors.
    return {
        {"allocated_dram", or_null(card_->allocated_dram())},
        {"allocated_l1_per_core", or_null(card_->allocated_l1_per_core())},
        {"buffers", buffers_.size()},
        {"programs", programs_.size()},
        {"traces", traces_.size()},
        {"driver", nullptr},
        {"firmware", nullptr},
        {"temperature_c", nullptr},
        {"power_w", nullptr},
        {"clock_mhz", nullptr},
    };
}

Json Session::close(Fields& fields) {
    fields.finish();
    leave();
    is_over_ = true;
    return Json::object();
}

}  // namespace gr00t
