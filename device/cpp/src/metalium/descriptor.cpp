#include "metalium/descriptor.hpp"

#include <tt-metalium/hal.hpp>

#include "refusal.hpp"

namespace gr00t {
namespace {

namespace metal = tt::tt_metal;

metal::MathFidelity math_fidelity(const std::string& name) {
    if (name == "lofi") {
        return metal::MathFidelity::LoFi;
    }
    if (name == "hifi2") {
        return metal::MathFidelity::HiFi2;
    }
    return name == "hifi3" ? metal::MathFidelity::HiFi3 : metal::MathFidelity::HiFi4;
}

tt::DataFormat data_format(const std::string& name) {
    if (name == "bf16") {
        return tt::DataFormat::Float16_b;
    }
    if (name == "f32") {
        return tt::DataFormat::Float32;
    }
    if (name == "bfp8_b") {
        return tt::DataFormat::Bfp8_b;
    }
    return name == "bfp4_b" ? tt::DataFormat::Bfp4_b : tt::DataFormat::UInt32;
}

metal::ComputeConfigDescriptor compute_config(const Compute& compute) {
    metal::ComputeConfigDescriptor config;
    config.math_fidelity = math_fidelity(compute.math_fidelity);
    config.fp32_dest_acc_en = compute.fp32_dest;
    config.dst_full_sync_en = compute.dst_full_sync;
    config.math_approx_mode = compute.math_approx;
    if (!compute.unpack_to_dest_fp32.empty()) {
        config.unpack_to_dest_mode.assign(
            metal::hal::get_arch_num_circular_buffers(), metal::UnpackToDestMode::Default);
        for (const std::uint32_t index : compute.unpack_to_dest_fp32) {
            config.unpack_to_dest_mode.at(index) = metal::UnpackToDestMode::UnpackToDestFp32;
        }
    }
    return config;
}

metal::KernelDescriptor::ConfigDescriptor config(const Kernel& kernel) {
    if (kernel.compute) {
        return compute_config(*kernel.compute);
    }
    metal::DataMovementConfigDescriptor config;
    const bool is_brisc = kernel.processor == "brisc";
    config.processor = is_brisc ? metal::DataMovementProcessor::RISCV_0 : metal::DataMovementProcessor::RISCV_1;
    config.noc = is_brisc ? metal::NOC::NOC_1 : metal::NOC::NOC_0;
    return config;
}

metal::KernelDescriptor kernel_descriptor(const Kernel& kernel) {
    if (!kernel.include_dirs.empty()) {
        throw Refusal("unsupported", "this worker passes no include_dirs on; include files by their place");
    }
    metal::KernelDescriptor descriptor;
    descriptor.kernel_source = kernel.source;
    descriptor.core_ranges = core_ranges(kernel.cores);
    descriptor.compile_time_args = kernel.compile_time_args;
    descriptor.defines = kernel.defines;
    descriptor.common_runtime_args = kernel.common_runtime_args;
    descriptor.config = config(kernel);
    for (const auto& [core, args] : kernel.runtime_args) {
        descriptor.runtime_args.emplace_back(metal::CoreCoord(core.x, core.y), args);
    }
    return descriptor;
}

}  // namespace

metal::CoreRangeSet core_ranges(const std::vector<Rectangle>& rectangles) {
    std::vector<metal::CoreRange> ranges;
    for (const auto& [start, end] : rectangles) {
        ranges.emplace_back(metal::CoreCoord(start.x, start.y), metal::CoreCoord(end.x, end.y));
    }
    return metal::CoreRangeSet(std::move(ranges));
}

metal::ProgramDescriptor descriptor(const Program& program) {
    metal::ProgramDescriptor descriptor;
    for (const Kernel& kernel : program.kernels) {
        descriptor.kernels.push_back(kernel_descriptor(kernel));
    }
    for (const CircularBuffer& buffer : program.circular_buffers) {
        metal::CBFormatDescriptor format;
        format.buffer_index = static_cast<std::uint8_t>(buffer.index);
        format.data_format = data_format(buffer.format);
        format.page_size = buffer.page_bytes;
        metal::CBDescriptor circular;
        circular.total_size = buffer.total_bytes;
        circular.core_ranges = core_ranges(buffer.cores);
        circular.format_descriptors.push_back(format);
        descriptor.cbs.push_back(circular);
    }
    for (const auto& [id, cores, initial] : program.semaphores) {
        metal::SemaphoreDescriptor semaphore;
        semaphore.id = id;
        semaphore.core_ranges = core_ranges(cores);
        semaphore.initial_value = initial;
        descriptor.semaphores.push_back(semaphore);
    }
    return descriptor;
}

}  // namespace gr00t
