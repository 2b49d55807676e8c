"""A program of the card, as the client describes it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from .decode import Range
from .limits import CIRCULAR_BUFFERS, MAX_NAME_BYTES, MAX_U32, SEMAPHORES

U32 = Annotated[int, Range(0, MAX_U32)]
Index = Annotated[int, Range(0, CIRCULAR_BUFFERS - 1)]
Name = Annotated[str, Range(1, MAX_NAME_BYTES)]
Core = tuple[U32, U32]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Cores from the upper left one to the lower right one, both inside; `[x, y]`."""

    start: Core
    end: Core

    def cores(self) -> list[tuple[int, int]]:
        """Row by row."""
        columns = range(self.start[0], self.end[0] + 1)
        return [(x, y) for y in range(self.start[1], self.end[1] + 1) for x in columns]


Cores = Annotated[list[Rectangle], Range(1, 1024)]


@dataclass(frozen=True, slots=True)
class Compute:
    """What a compute kernel is compiled for."""

    math_fidelity: Literal["lofi", "hifi2", "hifi3", "hifi4"]
    fp32_dest: bool
    dst_full_sync: bool
    math_approx: bool
    unpack_to_dest_fp32: list[Index]


@dataclass(frozen=True, slots=True)
class RuntimeArgs:
    """Of one core."""

    core: Core
    args: list[U32]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A source with all that it is compiled and run with."""

    source: str
    processor: Literal["brisc", "ncrisc", "trisc"]
    cores: Cores
    compile_time_args: list[U32]
    defines: list[tuple[str, str]]
    include_dirs: list[str]
    common_runtime_args: list[U32]
    runtime_args: list[RuntimeArgs]
    compute: Compute | None


@dataclass(frozen=True, slots=True)
class CircularBuffer:
    """A queue of pages in the L1 of each core."""

    index: Index
    cores: Cores
    total_bytes: U32
    page_bytes: U32
    format: Literal["bf16", "f32", "bfp8_b", "bfp4_b", "u32"]


@dataclass(frozen=True, slots=True)
class Semaphore:
    """A counter in the L1 of each core."""

    id: Annotated[int, Range(0, SEMAPHORES - 1)]
    cores: Cores
    initial: U32


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels that run together."""

    name: Name
    kernels: Annotated[list[Kernel], Range(1, 64)]
    circular_buffers: list[CircularBuffer]
    semaphores: list[Semaphore]
