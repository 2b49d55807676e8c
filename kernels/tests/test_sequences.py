"""Instructions one after the other give what each gives alone: nothing of the hardware's state is left from the one before."""

import numpy as np
import pytest
from blocks import Block, random, round_to_bf16
from lowered import encode
from machine import Bytes, Core, Program, poisoned, run

pytestmark = pytest.mark.device

L1 = 1024 * 1024
ROWS = 40
KIB = 1024


def place(l1: Bytes, address: int, form: str, columns: int, seed: int) -> Block:
    block = Block(address, form, 2, -(-columns // 32))
    block.set(l1, 0, 0, random((ROWS, columns), seed))
    return block


def instructions(l1: Bytes) -> list[list[int]]:
    """Each with operands and a result of its own; both formats, both products, all ways to and from dest."""
    wide = place(l1, 0, "F32", 64, 1)
    narrow = place(l1, 64 * KIB, "Bf16", 32, 2)
    head = [place(l1, address * KIB, "Bf16", 64, address) for address in (80, 96, 112)]
    # Rows of values behind the last key have to be numbers.
    head[2].set(l1, ROWS, 0, np.zeros((24, 64), np.float32))
    angles = [place(l1, address * KIB, "Bf16", 32, address) for address in (128, 136)]
    turned = place(l1, 160 * KIB, "F32", 64, 3)
    sums = place(l1, 200 * KIB, "F32", 32, 4)
    vectors, out = 220 * KIB, 256 * KIB
    l1[vectors : vectors + 256] = round_to_bf16(random((128,), 5)).view(np.uint8)
    common = dict(row_tiles=2, first_row=0, rows=ROWS)
    attention = dict(
        q=head[0].address, k=head[1].address, v=head[2].address, row_tiles=2, rows=ROWS, key_tiles=2, keys=ROWS
    )
    attention |= dict(head_dim=64, scale=0.125)
    norm = dict(x=wide.address, x_format="F32", columns=64, first=0, count=64, eps=1e-6, **common)
    activate = dict(factor=None, factor_format="Bf16", columns=32, **common)
    return [
        encode("Activate", x=narrow.address, x_format="Bf16", activation="GeluErf", out=out, out_format="F32", **activate),
        encode("Attention", before=None, out=out + 16 * KIB, **attention),
        encode(
            "LayerNorm", scaling="Affine", gain=vectors, shift=vectors + 128, out=out + 32 * KIB, out_format="Bf16", **norm
        ),
        encode("Moments", x=narrow.address, format="Bf16", rows=ROWS, columns=32, out=out + 48 * KIB),
        encode(
            "Combine", parts=out + 48 * KIB, step=320, count=1, rows=ROWS, width=32, eps=1e-5, out=out + 49 * KIB
        ),
        encode(
            "Normalise", x=narrow.address, format="Bf16", row_tiles=2, rows=ROWS, columns=32, moments=out + 49 * KIB,
            scale=vectors, shift=None, vector_step=0, out=out + 52 * KIB,
        ),
        encode(
            "Rope", x=turned.address, format="F32", column=0, columns=64, half=32, cos=angles[0].address,
            sin=angles[1].address, **common,
        ),
        encode("Attention", before=0, out=out + 64 * KIB, **attention),
        encode("Activate", x=wide.address, x_format="F32", activation="Silu", out=out + 80 * KIB, out_format="Bf16", **activate),
        encode("RmsNorm", group=32, weight=vectors, out=out + 96 * KIB, out_format="F32", **norm),
        encode("Accumulate", x=narrow.address, x_format="Bf16", factor=0.5, columns=32, out=sums.address, **common),
        encode("Attention", before=None, out=out + 128 * KIB, **attention),
    ]  # fmt: skip


def execute(l1: Bytes, stream: list[list[int]]) -> Bytes:
    return run(Program([Core((0, 0), l1.copy(), compute=stream)])).l1[0]


def test_what_came_before_changes_nothing() -> None:
    l1 = poisoned(L1)
    stream = instructions(l1)
    together = execute(l1, stream)
    alone = l1
    for instruction in stream:
        alone = execute(alone, [instruction])
    assert np.array_equal(together, alone)
    attentions = [together[(256 + at) * KIB :][: 16 * KIB] for at in (16, 128)]
    assert np.array_equal(*attentions)


def test_the_same_again_is_the_same() -> None:
    l1 = poisoned(L1)
    stream = instructions(l1)
    once = execute(l1, stream)
    backwards = execute(l1, [*stream[::-1], *stream])
    # Rope and Accumulate work in place and have run twice.
    changed = np.flatnonzero(once[256 * KIB :] != backwards[256 * KIB :])
    assert changed.size == 0
