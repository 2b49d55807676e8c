"""What a session needs of a card."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from .program import Program
from .requests import L1, Dram, Open


@dataclass(frozen=True, slots=True)
class Card:
    """The card that was opened: the reply to `open`."""

    arch: str
    grid: tuple[int, int]
    noc: list[tuple[int, int]]
    dram_banks: int
    dram_alignment: int
    l1_alignment: int
    l1_bytes: int

    def reply(self) -> dict[str, object]:
        """As it is sent."""
        columns, rows = self.grid
        return {
            "arch": self.arch,
            "grid": {"columns": columns, "rows": rows},
            "noc": [list(core) for core in self.noc],
            "dram_banks": self.dram_banks,
            "dram_alignment": self.dram_alignment,
            "l1_alignment": self.l1_alignment,
            "l1_bytes": self.l1_bytes,
        }


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer. Only its backend knows what `handle` is."""

    address: int
    bytes: int
    granule: int
    handle: Any


class Backend(ABC):
    """A card and what has been made on it. Everything is checked before it comes here.

    Any exception but a `Refusal` means that the card has failed.
    """

    @abstractmethod
    def open(self, request: Open) -> Card:
        """Opens the card."""

    @abstractmethod
    def allocate(self, name: str, place: Dram | L1) -> Memory:
        """Memory of the card."""

    @abstractmethod
    def write(self, memory: Memory, offset: int, data: memoryview, queue: int) -> None:
        """Writes to a part of a buffer that begins and ends at granules; `data` may change afterwards."""

    @abstractmethod
    def read(self, memory: Memory, offset: int, into: memoryview) -> None:
        """Reads a part of a buffer that begins and ends at granules; nothing is still under way."""

    @abstractmethod
    def build(self, program: Program) -> Any:
        """A program that can be run."""

    @abstractmethod
    def enqueue(self, program: Any) -> None:
        """Runs a program on queue 0 without waiting, or records it while a trace is captured."""

    @abstractmethod
    def wait(self) -> None:
        """Until all that was enqueued is done, on every queue."""

    @abstractmethod
    def begin_capture(self) -> None:
        """Records programs from here on."""

    @abstractmethod
    def end_capture(self) -> Any:
        """The trace."""

    @abstractmethod
    def record_event(self) -> Any:
        """An event on queue 1, behind what was written there."""

    @abstractmethod
    def replay(self, trace: Any, after: Any | None) -> None:
        """Replays a trace on queue 0, after an event, to its end."""

    @abstractmethod
    def telemetry(self) -> dict[str, object]:
        """The fields of `telemetry` that the session does not know."""

    @abstractmethod
    def close(self) -> None:
        """Closes the card."""
