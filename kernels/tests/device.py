"""Runs one program on a device: `device.py JOB ANSWER`, both pickled (`machine.py`)."""

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ttnn
from machine import BANKS, COLUMNS, ROWS, SEMAPHORES, Bytes, Core, Program, Result

KERNELS = Path(__file__).resolve().parents[1]
#: Streams begin at multiples of this in DRAM and in L1.
STREAM_ALIGNMENT = 64
#: What `grid.rs` leaves to programs: the rest of L1 holds the kernels, which are larger than what a device keeps for them
#: otherwise.
L1_BYTES = 1_395_712
TRACE_BYTES = 1 << 20


def padded(data: Bytes, multiple: int) -> Bytes:
    return np.concatenate([data, np.zeros(-len(data) % multiple, np.uint8)])


def streams_of(core: Core) -> Bytes:
    streams = [stream for of in core.segments() for stream in (of.mover, of.feeder, of.compute)]
    words = [word for stream in streams for words in stream for word in words]
    return np.array(words, np.uint32).view(np.uint8)


def pages_on_device(pages: Bytes, device: ttnn.Device) -> ttnn.Tensor:
    """Interleaved in DRAM: page `p` in bank `p % 8`."""
    words = np.ascontiguousarray(pages).view(np.uint32)
    return ttnn.Tensor(words, data_type=ttnn.uint32, device=device, layout=ttnn.ROW_MAJOR_LAYOUT)


def bytes_of(tensor: ttnn.Tensor) -> Bytes:
    values = tensor.cpu().to_numpy()
    values = values if isinstance(values, np.ndarray) else np.from_dlpack(values)
    return np.ascontiguousarray(values).astype(np.uint32).view(np.uint8)


def ranges(places: list[tuple[int, int]]) -> ttnn.CoreRangeSet:
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*place), ttnn.CoreCoord(*place)) for place in places])


def l1_on_device(memories: list[Bytes], places: list[tuple[int, int]], device: ttnn.Device) -> ttnn.Tensor:
    """The same place in the L1 of every core."""
    words = np.stack(memories).view(np.uint32)
    shard = ttnn.ShardSpec(ranges(places), [1, words.shape[1]], ttnn.ShardOrientation.ROW_MAJOR)
    memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shard)
    return ttnn.Tensor(words, data_type=ttnn.uint32, layout=ttnn.ROW_MAJOR_LAYOUT).to(device, memory)


def packed(values: list[int]) -> list[int]:
    """Four bytes a word, three words."""
    data = bytes(values) + bytes(12 - len(values))
    return [int(word) for word in np.frombuffer(data, np.uint32)]


@dataclass
class Addresses:
    """Of everything in L1 and DRAM."""

    l1: int
    arena: int
    buffers: dict[int, int]
    tables: dict[int, int]


def network_place(device: ttnn.Device, x: int, y: int) -> ttnn.CoreCoord:
    return device.worker_core_from_logical_core(ttnn.CoreCoord(x, y))


def common_arguments(program: Program, addresses: Addresses, device: ttnn.Device) -> list[int]:
    words = [addresses.l1, addresses.arena, len(program.buffers), len(program.tables)]
    words += packed([network_place(device, x, 0).x for x in range(COLUMNS)])
    words += packed([network_place(device, 0, y).y for y in range(ROWS)])
    for pages, places in ((program.buffers, addresses.buffers), (program.tables, addresses.tables)):
        for number, data in pages.items():
            words += [number, places[number], data.shape[1]]
    return words


def own_arguments(program: Program, core: Core, index: int, streams: int, stride: int) -> list[int]:
    bank, source = index % BANKS, streams + index // BANKS * stride
    at, size = len(core.l1), len(streams_of(core))
    scratch = at + size + -size % STREAM_ALIGNMENT
    ring = core.ring
    words = [bank, source, at, size, scratch, program.scratch_bytes]
    words += [ring.address, ring.slots, ring.packets, ring.freed] if ring else [0, 1, 0, 0]
    words += [core.bank, len(core.segments())]
    for of in core.segments():
        words += [of.first_pass, of.passes, len(of.mover), len(of.feeder), len(of.compute)]
    return words


def kernels(
    program: Program, places: list[tuple[int, int]], common: list[int], own: list[list[int]]
) -> list[ttnn.KernelDescriptor]:
    mover = ttnn.DataMovementConfigDescriptor(processor=ttnn.DataMovementProcessor.RISCV_0, noc=ttnn.NOC.NOC_1)
    feeder = ttnn.DataMovementConfigDescriptor(processor=ttnn.DataMovementProcessor.RISCV_1, noc=ttnn.NOC.NOC_0)
    fidelity = getattr(ttnn.MathFidelity, program.fidelity)
    compute = ttnn.ComputeConfigDescriptor(math_fidelity=fidelity, fp32_dest_acc_en=True, dst_full_sync_en=True)
    return [
        ttnn.KernelDescriptor(
            kernel_source=str(KERNELS / name),
            compile_time_args=arguments,
            core_ranges=ranges(places),
            runtime_args=[(ttnn.CoreCoord(*place), words) for place, words in zip(places, own, strict=True)],
            common_runtime_args=common,
            config=config,
        )
        for name, config, arguments in (
            ("mover.cpp", mover, []),
            ("feeder.cpp", feeder, []),
            (program.compute_kernel, compute, program.compute_arguments),
        )
    ]


def semaphores(cores: list[Core]) -> list[ttnn.SemaphoreDescriptor]:
    return [
        ttnn.SemaphoreDescriptor(
            id=number,
            core_ranges=ranges([core.place]),
            initial_value=core.semaphores[number] if number < len(core.semaphores) else 0,
        )
        for number in range(SEMAPHORES)
        for core in cores
    ]


def replay(tensors: list[ttnn.Tensor], descriptor: ttnn.ProgramDescriptor, times: int, device: ttnn.Device) -> None:
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    ttnn.generic_op(tensors, descriptor)
    ttnn.end_trace_capture(device, trace, cq_id=0)
    for _ in range(times):
        ttnn.execute_trace(device, trace, cq_id=0, blocking=True)
    ttnn.release_trace(device, trace)


def execute(program: Program, device: ttnn.Device) -> Result:
    cores = program.cores
    places = [core.place for core in cores]
    streams = [padded(streams_of(core), STREAM_ALIGNMENT) for core in cores]
    stride = max(len(stream) for stream in streams)
    stored = pages_on_device(np.stack([padded(stream, stride) for stream in streams]), device)
    room = stride + program.scratch_bytes
    sizes = max(len(core.l1) for core in cores)
    assert all(len(core.l1) == sizes for core in cores), "the L1 of all cores has one size"
    memory = l1_on_device([np.concatenate([core.l1, np.zeros(room, np.uint8)]) for core in cores], places, device)
    buffers = {number: pages_on_device(data, device) for number, data in program.buffers.items()}
    tables = {number: pages_on_device(data, device) for number, data in program.tables.items()}
    arena = None if program.arena is None else pages_on_device(program.arena, device)
    addresses = Addresses(
        l1=memory.buffer_address(),
        arena=0 if arena is None else arena.buffer_address(),
        buffers={number: tensor.buffer_address() for number, tensor in buffers.items()},
        tables={number: tensor.buffer_address() for number, tensor in tables.items()},
    )
    common = common_arguments(program, addresses, device)
    own = [own_arguments(program, core, index, stored.buffer_address(), stride) for index, core in enumerate(cores)]
    descriptor = ttnn.ProgramDescriptor(kernels=kernels(program, places, common, own), semaphores=semaphores(cores))
    tensors = [stored, *buffers.values(), *tables.values(), *([] if arena is None else [arena]), memory]
    ttnn.generic_op(tensors, descriptor)
    if program.replays:
        replay(tensors, descriptor, program.replays, device)
    ttnn.synchronize_device(device)
    l1 = bytes_of(memory)
    return Result(
        l1=[l1[index, : len(core.l1)] for index, core in enumerate(cores)],
        buffers={number: bytes_of(tensor) for number, tensor in buffers.items()},
    )


def main() -> None:
    job, answer = map(Path, sys.argv[1:])
    program = pickle.loads(job.read_bytes())
    device = ttnn.open_device(device_id=0, worker_l1_size=L1_BYTES, trace_region_size=TRACE_BYTES)
    result = execute(program, device)
    answer.write_bytes(pickle.dumps(result))
    ttnn.close_device(device)


if __name__ == "__main__":
    main()
