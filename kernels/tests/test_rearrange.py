"""Values that change their places, on the device: every bit is known."""

import numpy as np
import pytest
from blocks import Block, as_values, from_bf16, random, round_to_bf16
from lowered import encode
from machine import Bytes, Core, Program, poisoned, run, take_turns

pytestmark = pytest.mark.device

L1 = 256 * 1024
PLACE = (0, 0)


def compute(l1: Bytes, *instructions: list[int]) -> Bytes:
    core = Core(PLACE, l1.copy())
    take_turns(core, *[("compute", words) for words in instructions])
    return run(Program([core])).l1[0]


@pytest.mark.parametrize(("form", "out_form"), [("F32", "Bf16"), ("Bf16", "F32"), ("Bf16", "Bf16"), ("F32", "F32")])
def test_copies_of_rectangles(form: str, out_form: str) -> None:
    l1 = poisoned(L1)
    x = Block(0, form, 2, 2)
    out = Block(64 * 1024, out_form, 3, 2)
    values = random((49, 50), 1)
    values[3, 7], values[5, 11] = np.nan, -0.0
    x.set(l1, 4, 3, values)
    copied = compute(
        l1,
        encode(
            "CopyBlock", x=x.address, x_format=form, x_row_tiles=2, x_row=4, x_column=3,
            out=out.address, out_format=out_form, out_row_tiles=3, out_row=30, out_column=9, rows=49, columns=50,
        ),
    )  # fmt: skip
    out.set(l1, 30, 9, as_values(x.get(l1))[4:53, 3:53])
    assert np.array_equal(copied, l1)


@pytest.mark.parametrize(("x_step", "out_step"), [(1, 1), (4, 1), (1, 4), (3, 2)])
def test_rows_and_columns_are_regrouped(x_step: int, out_step: int) -> None:
    l1 = poisoned(L1)
    x, out = Block(0, "Bf16", 4, 2), Block(64 * 1024, "F32", 2, 2)
    rows, columns = 9, 15
    values = random((1 + (rows - 1) * x_step, columns), 2)
    x.set(l1, 2, 12, values)
    moved = compute(
        l1,
        encode(
            "Regroup", x=x.address, x_format="Bf16", x_row_tiles=4, x_row=2, x_row_step=x_step, x_column=12,
            out=out.address, out_format="F32", out_row_tiles=2, out_row=29, out_column=3, out_column_step=out_step,
            rows=rows, columns=columns,
        ),
    )  # fmt: skip
    taken = as_values(x.get(l1))[2:, 12 : 12 + columns][::x_step][:rows]
    for column in range(columns):
        out.set(l1, 29, 3 + column * out_step, taken[:, column : column + 1])
    assert np.array_equal(moved, l1)


@pytest.mark.parametrize(("out_form", "step"), [("Bf16", 1), ("F32", 3)])
def test_plain_rows_are_spread_over_tiles(out_form: str, step: int) -> None:
    l1 = poisoned(L1)
    out = Block(64 * 1024, out_form, 2, 2)
    line = round_to_bf16(random((4096,), 3))
    l1[: line.nbytes] = line.view(np.uint8)
    first, row_step, rows, columns = 11, 37, 33, 18
    spread = compute(
        l1,
        encode(
            "Spread", x=0, first=first, x_row_step=row_step, out=out.address, out_format=out_form, out_row_tiles=2,
            out_row=20, out_column=5, out_column_step=step, rows=rows, columns=columns,
        ),
    )  # fmt: skip
    values = from_bf16(line)
    for row in range(rows):
        for column in range(columns):
            out.set(l1, 20 + row, 5 + column * step, values[first + row * row_step + column].reshape(1, 1))
    assert np.array_equal(spread, l1)


@pytest.mark.parametrize("motion", ["Gather", "Scatter", "ScatterAdd"])
@pytest.mark.parametrize(("x_form", "out_form"), [("Bf16", "F32"), ("F32", "Bf16")])
def test_rows_move_as_a_list_says(motion: str, x_form: str, out_form: str) -> None:
    l1 = poisoned(L1)
    x, out = Block(0, x_form, 4, 1), Block(64 * 1024, out_form, 4, 1)
    limit, columns = 100, 29
    random_list = np.random.default_rng(4)
    # Sums may come together in one row; elsewhere each row has one source.
    words = random_list.integers(0, limit, 70) if motion == "ScatterAdd" else random_list.permutation(limit)[:70]
    x_row, out_row = 3, 11
    x.set(l1, x_row, 0, random((limit, columns), 5))
    if motion == "ScatterAdd":
        out.set(l1, out_row, 0, random((limit, columns), 6))
    list_at = 128 * 1024
    l1[list_at:][: 4 * len(words)] = words.astype(np.uint32).view(np.uint8)
    moved = compute(
        l1,
        encode(
            "MoveRows", x=0, x_format=x_form, x_row_tiles=4, x_row=x_row, out=out.address, out_format=out_form,
            out_row_tiles=4, out_row=out_row, list=list_at, count=len(words), limit=limit, columns=columns,
            motion=motion,
        ),
    )  # fmt: skip
    source = as_values(x.get(l1))[x_row:, :columns]
    for number, word in enumerate(words):
        source_row, target_row = (word, number) if motion == "Gather" else (number, word)
        row = source[source_row : source_row + 1]
        if motion == "ScatterAdd":
            row = row + as_values(out.get(l1))[out_row + target_row, :columns]
        out.set(l1, out_row + target_row, 0, row)
    assert np.array_equal(moved, l1)
