"""What an engine cannot execute stops it: its program does not end, so that nobody takes what it leaves for results."""

import subprocess
import time

import numpy as np
import pytest
from lowered import WORDS, encode
from machine import Core, Program, poisoned, run

pytestmark = pytest.mark.device

MOVE = dict(
    x=0, x_format="Bf16", x_row_tiles=1, x_row=0, out=2048, out_format="Bf16", out_row_tiles=1, out_row=0, list=4096,
    count=3, columns=8, motion="Gather",
)  # fmt: skip


def program(engine: str, words: list[int], table: int) -> Program:
    l1 = poisoned(32 * 1024)
    l1[4096:][:12] = np.array([2, 0, 9], np.uint32).view(np.uint8)
    core = Core((0, 0), l1)
    getattr(core, engine).append(words)
    return Program([core], tables={table: np.zeros((8, 64), np.uint8)})


def read_of(table: int) -> list[int]:
    return encode(
        "ReadRows", table=table, list=None, first=0, count=1, offset=0, bytes=64, address=8192, address_step=64
    )


@pytest.mark.parametrize(
    ("engine", "good", "bad"),
    [
        ("mover", read_of(4), read_of(5)),
        ("feeder", read_of(4), [99] + [0] * (WORDS - 1)),
        ("compute", encode("MoveRows", limit=10, **MOVE), encode("MoveRows", limit=9, **MOVE)),
    ],
    ids=["unknown table", "unknown code", "list word beyond its limit"],
)
def test_a_program_with_a_bad_instruction_does_not_end(engine: str, good: list[int], bad: list[int]) -> None:
    run(program(engine, good, 4))  # Builds the kernels.
    begin = time.monotonic()
    run(program(engine, good, 4))
    with pytest.raises(subprocess.TimeoutExpired):
        run(program(engine, bad, 4), limit=2 + 3 * (time.monotonic() - begin))
