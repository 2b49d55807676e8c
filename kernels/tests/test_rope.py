"""Rotary positions on the device: the operations of the interpreter in its order, so that every bit is known."""

import numpy as np
import pytest
from arithmetic import compare
from blocks import Block, as_values, random
from lowered import encode
from machine import Core, Program, poisoned, run

pytestmark = pytest.mark.device


@pytest.mark.parametrize(
    ("first_row", "rows", "column", "heads", "half", "form"),
    [
        (0, 36, 0, 2, 64, "F32"),
        (13, 51, 32, 2, 32, "Bf16"),
        (0, 81, 0, 3, 16, "F32"),
        (31, 116, 5, 2, 20, "Bf16"),
        (0, 49, 0, 1, 36, "F32"),
        (2, 1, 7, 4, 1, "F32"),
    ],
)
def test_halves_of_heads_are_rotated(first_row: int, rows: int, column: int, heads: int, half: int, form: str) -> None:
    l1 = poisoned(512 * 1024)
    row_tiles, columns = -(-(first_row + rows) // 32), heads * 2 * half
    x = Block(0, form, row_tiles, -(-(column + columns) // 32))
    cos, sin = (Block(address * 1024, "Bf16", row_tiles, -(-half // 32)) for address in (320, 400))
    x.set(l1, first_row, column, random((rows, columns), 1))
    cos.set(l1, first_row, 0, random((rows, half), 2))
    sin.set(l1, first_row, 0, random((rows, half), 3))
    instruction = encode(
        "Rope", x=0, format=form, row_tiles=row_tiles, first_row=first_row, rows=rows, column=column, columns=columns,
        half=half, cos=cos.address, sin=sin.address,
    )  # fmt: skip
    found = run(Program([Core((0, 0), l1.copy(), compute=[instruction])])).l1[0]
    lines = slice(first_row, first_row + rows)
    c, s = (as_values(block.get(l1))[lines, None, :half] for block in (cos, sin))
    halves = as_values(x.get(l1))[lines, column : column + columns].reshape(rows, heads, 2, half)
    a, b = halves[:, :, 0], halves[:, :, 1]
    exact = np.stack([a * c - b * s, b * c + a * s], axis=2).reshape(rows, columns)
    compare(f"rope {half}", x, found, l1, first_row, column, exact, 0.0)
