"""Activations on the device, against numpy in f32 with the formulas of `src/backend/cpu/math.rs`."""

import numpy as np
import pytest
from arithmetic import activation, compare
from blocks import Block, as_values, random
from lowered import encode
from machine import Core, Program, poisoned, run

pytestmark = pytest.mark.device

KINDS = ("Identity", "Relu", "Silu", "GeluTanh", "GeluErf")
#: Rows of blocks that are worked on: first row and how many.
ROWS = ((0, 36), (0, 49), (13, 51), (0, 81), (31, 116), (0, 1))


@pytest.mark.parametrize("factor_form", (None, "Bf16", "F32"))
@pytest.mark.parametrize("kind", KINDS)
def test_activations_of_ragged_blocks(kind: str, factor_form: str | None) -> None:
    number = KINDS.index(kind)
    (first, rows), columns = ROWS[number], (32, 17, 32, 5, 16)[number]
    x_form, out_form = (("Bf16", "F32"), ("F32", "Bf16"))[number % 2]
    row_tiles = -(-(first + rows) // 32) + 1
    l1 = poisoned(256 * 1024)
    x = Block(0, x_form, row_tiles, 1)
    factor = Block(64 * 1024, factor_form or "Bf16", row_tiles, 1)
    out = Block(128 * 1024, out_form, row_tiles, 1)
    x.set(l1, first, 0, random((rows, columns), 1, scale=3.0))
    factor.set(l1, first, 0, random((rows, columns), 2))
    instruction = encode(
        "Activate", x=x.address, x_format=x_form, factor=factor.address if factor_form else None,
        factor_format=factor.form, activation=kind, row_tiles=row_tiles, first_row=first, rows=rows,
        columns=columns, out=out.address, out_format=out_form,
    )  # fmt: skip
    found = run(Program([Core((0, 0), l1.copy(), compute=[instruction])])).l1[0]
    part = (slice(first, first + rows), slice(0, columns))
    exact = activation(kind, as_values(x.get(l1))[part])
    if factor_form:
        exact = exact * as_values(factor.get(l1))[part]
    # A relative error of 3e-7 and that of the product.
    compare(f"{kind} times {factor_form}", out, found, l1, first, 0, exact, 1e-6 * np.abs(exact).max())
