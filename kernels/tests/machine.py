"""A program for some cores, and what stands in their memory before it and after it.

The program runs in a process of its own (`device.py`), which a simulator may end at any error."""

import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from lowered import encode

#: Cores and banks that programs are written for.
COLUMNS, ROWS = 11, 10
BANKS = 8
SEMAPHORES = 16
PACKET_BYTES = 16 * 1024
#: Longer than any test here takes on a simulator; a program that hangs is ended then.
TIME_LIMIT = 300.0

Bytes = npt.NDArray[np.uint8]


@dataclass
class Ring:
    address: int
    slots: int
    packets: int
    freed: int


@dataclass
class Segment:
    """Streams that are executed `passes` times, one after the other."""

    mover: list[list[int]] = field(default_factory=list)
    feeder: list[list[int]] = field(default_factory=list)
    compute: list[list[int]] = field(default_factory=list)
    first_pass: int = 0
    passes: int = 1


@dataclass
class Core:
    """One core: its streams, the first values of its semaphores, and its L1."""

    place: tuple[int, int]
    l1: Bytes
    mover: list[list[int]] = field(default_factory=list)
    feeder: list[list[int]] = field(default_factory=list)
    compute: list[list[int]] = field(default_factory=list)
    semaphores: list[int] = field(default_factory=list)
    ring: Ring | None = None
    bank: int = 0
    first_pass: int = 0
    passes: int = 1
    #: Segments behind the first one, which is the core's own.
    later: list[Segment] = field(default_factory=list)

    def segments(self) -> list[Segment]:
        return [Segment(self.mover, self.feeder, self.compute, self.first_pass, self.passes), *self.later]


@dataclass
class Program:
    """Pages of buffers and tables are the rows of their arrays."""

    cores: list[Core]
    buffers: dict[int, Bytes] = field(default_factory=dict)
    tables: dict[int, Bytes] = field(default_factory=dict)
    arena: Bytes | None = None  # [bank, bytes]
    scratch_bytes: int = 64 * 1024
    fidelity: str = "HiFi2"
    #: Another kernel in place of the compute engine's, by its path from the folder of the kernels.
    compute_kernel: str = "compute.cpp"
    compute_arguments: list[int] = field(default_factory=list)
    #: After the first launch the program is captured as a trace, and replayed so often.
    replays: int = 0


@dataclass
class Result:
    l1: list[Bytes]
    buffers: dict[int, Bytes]


def poisoned(size: int) -> Bytes:
    """L1 full of NaN: what nobody may read, and what has to be there still where nothing was written."""
    words = np.full(size // 4, 0x7FC1_FFC1, dtype=np.uint32)
    return words.view(np.uint8).copy()


def take_turns(core: Core, *steps: tuple[str, list[int]]) -> None:
    """Adds instructions of the mover and of compute that are executed one after the other, by semaphores 0 and 1."""
    own = core.place[0] | core.place[1] << 8
    turn = "mover"
    streams = {"mover": core.mover, "compute": core.compute}
    for engine, words in steps:
        if engine != turn:
            semaphore = 0 if engine == "mover" else 1
            streams[turn].append(encode("Signal", core=own, semaphore=semaphore, value=1))
            streams[engine].append(encode("Wait", semaphore=semaphore, value=1))
            turn = engine
        streams[engine].append(words)


def run(program: Program, limit: float = TIME_LIMIT) -> Result:
    """Runs a program on the device that the environment names; fails with the device's words if it does not end well.

    Raises `subprocess.TimeoutExpired` if it takes longer than `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        job, answer = Path(folder) / "job", Path(folder) / "answer"
        job.write_bytes(pickle.dumps(program))
        command = [sys.executable, str(Path(__file__).with_name("device.py")), str(job), str(answer)]
        # There the runtime leaves its reports.
        device = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=limit, env=os.environ, check=False
        )
        if device.returncode != 0 or not answer.exists():
            raise AssertionError(
                f"the device ended with {device.returncode}:\n{device.stdout[-4000:]}\n{device.stderr[-4000:]}"
            )
        result = pickle.loads(answer.read_bytes())
        assert isinstance(result, Result)
        return result
