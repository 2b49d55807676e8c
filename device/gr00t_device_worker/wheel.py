"""A card through the `ttnn` wheel. The only module that loads it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import ttnn

from . import sysfs
from .backend import Backend, Card, Memory
from .program import CircularBuffer, Kernel, Program, Rectangle
from .refusal import Refusal
from .requests import L1, Dram, Open

# A buffer in DRAM is made of tensors of at most this size: ttnn writes and reads tensors whole.
_PIECE_BYTES = 32 << 20
# Most bytes that are kept for ttnn to read, before it is waited for.
_UNREAD_BYTES = 64 << 20
# Longest row of a tensor in L1.
_L1_ROW_BYTES = 4096
_WORD = 4

_FORMATS = {
    "bf16": ttnn.bfloat16,
    "f32": ttnn.float32,
    "bfp8_b": ttnn.bfloat8_b,
    "bfp4_b": ttnn.bfloat4_b,
    "u32": ttnn.uint32,
}
_FIDELITIES = {
    "lofi": ttnn.MathFidelity.LoFi,
    "hifi2": ttnn.MathFidelity.HiFi2,
    "hifi3": ttnn.MathFidelity.HiFi3,
    "hifi4": ttnn.MathFidelity.HiFi4,
}
_NATIVE = ttnn._ttnn
_CIRCULAR_BUFFERS = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor of `[rows, row_bytes / 4]` words that is one part of a buffer."""

    tensor: Any
    rows: int
    row_bytes: int


class WheelBackend(Backend):
    """See `Backend`."""

    def open(self, request: Open) -> Card:
        settings: dict[str, int] = {
            "device_id": request.device_id,
            "l1_small_size": request.l1_small_size,
            "trace_region_size": request.trace_region_size,
            "num_command_queues": request.queues,
        }
        if request.worker_l1_size is not None:
            settings["worker_l1_size"] = request.worker_l1_size
        self._device_id = request.device_id
        self._device = device = ttnn.open_device(**settings)
        device.enable_program_cache()
        # What ttnn may still be reading.
        self._unread: list[tuple[Any, Any]] = []
        self._piece_bytes = min(_PIECE_BYTES, request.staging_bytes)
        # generic_op wants tensors; ours are named by their addresses in arguments.
        self._operand = self._tensor(1, 64, ttnn.DRAM_MEMORY_CONFIG)
        grid = device.compute_with_storage_grid_size()
        logical = [ttnn.CoreCoord(x, y) for y in range(grid.y) for x in range(grid.x)]
        noc = [device.worker_core_from_logical_core(core) for core in logical]
        return Card(
            arch=device.arch().name.lower(),
            grid=(grid.x, grid.y),
            noc=[(core.x, core.y) for core in noc],
            dram_banks=self._view(ttnn.BufferType.DRAM).num_banks,
            dram_alignment=_NATIVE.device.get_dram_alignment(),
            l1_alignment=_NATIVE.device.get_l1_alignment(),
            l1_bytes=self._view(ttnn.BufferType.L1).total_bytes_per_bank,
        )

    def allocate(self, name: str, place: Dram | L1) -> Memory:
        try:
            return self._dram(place) if isinstance(place, Dram) else self._l1(place)
        except RuntimeError as error:
            raise Refusal("memory", f"buffer '{name}' finds no room: {error}") from error

    def _dram(self, place: Dram) -> Memory:
        """Pieces that follow one another in every bank."""
        banks = self._view(ttnn.BufferType.DRAM).num_banks
        stripe = banks * place.page_bytes
        step = self._piece_bytes // stripe * banks
        step = step or place.pages
        pieces: list[Piece] = []
        for first in range(0, place.pages, step):
            pages = min(step, place.pages - first)
            tensor = self._tensor(pages, place.page_bytes, ttnn.DRAM_MEMORY_CONFIG)
            pieces.append(Piece(tensor, pages, place.page_bytes))
            expected = pieces[0].tensor.buffer_address() + first // banks * place.page_bytes
            if tensor.buffer_address() != expected:
                raise Refusal("memory", "DRAM is too fragmented: pieces of the buffer do not follow one another")
        size = place.pages * place.page_bytes
        return Memory(pieces[0].tensor.buffer_address(), size, min(step * place.page_bytes, size), pieces)

    def _l1(self, place: L1) -> Memory:
        cores = len(place.cores.cores())
        size = cores * place.bytes_per_core
        row_bytes = min(_L1_ROW_BYTES, place.bytes_per_core & -place.bytes_per_core)
        rows = place.bytes_per_core // row_bytes
        spec = ttnn.ShardSpec(
            _cores([place.cores]), [rows, row_bytes // _WORD], ttnn.ShardOrientation.ROW_MAJOR
        )
        layout = ttnn.TensorMemoryLayout.HEIGHT_SHARDED
        config = ttnn.MemoryConfig(layout, ttnn.BufferType.L1, spec)
        tensor = self._tensor(cores * rows, row_bytes, config)
        return Memory(tensor.buffer_address(), size, size, [Piece(tensor, cores * rows, row_bytes)])

    def _tensor(self, rows: int, row_bytes: int, config: Any) -> Any:
        shape = ttnn.Shape([rows, row_bytes // _WORD])
        return ttnn.allocate_tensor_on_device(shape, ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT, self._device, config)

    def write(self, memory: Memory, offset: int, data: memoryview, queue: int) -> None:
        for piece, at, count in _overlap(memory, offset, len(data)):
            # A copy: ttnn may read it after this returns.
            words = np.frombuffer(data[at : at + count], dtype=np.uint32).copy()
            words = words.reshape(piece.rows, piece.row_bytes // _WORD)
            host = ttnn.Tensor(words, data_type=ttnn.uint32, layout=ttnn.ROW_MAJOR_LAYOUT)
            ttnn.copy_host_to_device_tensor(host, piece.tensor, cq_id=queue)
            self._unread.append((words, host))
            if sum(words.nbytes for words, _ in self._unread) > _UNREAD_BYTES:
                self.wait()

    def read(self, memory: Memory, offset: int, into: memoryview) -> None:
        for piece, at, count in _overlap(memory, offset, len(into)):
            words = np.asarray(piece.tensor.cpu().to_numpy()).reshape(-1)
            np.frombuffer(into[at : at + count], dtype=np.uint32)[:] = words

    def build(self, program: Program) -> Any:
        return ttnn.ProgramDescriptor(
            kernels=[_kernel(kernel) for kernel in program.kernels],
            semaphores=[
                ttnn.SemaphoreDescriptor(
                    id=of.id, core_ranges=_cores(of.cores), initial_value=of.initial
                )
                for of in program.semaphores
            ],
            cbs=[_circular_buffer(of) for of in program.circular_buffers],
        )

    def enqueue(self, program: Any) -> None:
        try:
            ttnn.generic_op([self._operand, self._operand], program)
        except RuntimeError as error:
            if "build failed" in str(error).lower():
                raise Refusal("kernel", str(error)) from error
            raise

    def wait(self) -> None:
        ttnn.synchronize_device(self._device)
        self._unread.clear()

    def begin_capture(self) -> None:
        # Enforces that every program has run: one that has not would be compiled and allocated now.
        self._device.set_program_cache_misses_allowed(False)
        self._trace = ttnn.begin_trace_capture(self._device, cq_id=0)

    def end_capture(self) -> Any:
        ttnn.end_trace_capture(self._device, self._trace, cq_id=0)
        return self._trace

    def record_event(self) -> Any:
        return ttnn.record_event(self._device, 1)

    def replay(self, trace: Any, after: Any | None) -> None:
        if after is not None:
            ttnn.wait_for_event(0, after)
        ttnn.execute_trace(self._device, trace, cq_id=0, blocking=True)
        self._unread.clear()

    def telemetry(self) -> dict[str, object]:
        dram, l1 = self._view(ttnn.BufferType.DRAM), self._view(ttnn.BufferType.L1)
        return {
            "allocated_dram": dram.total_bytes_allocated_per_bank * dram.num_banks,
            "allocated_l1_per_core": l1.total_bytes_allocated_per_bank,
            **sysfs.facts(self._device_id),
        }

    def close(self) -> None:
        ttnn.close_device(self._device)

    def _view(self, kind: Any) -> Any:
        return _NATIVE.device.GetMemoryView(self._device, kind)


def _overlap(memory: Memory, offset: int, count: int) -> list[tuple[Piece, int, int]]:
    """The pieces of a part that begins and ends at granules: each with its place in the part, and its bytes."""
    found = []
    start = 0
    for piece in memory.handle:
        size = piece.rows * piece.row_bytes
        if offset <= start < offset + count:
            found.append((piece, start - offset, size))
        start += size
    return found


def _cores(rectangles: list[Rectangle]) -> Any:
    corners = [(ttnn.CoreCoord(*of.start), ttnn.CoreCoord(*of.end)) for of in rectangles]
    return ttnn.CoreRangeSet([ttnn.CoreRange(*pair) for pair in corners])


def _kernel(kernel: Kernel) -> Any:
    return ttnn.KernelDescriptor(
        kernel_source=kernel.source,
        core_ranges=_cores(kernel.cores),
        compile_time_args=kernel.compile_time_args,
        defines=kernel.defines,
        runtime_args=[(ttnn.CoreCoord(*of.core), of.args) for of in kernel.runtime_args],
        common_runtime_args=kernel.common_runtime_args,
        compiler_include_paths=kernel.include_dirs,
        config=_config(kernel),
    )


def _config(kernel: Kernel) -> Any:
    if kernel.processor == "brisc":
        return ttnn.DataMovementConfigDescriptor(
            processor=ttnn.DataMovementProcessor.RISCV_0, noc=ttnn.NOC.NOC_1
        )
    if kernel.processor == "ncrisc":
        return ttnn.DataMovementConfigDescriptor(
            processor=ttnn.DataMovementProcessor.RISCV_1, noc=ttnn.NOC.NOC_0
        )
    compute = kernel.compute
    assert compute is not None, "checked with the program"
    config = ttnn.ComputeConfigDescriptor(
        math_fidelity=_FIDELITIES[compute.math_fidelity],
        math_approx_mode=compute.math_approx,
        fp32_dest_acc_en=compute.fp32_dest,
        dst_full_sync_en=compute.dst_full_sync,
    )
    if compute.unpack_to_dest_fp32:
        mode = _NATIVE.program_descriptor.UnpackToDestMode
        modes = [mode.Default] * _CIRCULAR_BUFFERS
        for index in compute.unpack_to_dest_fp32:
            modes[index] = mode.UnpackToDestFp32
        config.unpack_to_dest_mode = _NATIVE.program_descriptor.VectorUnpackToDestMode(modes)
    return config


def _circular_buffer(buffer: CircularBuffer) -> Any:
    form = ttnn.CBFormatDescriptor(
        buffer_index=buffer.index, data_format=_FORMATS[buffer.format], page_size=buffer.page_bytes
    )
    return ttnn.CBDescriptor(
        total_size=buffer.total_bytes, core_ranges=_cores(buffer.cores), format_descriptors=[form]
    )
