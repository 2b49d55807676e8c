"""A card that is a piece of memory, for tests: a program copies bytes from one address to another."""

from collections.abc import Sequence
from dataclasses import dataclass

from gr00t_device_worker.backend import Backend, Card, Memory
from gr00t_device_worker.program import Program
from gr00t_device_worker.refusal import Refusal
from gr00t_device_worker.requests import L1, Dram, Open

DRAM_BYTES = 1 << 20
BANKS = 8
GRID = (11, 10)
GRANULE_PAGES = 16


@dataclass(frozen=True)
class Copy:
    """What a program does: its first kernel's first run-time arguments are source, target and bytes."""

    source: int
    target: int
    count: int


class MemoryBackend(Backend):
    """Buffers lie one after the other in one line of bytes."""

    def open(self, request: Open) -> Card:
        self._memory = bytearray(DRAM_BYTES)
        self._end = 0
        self._recorded: list[Copy] | None = None
        self._events = 0
        noc = [(x + 1, y + 2) for y in range(GRID[1]) for x in range(GRID[0])]
        return Card("blackhole", GRID, noc, BANKS, 64, 16, 1_395_712)

    def allocate(self, name: str, place: Dram | L1) -> Memory:
        assert self._recorded is None, "nothing is allocated in a capture"
        if isinstance(place, Dram):
            size, granule = place.page_bytes * place.pages, place.page_bytes * GRANULE_PAGES
        else:
            size = granule = place.bytes_per_core * len(place.cores.cores())
        if self._end + size > DRAM_BYTES:
            raise Refusal("memory", f"buffer '{name}' wants {size} bytes, {DRAM_BYTES - self._end} are left")
        memory = Memory(self._end, size, min(granule, size), None)
        self._end += size
        return memory

    def write(self, memory: Memory, offset: int, data: memoryview, queue: int) -> None:
        start = memory.address + offset
        self._memory[start : start + len(data)] = data

    def read(self, memory: Memory, offset: int, into: memoryview) -> None:
        start = memory.address + offset
        into[:] = self._memory[start : start + len(into)]

    def build(self, program: Program) -> Copy:
        return Copy(*_first_args(program))

    def enqueue(self, program: Copy) -> None:
        if self._recorded is not None:
            self._recorded.append(program)
            return
        data = self._memory[program.source : program.source + program.count]
        self._memory[program.target : program.target + program.count] = data

    def wait(self) -> None:
        pass

    def begin_capture(self) -> None:
        self._recorded = []

    def end_capture(self) -> list[Copy]:
        recorded, self._recorded = self._recorded, None
        assert recorded is not None
        return recorded

    def record_event(self) -> int:
        self._events += 1
        return self._events

    def replay(self, trace: Sequence[Copy], after: int | None) -> None:
        assert after is None or after == self._events
        for program in trace:
            self.enqueue(program)

    def telemetry(self) -> dict[str, object]:
        nothing: dict[str, object] = dict.fromkeys(
            ("allocated_l1_per_core", "driver", "firmware", "temperature_c", "power_w", "clock_mhz")
        )
        return {"allocated_dram": self._end, **nothing}

    def close(self) -> None:
        pass


def _first_args(program: Program) -> tuple[int, int, int]:
    args = program.kernels[0].runtime_args[0].args
    if args[0] == FAIL:
        raise RuntimeError("TT_FATAL: the card does not answer")
    return args[0], args[1], args[2]


FAIL = 0xFFFF_FFFF
