// A card that is a piece of memory, for tests: a program copies bytes from one address to another. Its first kernel's first
// run-time arguments are source, target and bytes.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "card.hpp"
#include "refusal.hpp"

namespace gr00t {
namespace {

constexpr std::uint64_t DRAM_BYTES = 1 << 20;
constexpr std::uint64_t GRANULE_PAGES = 16;
// A program whose first argument is this finds a card that has failed.
constexpr std::uint32_t FAIL = 0xFFFF'FFFF;

struct Copy {
    std::uint32_t source, target, count;
};

class MemoryCard : public Card {
public:
    CardFacts open(const OpenSettings&) override {
        CardFacts facts{"blackhole", {11, 10}, {}, 8, 64, 16, 1'395'712};
        for (std::uint32_t y = 0; y < facts.grid.y; ++y) {
            for (std::uint32_t x = 0; x < facts.grid.x; ++x) {
                facts.noc.push_back({x + 1, y + 2});
            }
        }
        return facts;
    }

    Memory allocate(const std::string& name, const DramPlace& place) override {
        return place_behind(
            name, std::uint64_t{place.page_bytes} * place.pages, std::uint64_t{place.page_bytes} * GRANULE_PAGES);
    }

    Memory allocate(const std::string& name, const L1Place& place) override {
        const auto& [start, end] = place.cores;
        const std::uint64_t cores = std::uint64_t{end.x - start.x + 1} * (end.y - start.y + 1);
        return place_behind(name, cores * place.bytes_per_core, cores * place.bytes_per_core);
    }

    void write(const Memory& memory, std::uint64_t offset, std::span<const std::byte> data, int) override {
        std::ranges::copy(data, memory_.begin() + static_cast<std::ptrdiff_t>(memory.address + offset));
    }

    void read(const Memory& memory, std::uint64_t offset, std::span<std::byte> into) override {
        const auto start = memory_.begin() + static_cast<std::ptrdiff_t>(memory.address + offset);
        std::copy_n(start, into.size(), into.begin());
    }

    std::size_t build(const Program& program) override {
        const std::vector<std::uint32_t>& args = program.kernels.at(0).runtime_args.at(0).args;
        if (args.at(0) == FAIL) {
            throw std::runtime_error("TT_FATAL: the card does not answer");
        }
        programs_.push_back({args.at(0), args.at(1), args.at(2)});
        return programs_.size() - 1;
    }

    void enqueue(std::size_t program) override {
        if (recorded_) {
            recorded_->push_back(program);
            return;
        }
        const Copy& copy = programs_.at(program);
        const auto from = memory_.begin() + copy.source;
        std::copy_n(std::vector(from, from + copy.count).begin(), copy.count, memory_.begin() + copy.target);
    }

    void wait() override {}

    void begin_capture() override { recorded_.emplace(); }

    std::size_t end_capture() override {
        traces_.push_back(*recorded_);
        recorded_.reset();
        return traces_.size() - 1;
    }

    void record_event() override {}

    void replay(std::size_t trace, bool) override {
        for (const std::size_t program : traces_.at(trace)) {
            enqueue(program);
        }
    }

    std::optional<std::uint64_t> allocated_dram() override { return end_; }
    std::optional<std::uint64_t> allocated_l1_per_core() override { return std::nullopt; }
    void close() override {}

private:
    Memory place_behind(const std::string& name, std::uint64_t bytes, std::uint64_t granule) {
        if (end_ + bytes > DRAM_BYTES) {
            const std::string sizes = std::to_string(bytes) + " bytes, " + std::to_string(DRAM_BYTES - end_);
            throw Refusal("memory", "buffer '" + name + "' wants " + sizes + " are left");
        }
        end_ += bytes;
        return {end_ - bytes, bytes, std::min(granule, bytes), 0};
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(DRAM_BYTES);
    std::uint64_t end_ = 0;
    std::vector<Copy> programs_;
    std::vector<std::vector<std::size_t>> traces_;
    std::optional<std::vector<std::size_t>> recorded_;
};

}  // namespace

Identity identity() { return {"memory", "1.2.3"}; }

std::unique_ptr<Card> make_card() { return std::make_unique<MemoryCard>(); }

}  // namespace gr00t
