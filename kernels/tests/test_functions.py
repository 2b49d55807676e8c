"""The functions of the vector unit over dense ranges of f32, against f64: their errors are those that the headers state.
The activations that cancel for large negative x by their formulas are held to an error relative to x.

`-rP` prints the largest error of each in units of the last place (ulp), and relative to its result."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from blocks import SIDE, Values, as_values, round_to_bf16
from lowered import encode
from machine import Core, Program, run

pytestmark = pytest.mark.device

FUNCTIONS = ("exp", "reciprocal", "rsqrt", "erf", "logistic of negative", "round")
ACTIVATIONS = ("identity", "relu", "silu", "gelu tanh", "gelu erf")
POINTS = 8192
INF, NAN = math.inf, math.nan
SMALLEST = 2.0**-126


def apply(function: str, x: Values) -> Values:
    tiles = -(-len(x) // SIDE**2)
    l1 = np.zeros(tiles * SIDE**2, np.float32)
    l1[: len(x)] = x
    # A stream may not be empty.
    start = [encode("Signal", core=0, semaphore=0, value=1)]
    program = Program(
        [Core((0, 0), l1.view(np.uint8), mover=start)],
        compute_kernel="tests/function.cpp",
        compute_arguments=[(FUNCTIONS + ACTIVATIONS).index(function), tiles],
    )
    return run(program).l1[0].view(np.float32)[: len(x)]


def dense(low: float, high: float) -> Values:
    """Numbers from one to another, as far apart in their bits."""
    ends = np.array([low, high], np.float32).view(np.uint32)
    return np.linspace(*ends.astype(np.float64), POINTS).astype(np.uint32).view(np.float32)


def both_signs(x: Values) -> Values:
    return np.concatenate([x, -x])


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass
class Case:
    function: str
    x: Values
    exact: Callable[[np.ndarray], np.ndarray]
    #: Allowed errors: in units of the last place, or else relative to x.
    ulp: float
    beside: float
    #: What is given at the ends.
    ends: dict[float, float]


CASES = (
    Case("exp", both_signs(dense(1e-30, 87.3)), np.exp, 1.0, 0, {INF: INF, -INF: 0, NAN: NAN, 89: INF, -88: 0, 0: 1}),
    Case("reciprocal", both_signs(dense(SMALLEST, 2.0**100)), np.reciprocal, 1.5, 0, {NAN: NAN, INF: NAN, 0: NAN}),
    Case("rsqrt", dense(SMALLEST, 3e38), lambda x: x**-0.5, 1.5, 0, {NAN: NAN, INF: NAN}),
    Case("erf", both_signs(dense(1e-30, 6)), erf, 1.0, 0, {INF: 1, -INF: -1, 4: 1}),
    Case("logistic of negative", both_signs(dense(1e-30, 69)), lambda x: 1 / (1 + np.exp(x)), 2.5, 0, {INF: 0, -INF: 1, 88: 0}),
    Case("identity", both_signs(dense(SMALLEST, 3e38)), lambda x: x, 0, 0, {INF: INF, -INF: -INF, NAN: NAN}),
    Case("relu", both_signs(dense(SMALLEST, 3e38)), lambda x: np.maximum(x, 0), 0, 0, {INF: INF, -INF: 0, NAN: NAN}),
    Case("silu", both_signs(dense(1e-30, 69)), lambda x: x / (1 + np.exp(-x)), 3.0, 0, {INF: INF, -INF: NAN, NAN: NAN}),
    Case("gelu tanh", both_signs(dense(1e-30, 30)), gelu_tanh, 0, 2e-7, {INF: INF, -INF: NAN, NAN: NAN, 1e20: 1e20}),
    Case(
        "gelu erf", both_signs(dense(1e-30, 30)), lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), 0, 2e-7,
        {INF: INF, -INF: NAN, NAN: NAN, 1e20: 1e20},
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_errors_are_those_that_are_stated(case: Case) -> None:
    ends = np.array(list(case.ends), np.float32)
    results = apply(case.function, np.concatenate([case.x, ends]))
    found, at_ends = results[: len(case.x)].astype(np.float64), results[len(case.x) :]
    x = case.x.astype(np.float64)
    with np.errstate(over="ignore"):
        exact = case.exact(x)
    error = np.abs(found - exact)
    ulp = error / np.spacing(np.maximum(np.abs(exact), SMALLEST).astype(np.float32)).astype(np.float64)
    # Where the formula itself cancels, what counts is the error beside the argument.
    counted = ~(error <= case.beside * np.abs(x))
    worst = np.nanmax(np.where(counted, ulp, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nanmax(np.where(counted & (np.abs(exact) > SMALLEST), error / np.abs(exact), 0))
    print(f"{case.function}: {worst:.2f} ulp, {relative:.2g} relative; beside x {np.max(error / np.abs(x)):.2g}")
    assert worst <= case.ulp
    assert np.array_equal(at_ends, np.array(list(case.ends.values()), np.float32), equal_nan=True), at_ends


def test_rounding_is_to_nearest_and_ties_go_to_even() -> None:
    bits = np.random.default_rng(1).integers(0, 2**32, POINTS, dtype=np.uint32)
    bits[: POINTS // 4] = bits[: POINTS // 4] & 0xFFFF0000 | 0x8000
    x = np.concatenate([bits.view(np.float32), np.array([INF, -INF, NAN, 3.4e38], np.float32)])
    # The vector unit takes denormals for zero.
    x = np.where(np.abs(x) < SMALLEST, np.float32(0), x)
    assert np.array_equal(apply("round", x), as_values(round_to_bf16(x)), equal_nan=True)
