"""Attention of one head on the device, against numpy with the roundings of `src/backend/cpu/card/attention.rs`.

The matrix engine adds products in another order, so that a score near the middle of two bf16 may become the other one:
a weight then differs by 1 part in 256 times its score. Hence the tolerance, of the largest value."""

import numpy as np
import pytest
from arithmetic import compare, exp, f32
from blocks import Block, Values, as_values, random, round_to_bf16
from lowered import encode
from machine import Core, Program, poisoned, run

pytestmark = pytest.mark.device

#: Bits of a value, as a bf16, that take part in products.
VALUE_MASKS = {"HiFi2": 0xFFFE, "HiFi4": 0xFFFF}


def rounded(values: Values, mask: int = 0xFFFF) -> Values:
    return as_values(round_to_bf16(values) & np.uint16(mask))


def attend(q: Values, k: Values, v: Values, scale: float, before: int | None, mask: int) -> Values:
    scores = rounded(f32(scale) * (rounded(q, mask).astype(np.float64) @ k.T).astype(np.float32))
    if before is not None:
        seen = np.arange(len(k)) <= before + np.arange(len(q))[:, None]
        scores = np.where(seen, scores, f32(-np.inf))
    weights = rounded(exp(scores - scores.max(axis=1, keepdims=True)))
    factor = f32(1) / weights.sum(axis=1, dtype=np.float32)
    return (rounded(weights, mask).astype(np.float64) @ v).astype(np.float32) * factor[:, None]


@pytest.mark.parametrize(
    ("rows", "keys", "head_dim", "before", "fidelity"),
    [
        (36, 36, 64, None, "HiFi2"),
        (49, 49, 48, 0, "HiFi4"),
        (51, 81, 128, 30, "HiFi2"),
        (81, 116, 72, None, "HiFi4"),
        (1, 133, 32, 132, "HiFi4"),
        (20, 5, 16, None, "HiFi2"),
        (16, 300, 64, 7, "HiFi4"),
    ],
)
def test_attention_of_ragged_rows(rows: int, keys: int, head_dim: int, before: int | None, fidelity: str) -> None:
    l1 = poisoned(512 * 1024)
    row_tiles, key_tiles, columns = -(-rows // 32) + 1, -(-keys // 32) + 1, -(-head_dim // 32)
    q, out = (Block(address * 1024, "Bf16", row_tiles, columns) for address in (0, 64))
    k, v = (Block(address * 1024, "Bf16", key_tiles, columns) for address in (128, 256))
    # What fills up columns of tiles has to be zero, and rows of values behind the last key have to be numbers.
    q.set(l1, 0, 0, np.pad(random((rows, head_dim), 1, 1.5), ((0, 0), (0, -head_dim % 32))))
    k.set(l1, 0, 0, np.pad(random((keys, head_dim), 2, 1.5), ((0, 0), (0, -head_dim % 32))))
    v.set(l1, 0, 0, random((32 * key_tiles, head_dim), 3))
    scale = head_dim**-0.5
    instruction = encode(
        "Attention", q=q.address, k=k.address, v=v.address, row_tiles=row_tiles, rows=rows, key_tiles=key_tiles, keys=keys,
        head_dim=head_dim, scale=scale, before=before, out=out.address,
    )  # fmt: skip
    found = run(Program([Core((0, 0), l1.copy(), compute=[instruction])], fidelity=fidelity)).l1[0]
    operands = [as_values(block.get(l1))[:length, :head_dim] for block, length in ((q, rows), (k, keys), (v, keys))]
    exact = attend(*operands, scale, before, VALUE_MASKS[fidelity])
    compare(f"attention {rows} x {keys}", out, found, l1, 0, 0, exact, 0.01 * np.abs(exact).max())


def grid(shape: tuple[int, int], seed: int) -> Values:
    """Quarters between -1 and 1: the matrix engine adds their products without error."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32) / 4


@pytest.mark.parametrize("before", [None, 13])
def test_where_scores_are_exact_so_is_the_context(before: int | None) -> None:
    rows, keys, head_dim = 70, 83, 64
    l1 = poisoned(256 * 1024)
    q, k, v, out = (Block(address * 1024, "Bf16", 3, 2) for address in (0, 32, 64, 96))
    q.set(l1, 0, 0, grid((rows, head_dim), 1))
    k.set(l1, 0, 0, grid((keys, head_dim), 2))
    # Of one nonzero value in each column the context is the weight of its key.
    values = np.zeros((96, head_dim), np.float32)
    values[np.arange(head_dim) + 10, np.arange(head_dim)] = 1
    v.set(l1, 0, 0, values)
    instruction = encode(
        "Attention", q=q.address, k=k.address, v=v.address, row_tiles=3, rows=rows, key_tiles=3, keys=keys,
        head_dim=head_dim, scale=0.5, before=before, out=out.address,
    )  # fmt: skip
    found = run(Program([Core((0, 0), l1.copy(), compute=[instruction])], fidelity="HiFi4")).l1[0]
    exact = attend(grid((rows, head_dim), 1), grid((keys, head_dim), 2), values[:keys], 0.5, before, 0xFFFF)
    compare("attention on a grid", out, found, l1, 0, 0, exact, 0.0)
    # Only a sum's last bits may differ, and so a rounding now and then.
    differ = as_values(out.get(found))[:rows, :head_dim] != as_values(round_to_bf16(exact))
    assert differ.mean() < 0.01


def test_a_row_of_infinity_stays_alone() -> None:
    l1 = poisoned(256 * 1024)
    q, k, v, out = (Block(address * 1024, "Bf16", 2, 1) for address in (0, 32, 64, 96))
    queries, keys, values = (random((40, 32), seed) for seed in (1, 2, 3))
    queries[9] = np.inf
    for block, operand in ((q, queries), (k, keys), (v, np.pad(values, ((0, 24), (0, 0))))):
        block.set(l1, 0, 0, operand)
    instruction = encode(
        "Attention", q=q.address, k=k.address, v=v.address, row_tiles=2, rows=40, key_tiles=2, keys=40, head_dim=32,
        scale=0.25, before=None, out=out.address,
    )  # fmt: skip
    found = run(Program([Core((0, 0), l1.copy(), compute=[instruction])])).l1[0]
    context = as_values(out.get(found))[:40, :32]
    others = np.arange(40) != 9
    assert np.isfinite(context[others]).all()
    operands = [as_values(block.get(l1))[:40, :32] for block in (q, k, v)]
    exact = attend(operands[0][others], *operands[1:], 0.25, None, VALUE_MASKS["HiFi2"])
    assert np.abs(context[others] - exact).max() < 0.01 * np.abs(exact).max() + 2.0**-8
    print("the row itself:", context[9, :4])
