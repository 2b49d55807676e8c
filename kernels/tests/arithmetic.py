"""What the interpreter computes, by plain numpy in f32, and how what a device found is compared with it."""

import math

import numpy as np
from blocks import Block, Values, as_values, stored
from machine import Bytes

f32 = np.float32


def half_step_of_bf16(x: Values) -> Values:
    """What rounding to bf16 may change at most: half the distance of neighbours, which have 8 bits."""
    return np.ldexp(1.0, np.frexp(np.abs(x.astype(np.float64)))[1] - 9)


def exp(x: Values) -> Values:
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(x.astype(np.float64)).astype(np.float32)


def erf(x: Values) -> Values:
    return np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)).astype(np.float32)


def activation(kind: str, x: Values) -> Values:
    with np.errstate(all="ignore"):
        if kind == "Relu":
            return np.where(x < 0, f32(0), x)
        if kind == "Silu":
            return x / (f32(1) + exp(-x))
        if kind == "GeluTanh":
            return x / (f32(1) + exp(-f32(1.5957692) * (x * x * x * f32(0.044715) + x)))
        if kind == "GeluErf":
            return f32(0.5) * x * (f32(1) + erf(x * f32(0.70710678)))
        return x


def compare(
    name: str, block: Block, found: Bytes, before: Bytes, row: int, column: int, exact: Values, tolerance: float
) -> None:
    """That the block holds `exact` at a place, within `tolerance` and the rounding of its format, and that nothing else of
    the memory has changed. Prints the largest difference and the correlation."""
    rows, columns = exact.shape
    part = (slice(row, row + rows), slice(column, column + columns))
    values = as_values(block.get(found))[part]
    expected = before.copy()
    bits = block.get(expected)
    bits[part] = block.get(found)[part]
    block.put(expected, bits)
    others = np.flatnonzero(found != expected)
    assert others.size == 0, f"{name}: {others.size} bytes beside the result changed, the first at {others[0]}"
    # The packer makes infinity of what is not a number in bf16.
    is_wanted = np.isfinite if block.form == "Bf16" else lambda of: ~np.isnan(of)
    assert np.array_equal(is_wanted(values), is_wanted(exact)), f"{name}: not a number at other places"
    counted = is_wanted(exact)
    with np.errstate(invalid="ignore"):
        difference = np.where(counted & (values != exact), np.abs(values.astype(np.float64) - exact), 0)
    allowed = tolerance + (half_step_of_bf16(exact) if block.form == "Bf16" else 0)
    if counted.sum() > 2:
        pcc = np.corrcoef(values[counted].astype(np.float64), exact[counted].astype(np.float64))[0, 1]
        others = counted & (values != as_values(stored(exact, block.form)))
        print(
            f"{name}: max|d| {difference.max():.3g} of {np.abs(exact[counted]).max():.3g}, PCC {pcc:.9f}; "
            f"{others.sum()} of {counted.sum()} are not the interpreter's"
        )
    wrong = counted & ~(difference <= allowed)
    assert not wrong.any(), f"{name}: {wrong.sum()} values differ, at most by {difference.max()}"


def moments(x: Values) -> tuple[Values, Values]:
    """Sum and sum of squares of each row, one value after the other; a square is added in one rounding."""
    total, squares = np.zeros(len(x), np.float32), np.zeros(len(x), np.float32)
    for value in x.T:
        total = total + value
        squares = (value.astype(np.float64) ** 2 + squares).astype(np.float32)
    return total, squares


def moments_of_rows(x: Values) -> tuple[Values, Values]:
    """Those of pieces of 32 columns, added in ascending order."""
    pieces = [moments(x[:, first : first + 32]) for first in range(0, x.shape[1], 32)]
    return sum_in_order([piece[0] for piece in pieces]), sum_in_order([piece[1] for piece in pieces])


def sum_in_order(terms: list[Values]) -> Values:
    total = np.zeros_like(terms[0])
    for term in terms:
        total = total + term
    return total


def mean_and_factor(total: Values, squares: Values, width: int, eps: float) -> tuple[Values, Values]:
    mean = total / f32(width)
    variance = squares / f32(width) - mean * mean
    variance = np.where(variance < 0, f32(0), variance)
    return mean, f32(1) / np.sqrt(variance + f32(eps))


def rms_factor(squares: Values, width: int, eps: float) -> Values:
    return f32(1) / np.sqrt(squares / f32(width) + f32(eps))
