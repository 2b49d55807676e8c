"""Norms on the device, against numpy in f32 in the interpreter's order of sums.

The kernels add columns lane by lane and lanes by pairs: a sum of n values may differ by n units in the last place of the
sum of their magnitudes, here called `UNIT`. What is divided by the deviation differs by as much more."""

import numpy as np
import pytest
from arithmetic import compare, f32, mean_and_factor, moments, moments_of_rows, rms_factor, sum_in_order
from blocks import Block, Values, as_values, random, round_to_bf16
from lowered import encode
from machine import Bytes, Core, Program, poisoned, run

pytestmark = pytest.mark.device

UNIT = 2.0**-24
L1 = 1024 * 1024


def execute(l1: Bytes, instruction: list[int], first_pass: int = 0) -> Bytes:
    return run(Program([Core((0, 0), l1.copy(), compute=[instruction], first_pass=first_pass)])).l1[0]


def put(l1: Bytes, address: int, data: np.ndarray) -> None:
    data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    l1[address : address + len(data)] = data


def pairs_at(l1: Bytes, address: int, rows: int) -> Values:
    return l1[address : address + 8 * rows].copy().view(np.float32).reshape(rows, 2)


def check_pairs(name: str, found: Bytes, before: Bytes, address: int, exact: Values, allowed: Values) -> None:
    pairs = pairs_at(found, address, len(exact))
    difference = np.abs(pairs.astype(np.float64) - exact)
    print(f"{name}: max|d| {difference.max(axis=0)} of {np.abs(exact).max(axis=0)}")
    assert (difference <= allowed).all(), f"{name}: differs by {difference.max(axis=0)}"
    expected = before.copy()
    put(expected, address, pairs)
    assert np.array_equal(found, expected), f"{name}: bytes beside the result changed"


@pytest.mark.parametrize(
    ("rows", "columns", "form"),
    [(36, 32, "F32"), (49, 17, "Bf16"), (51, 32, "F32"), (81, 1, "Bf16"), (116, 31, "F32"), (128, 16, "Bf16")],
)
def test_moments_of_ragged_blocks(rows: int, columns: int, form: str) -> None:
    l1 = poisoned(L1)
    x = Block(0, form, -(-rows // 32), 1)
    x.set(l1, 0, 0, random((rows, columns), 1, 2.0) + f32(0.5))
    found = execute(l1, encode("Moments", x=0, format=form, rows=rows, columns=columns, out=65536 + 8))
    values = as_values(x.get(l1))[:rows, :columns]
    exact = np.stack(moments(values), axis=1)
    magnitudes = np.stack([np.abs(values).sum(axis=1), (values**2).sum(axis=1)], axis=1)
    check_pairs("moments", found, l1, 65536 + 8, exact, columns * UNIT * magnitudes)


@pytest.mark.parametrize(
    ("rows", "count", "width"), [(36, 48, 1536), (49, 1, 32), (81, 5, 147), (116, 32, 1024), (520, 3, 96)]
)
def test_parts_of_moments_are_combined_in_order(rows: int, count: int, width: int) -> None:
    l1 = poisoned(L1)
    step = (8 * rows + 31) // 16 * 16
    values = random((rows, width), 3) + f32(0.3)
    parts = [moments(piece) for piece in np.array_split(values, count, axis=1)]
    for number, part in enumerate(parts):
        put(l1, 64 + number * step, np.stack(part, axis=1))
    out, eps = 512 * 1024 + 8, 1e-5
    found = execute(l1, encode("Combine", parts=64, step=step, count=count, rows=rows, width=width, eps=eps, out=out))
    sums = [sum_in_order([part[side] for part in parts]) for side in (0, 1)]
    exact = np.stack(mean_and_factor(sums[0], sums[1], width, eps), axis=1)
    # Sums are added in the same order: what is left is one division, and a reciprocal root of 2 units.
    check_pairs("combine", found, l1, out, exact, 4 * UNIT * np.abs(exact))


@pytest.mark.parametrize(
    ("rows", "columns", "form", "scale", "shift", "first_pass"),
    [
        (36, 32, "F32", True, True, 0),
        (51, 17, "Bf16", True, False, 3),
        (81, 32, "F32", False, True, 1),
        (116, 5, "Bf16", False, False, 0),
    ],
)
def test_rows_are_normalised_by_their_pairs(
    rows: int, columns: int, form: str, scale: bool, shift: bool, first_pass: int
) -> None:
    l1 = poisoned(L1)
    row_tiles = -(-rows // 32) + 1
    x, out = Block(0, form, row_tiles, 1), Block(128 * 1024, "Bf16", row_tiles, 1)
    pairs, gain_at, shift_at, step = 256 * 1024 + 8, 300 * 1024 + 2, 310 * 1024 + 2, 130
    x.set(l1, 0, 0, random((rows, columns), 1))
    put(l1, pairs, random((rows, 2), 2))
    vectors = {at: round_to_bf16(random((columns,), at)) for at in (gain_at, shift_at)}
    for at, vector in vectors.items():
        put(l1, at + first_pass * step, vector)
    found = execute(
        l1,
        encode(
            "Normalise", x=0, format=form, row_tiles=row_tiles, rows=rows, columns=columns, moments=pairs,
            scale=gain_at if scale else None, shift=shift_at if shift else None, vector_step=step, out=out.address,
        ),
        first_pass,
    )  # fmt: skip
    mean, factor = pairs_at(l1, pairs, rows).T[:, :, None]
    exact = (as_values(x.get(l1))[:rows, :columns] - mean) * factor
    if scale:
        exact = exact * (f32(1) + as_values(vectors[gain_at]))
    if shift:
        exact = exact + as_values(vectors[shift_at])
    # The same operations in the same order: every bit.
    assert np.array_equal(as_values(out.get(found))[:rows, :columns], as_values(round_to_bf16(exact)))
    compare("normalise", out, found, l1, 0, 0, exact, 0.0)


NORMS = (
    # first row, rows, columns, first and count of the columns that are written, formats of x and out
    (0, 36, 96, 0, 96, "F32", "Bf16"),
    (13, 51, 147, 32, 64, "Bf16", "F32"),
    (0, 81, 64, 20, 37, "F32", "F32"),
    (31, 116, 36, 0, 36, "Bf16", "Bf16"),
    (0, 49, 1152, 1088, 64, "F32", "Bf16"),
    (5, 1, 2048, 17, 40, "Bf16", "F32"),
)


def norm_blocks(
    l1: Bytes, first_row: int, rows: int, columns: int, count: int, forms: tuple[str, str]
) -> tuple[Block, Block, Values]:
    row_tiles = -(-(first_row + rows) // 32)
    x = Block(0, forms[0], row_tiles, -(-columns // 32))
    out = Block(512 * 1024, forms[1], row_tiles, -(-count // 32))
    x.set(l1, first_row, 0, random((rows, columns), 1, 2.0) + f32(0.5))
    return x, out, as_values(x.get(l1))[first_row : first_row + rows, :columns]


@pytest.mark.parametrize(
    ("case", "scaling"),
    [
        (0, "None"),
        (0, "Affine"),
        (0, "Modulated"),
        (1, "Affine"),
        (2, "Modulated"),
        (3, "None"),
        (4, "Affine"),
        (5, "Modulated"),
    ],
)
def test_layer_norm_of_ragged_rows(case: int, scaling: str) -> None:
    first_row, rows, columns, first, count, *forms = NORMS[case]
    l1 = poisoned(L1)
    x, out, values = norm_blocks(l1, first_row, rows, columns, count, tuple(forms))
    gain, shift = (round_to_bf16(random((columns,), seed)) for seed in (2, 3))
    given = scaling != "None"
    if given:
        put(l1, 900 * 1024, gain)
        put(l1, 910 * 1024 + 2, shift)
    found = execute(
        l1,
        encode(
            "LayerNorm", x=0, x_format=forms[0], row_tiles=x.row_tiles, first_row=first_row, rows=rows, columns=columns,
            first=first, count=count, scaling=scaling, gain=900 * 1024 if given else None,
            shift=910 * 1024 + 2 if given else None, eps=1e-6, out=out.address, out_format=forms[1],
        ),
    )  # fmt: skip
    mean, factor = mean_and_factor(*moments_of_rows(values), columns, 1e-6)
    exact = (values - mean[:, None]) * factor[:, None]
    if given:
        exact = exact * (as_values(gain) + f32(scaling == "Modulated")) + as_values(shift)
    exact = exact[:, first : first + count]
    compare(f"layer norm {scaling} {columns}", out, found, l1, first_row, 0, exact, 64 * UNIT * np.abs(exact).max())


@pytest.mark.parametrize(("case", "group"), [(0, 96), (0, 32), (1, 49), (2, 16), (3, 12), (4, 128), (5, 2048)])
def test_rms_norm_of_groups(case: int, group: int) -> None:
    first_row, rows, columns, first, count, *forms = NORMS[case]
    l1 = poisoned(L1)
    x, out, values = norm_blocks(l1, first_row, rows, columns, count, tuple(forms))
    weight = round_to_bf16(random((group,), 2))
    put(l1, 900 * 1024, weight)
    found = execute(
        l1,
        encode(
            "RmsNorm", x=0, x_format=forms[0], row_tiles=x.row_tiles, first_row=first_row, rows=rows, columns=columns,
            group=group, first=first, count=count, weight=900 * 1024, eps=1e-6, out=out.address, out_format=forms[1],
        ),
    )  # fmt: skip
    exact = np.empty_like(values)
    for left in range(0, columns, group):
        part = values[:, left : left + group]
        factor = rms_factor(moments_of_rows(part)[1], group, 1e-6)
        exact[:, left : left + group] = as_values(weight) * (part * factor[:, None])
    exact = exact[:, first : first + count]
    compare(f"RMS norm {columns} by {group}", out, found, l1, first_row, 0, exact, 64 * UNIT * np.abs(exact).max())


def test_rows_that_are_not_numbers_stay_alone() -> None:
    l1 = poisoned(L1)
    x, out, _ = norm_blocks(l1, 0, 40, 64, 64, ("F32", "Bf16"))
    x.set(l1, 7, 5, np.array([[np.nan]], np.float32))
    x.set(l1, 33, 63, np.array([[np.inf]], np.float32))
    found = execute(
        l1,
        encode(
            "LayerNorm", x=0, x_format="F32", row_tiles=2, first_row=0, rows=40, columns=64, first=0, count=64,
            scaling="None", gain=None, shift=None, eps=1e-6, out=out.address, out_format="Bf16",
        ),
    )  # fmt: skip
    values = as_values(x.get(l1))[:40, :64]
    with np.errstate(invalid="ignore", over="ignore"):
        mean, factor = mean_and_factor(*moments_of_rows(values), 64, 1e-6)
        exact = (values - mean[:, None]) * factor[:, None]
    assert np.isnan(exact[[7, 33]]).all()
    compare("layer norm beside NaN", out, found, l1, 0, 0, exact, 64 * UNIT * np.nanmax(np.abs(exact)))
