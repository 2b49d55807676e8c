// A card through TT-Metalium.
#include <tt-metalium/allocator.hpp>
#include <tt-metalium/buffer.hpp>
#include <tt-metalium/distributed.hpp>
#include <tt-metalium/hal.hpp>
#include <tt-metalium/mesh_buffer.hpp>
#include <tt-metalium/mesh_command_queue.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/mesh_event.hpp>
#include <tt-metalium/mesh_workload.hpp>
#include <tt-metalium/program.hpp>

#include <algorithm>

#include "card.hpp"
#include "metalium/descriptor.hpp"
#include "refusal.hpp"

namespace gr00t {
namespace {

namespace metal = tt::tt_metal;
namespace mesh = tt::tt_metal::distributed;

constexpr std::uint8_t PROGRAM_QUEUE = 0;
// Longest page of a buffer in L1.
constexpr std::uint32_t L1_PAGE_BYTES = 4096;

const mesh::MeshCoordinate ONLY_DEVICE(0, 0);

class MetaliumCard : public Card {
public:
    CardFacts open(const OpenSettings& settings) override;
    Memory allocate(const std::string& name, const DramPlace& place) override;
    Memory allocate(const std::string& name, const L1Place& place) override;
    void write(const Memory& memory, std::uint64_t offset, std::span<const std::byte> data, int queue) override;
    void read(const Memory& memory, std::uint64_t offset, std::span<std::byte> into) override;
    std::size_t build(const Program& program) override;
    void enqueue(std::size_t program) override;
    void wait() override;
    void begin_capture() override;
    std::size_t end_capture() override;
    void record_event() override;
    void replay(std::size_t trace, bool after_event) override;
    std::optional<std::uint64_t> allocated_dram() override;
    std::optional<std::uint64_t> allocated_l1_per_core() override;
    void close() override;

private:
    mesh::MeshCommandQueue& queue(std::uint8_t number) { return device_->mesh_command_queue(number); }
    Memory keep(const std::string& name, const mesh::DeviceLocalBufferConfig& config, std::uint64_t bytes);

    std::shared_ptr<mesh::MeshDevice> device_;
    std::vector<std::shared_ptr<mesh::MeshBuffer>> buffers_;
    std::vector<mesh::MeshWorkload> workloads_;
    std::vector<mesh::MeshTraceId> traces_;
    std::optional<mesh::MeshTraceId> capturing_;
    std::optional<mesh::MeshEvent> event_;
};

CardFacts MetaliumCard::open(const OpenSettings& settings) {
    device_ = mesh::MeshDevice::create_unit_mesh(
        static_cast<int>(settings.device_id),
        settings.l1_small_size,
        settings.trace_region_size,
        settings.queues,
        metal::DispatchCoreConfig{},
        {},
        settings.worker_l1_size.value_or(DEFAULT_WORKER_L1_SIZE));
    if (device_->arch() != tt::ARCH::BLACKHOLE) {
        throw Refusal("open", "device " + std::to_string(settings.device_id) + " is no Blackhole");
    }
    const metal::CoreCoord grid = device_->compute_with_storage_grid_size();
    CardFacts facts{
        .arch = "blackhole",
        .grid = {static_cast<std::uint32_t>(grid.x), static_cast<std::uint32_t>(grid.y)},
        .noc = {},
        .dram_banks = static_cast<std::uint32_t>(device_->allocator()->get_num_banks(metal::BufferType::DRAM)),
        .dram_alignment = metal::hal::get_dram_alignment(),
        .l1_alignment = metal::hal::get_l1_alignment(),
        .l1_bytes = device_->allocator()->get_bank_size(metal::BufferType::L1),
    };
    for (std::uint32_t y = 0; y < facts.grid.y; ++y) {
        for (std::uint32_t x = 0; x < facts.grid.x; ++x) {
            const metal::CoreCoord core = device_->worker_core_from_logical_core(metal::CoreCoord(x, y));
            facts.noc.push_back({static_cast<std::uint32_t>(core.x), static_cast<std::uint32_t>(core.y)});
        }
    }
    return facts;
}

Memory MetaliumCard::allocate(const std::string& name, const DramPlace& place) {
    mesh::DeviceLocalBufferConfig config;
    config.page_size = place.page_bytes;
    config.buffer_type = metal::BufferType::DRAM;
    Memory memory = keep(name, config, std::uint64_t{place.page_bytes} * place.pages);
    memory.granule = place.page_bytes;
    return memory;
}

Memory MetaliumCard::allocate(const std::string& name, const L1Place& place) {
    // The largest power of two that divides the bytes of a core.
    const std::uint32_t page_bytes = std::min(L1_PAGE_BYTES, place.bytes_per_core & -place.bytes_per_core);
    const std::uint32_t pages = place.bytes_per_core / page_bytes;
    const metal::CoreRangeSet cores = core_ranges({place.cores});
    const std::uint32_t count = cores.num_cores();
    const metal::ShardSpecBuffer shards(
        cores, {pages, page_bytes}, metal::ShardOrientation::ROW_MAJOR, {1, page_bytes}, {pages * count, 1});
    mesh::DeviceLocalBufferConfig config;
    config.page_size = page_bytes;
    config.buffer_type = metal::BufferType::L1;
    config.sharding_args = metal::BufferShardingArgs(shards, metal::TensorMemoryLayout::HEIGHT_SHARDED);
    return keep(name, config, std::uint64_t{place.bytes_per_core} * count);
}

Memory MetaliumCard::keep(
    const std::string& name, const mesh::DeviceLocalBufferConfig& config, std::uint64_t bytes) {
    try {
        buffers_.push_back(
            mesh::MeshBuffer::create(mesh::ReplicatedBufferConfig{.size = bytes}, config, device_.get()));
    } catch (const std::exception& error) {
        throw Refusal("memory", "buffer '" + name + "' finds no room: " + error.what());
    }
    return {buffers_.back()->address(), bytes, bytes, buffers_.size() - 1};
}

void MetaliumCard::write(
    const Memory& memory, std::uint64_t offset, std::span<const std::byte> data, int number) {
    mesh::ShardDataTransfer transfer(ONLY_DEVICE);
    // tt-metal only reads it.
    transfer.host_data(const_cast<std::byte*>(data.data())).region(metal::BufferRegion(offset, data.size()));
    // Blocking: the client may write to the staging memory when this returns.
    queue(static_cast<std::uint8_t>(number)).enqueue_write_shards(buffers_[memory.number], {transfer}, true);
}

void MetaliumCard::read(const Memory& memory, std::uint64_t offset, std::span<std::byte> into) {
    mesh::ShardDataTransfer transfer(ONLY_DEVICE);
    transfer.host_data(into.data()).region(metal::BufferRegion(offset, into.size()));
    queue(PROGRAM_QUEUE).enqueue_read_shards({transfer}, buffers_[memory.number], true);
}

std::size_t MetaliumCard::build(const Program& program) {
    mesh::MeshWorkload workload;
    workload.add_program(mesh::MeshCoordinateRange(device_->shape()), metal::Program(descriptor(program)));
    workloads_.push_back(std::move(workload));
    return workloads_.size() - 1;
}

void MetaliumCard::enqueue(std::size_t program) {
    try {
        mesh::EnqueueMeshWorkload(queue(PROGRAM_QUEUE), workloads_[program], false);
    } catch (const std::exception& error) {
        if (std::string(error.what()).find("build failed") != std::string::npos) {
            throw Refusal("kernel", error.what());
        }
        throw;
    }
}

void MetaliumCard::wait() { mesh::Finish(queue(PROGRAM_QUEUE)); }

void MetaliumCard::begin_capture() { capturing_ = device_->begin_mesh_trace(PROGRAM_QUEUE); }

std::size_t MetaliumCard::end_capture() {
    device_->end_mesh_trace(PROGRAM_QUEUE, capturing_.value());
    traces_.push_back(capturing_.value());
    capturing_.reset();
    return traces_.size() - 1;
}

void MetaliumCard::record_event() { event_ = queue(1).enqueue_record_event(); }

void MetaliumCard::replay(std::size_t trace, bool after_event) {
    if (after_event) {
        queue(PROGRAM_QUEUE).enqueue_wait_for_event(event_.value());
    }
    device_->replay_mesh_trace(PROGRAM_QUEUE, traces_[trace], true);
}

std::optional<std::uint64_t> MetaliumCard::allocated_dram() {
    const metal::BufferType type = metal::BufferType::DRAM;
    const auto& allocator = device_->allocator();
    return allocator->get_statistics(type).total_allocated_bytes * allocator->get_num_banks(type);
}

std::optional<std::uint64_t> MetaliumCard::allocated_l1_per_core() {
    return device_->allocator()->get_statistics(metal::BufferType::L1).total_allocated_bytes;
}

void MetaliumCard::close() {
    workloads_.clear();
    buffers_.clear();
    device_->close();
}

}  // namespace

Identity identity() { return {"metalium-cpp", GR00T_TT_METAL_VERSION}; }

std::unique_ptr<Card> make_card() { return std::make_unique<MetaliumCard>(); }

}  // namespace gr00t
