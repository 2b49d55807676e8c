"""Sums and products on the device, against the interpreter's arithmetic."""

from dataclasses import dataclass

import numpy as np
import pytest
from arithmetic import activation
from blocks import SIDE, Block, Values, as_values, from_bf16, random, round_to_bf16
from lowered import encode
from machine import PACKET_BYTES, Core, Program, Ring, poisoned, run, take_turns
from products import engine_error, product
from weights import arena, packed, packets

pytestmark = pytest.mark.device

L1 = 256 * 1024
PLACE = (0, 0)


@pytest.mark.parametrize("form", ["Bf16", "F32"])
@pytest.mark.parametrize(("first", "rows", "columns"), [(0, 64, 32), (5, 51, 32), (40, 9, 21)])
def test_accumulate(form: str, first: int, rows: int, columns: int) -> None:
    l1 = poisoned(L1)
    x, out = Block(0, form, 2, 1), Block(64 * 1024, "F32", 2, 1)
    x.set(l1, first, 0, random((rows, columns), 1))
    out.set(l1, first, 0, random((rows, columns), 2))
    factor = 0.3
    core = Core(PLACE, l1.copy())
    add = encode(
        "Accumulate", x=x.address, x_format=form, factor=factor, row_tiles=2, first_row=first, rows=rows,
        columns=columns, out=out.address,
    )  # fmt: skip
    take_turns(core, ("compute", add))
    found = run(Program([core])).l1[0]
    cells = np.s_[first : first + rows, :columns]
    terms, sums = as_values(x.get(l1))[cells], as_values(out.get(l1))[cells]
    expected = sums + np.float32(factor) * terms
    out.set(l1, first, 0, expected)
    assert np.array_equal(found, l1)


@dataclass
class Case:
    rows: int
    inputs: int
    columns: int = 32
    first: int = 0
    weights: str = "Bfp8B"
    bias: bool = True
    activation: str = "Identity"
    x_format: str = "Bf16"
    out_format: str = "F32"
    fidelity: str = "HiFi2"
    slots: int = 4


def expected_product(case: Case, x: Values, weights: Values, bias: Values) -> Values:
    sums = product(x, weights, case.fidelity)
    if case.bias:
        sums = sums + bias
    return activation(case.activation, sums.astype(np.float32)).astype(np.float64)


CASES = [
    Case(36, 64),
    Case(51, 100, columns=17, activation="Relu", out_format="Bf16"),
    Case(49, 1536, first=3, out_format="Bf16"),
    Case(81, 2048, weights="Bf16"),
    Case(116, 96, weights="Bf16", fidelity="HiFi4", bias=False),
    Case(64, 320, fidelity="LoFi"),
    Case(40, 160, weights="Bfp4B"),
    Case(40, 160, x_format="F32"),
    Case(300, 608, first=10, out_format="Bf16"),
    Case(300, 608, x_format="F32", weights="Bf16", activation="Relu"),
    Case(81, 96, activation="GeluErf"),
    Case(36, 128, columns=20, activation="GeluTanh", out_format="Bf16"),
    Case(51, 64, weights="Bf16", activation="Silu", fidelity="HiFi4"),
]


def is_small(case: Case) -> bool:
    """Whether a simulator can do it that takes seconds for a product of a hundred tiles."""
    return case.weights == "Bf16" and case.rows * case.inputs < 180_000


def parameter(case: Case) -> object:
    name = "-".join(str(value) for value in vars(case).values())
    return pytest.param(case, id=name, marks=[] if is_small(case) else [pytest.mark.full])


@pytest.mark.parametrize("case", [parameter(case) for case in CASES])
def test_matmul(case: Case) -> None:
    row_tiles = -(-(case.first + case.rows) // SIDE)
    weight, bias = packed(case.weights, case.inputs, case.columns, 2), random((case.columns,), 3)
    bank_bytes, places = arena(packets(weight.tiles))
    ring = Ring(0, case.slots, packets=2, freed=3)
    x = Block(case.slots * PACKET_BYTES, case.x_format, row_tiles, -(-case.inputs // SIDE))
    out = Block(x.end, case.out_format, row_tiles, 1)
    vector, step = out.end, 128
    l1 = poisoned(vector + 4096)
    # What fills up the last column of tiles has to be a number.
    x.set(l1, case.first, 0, random((case.rows, x.column_tiles * SIDE), 1))
    l1[vector + 2 * step :][: 2 * case.columns] = round_to_bf16(bias).view(np.uint8)
    core = Core(PLACE, l1.copy(), ring=ring, semaphores=[0, 0, 0, case.slots], first_pass=2)
    core.feeder = [encode("LoadPacket", bank=at.bank, offset=at.offset, bytes=at.bytes) for at in places]
    multiply = encode(
        "Matmul", x=x.address, row_tiles=row_tiles, first_row=case.first, rows=case.rows, inputs=case.inputs,
        columns=case.columns, weights=case.weights, bias=vector if case.bias else None, vector_step=step,
        activation=case.activation, out=out.address, out_format=case.out_format, x_format=case.x_format,
    )  # fmt: skip
    core.compute = [multiply, encode("EndStream")]
    found = run(Program([core], arena=bank_bytes, fidelity=case.fidelity, scratch_bytes=96 * 1024)).l1[0]
    cells = np.s_[case.first : case.first + case.rows, : case.columns]
    values = as_values(x.get(l1))[case.first :][: case.rows, : case.inputs]
    expected = expected_product(case, values, weight.values, from_bf16(round_to_bf16(bias)))
    result = as_values(out.get(found))[cells]
    tolerance = engine_error(values, weight.values) + 2e-6 * np.sqrt(case.inputs)
    tolerance += (2.0**-8 if case.out_format == "Bf16" else 0) * np.abs(expected)
    worst = (np.abs(result - expected) / tolerance).max()
    print(f"{worst} of the tolerance, {np.abs(result - expected).max()} of {np.abs(expected).max()}")
    assert worst <= 1
    # Nothing else has changed.
    out.take_over(found, l1, cells)
    assert np.array_equal(found[x.address :], l1[x.address :])
