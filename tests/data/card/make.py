"""Writes matrices and what the wheel packs them to: `python make.py packed.safetensors [SEED [SIDE]]`.

A matrix `NAME/F32` or `NAME/BF16` lies next to its tiles, for example `NAME/F32/bfp8_b`. `unpack/FORMAT` are tiles that hold
codes rather than numbers, `unpack/FORMAT/f32` what the wheel reads from them, in the order of the tiles' values.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from wheel import FORMATS, pack, unpack


def any_bits(rng, rows, cols):
    return rng.integers(0, 2**32, (rows, cols), dtype=np.uint32)


def around_one(rng, rows, cols):
    """As weights are, some of them zero."""
    values = rng.standard_normal((rows, cols)) * np.exp2(rng.integers(-24, 4, (rows, cols)))
    values[rng.random((rows, cols)) < 0.05] = 0.0
    values[rng.random((rows, cols)) < 0.05] = -0.0
    return values.astype(np.float32).view(np.uint32)


def tiny(rng, rows, cols):
    """Subnormal numbers and the smallest normal ones."""
    return any_bits(rng, rows, cols) & 0x81FFFFFF


def ties(rng, rows, cols, magnitude):
    """Halfway between two magnitudes once aligned to the largest value of their row, or just beside that."""
    shape = (rows, cols)
    distance = rng.integers(0, magnitude + 3, shape)
    # The first bit that does not stay, the ones above it, and something below: nothing, a bit that alignment forgets
    # (if it moves anything), one that it keeps, or a borrow from above.
    tie = np.minimum(23 - magnitude + distance, 23)
    significand = rng.integers(1 << 23, 1 << 24, shape) >> tie << tie | 1 << tie
    beside = np.choose(rng.integers(0, 4, shape), [np.zeros(shape, int), np.ones(shape, int), 1 << distance, -1])
    significand = np.maximum(significand + beside, 1 << 23)
    bits = (127 - distance) << 23 | significand & 0x7FFFFF | rng.integers(0, 2, shape) << 31
    # What all others are aligned to.
    bits[:, ::16] = 0x3F800000 | rng.integers(0, 1 << 23, bits[:, ::16].shape)
    return bits.astype(np.uint32)


def carries(rng, rows, cols):
    """Just below a power of two, where rounding reaches it; infinity, NaN and the largest number among them."""
    bits = (rng.integers(118, 128, (rows, cols)) << 23) | 0x7FFFFF - (1 << rng.integers(0, 23, (rows, cols)))
    special = np.array([0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x80000000])
    rare = rng.random((rows, cols)) < 0.03
    bits[rare] = rng.choice(special, rare.sum())
    return bits.astype(np.uint32)


def codes(name):
    """Tiles with every code under every exponent (bfp4_b) or under those where something can go wrong (bfp8_b)."""
    if name == "bfp8_b":
        count, exponents = 256, [*range(9), 126, 127, 128, 252, 253, 254, 255]
    else:
        count, exponents = 16, range(256)
    tiles = len(exponents) * count // 1024
    values = np.tile(np.arange(count, dtype=np.uint8), len(exponents)).reshape(tiles, 1024)
    if name == "bfp4_b":
        values = values[:, 0::2] | values[:, 1::2] << 4
    exponents = np.repeat(np.array(exponents, np.uint8), count // 16).reshape(tiles, 64)
    return np.concatenate([exponents, values], 1).reshape(-1)


def main(path, seed=1, side=32):
    rng = np.random.default_rng(seed)
    matrices = {
        "any_bits": any_bits(rng, side, 2 * side),
        "around_one": around_one(rng, side + 13, 2 * side + 13),
        "one_row": around_one(rng, 1, side + 1),
        "tiny": tiny(rng, side, side),
        "ties7": ties(rng, side, side, 7),
        "ties3": ties(rng, side, side, 3),
        "carries": carries(rng, side, side),
    }
    tensors = {}
    for name, bits in matrices.items():
        f32 = torch.from_numpy(bits.view(np.float32))
        # Cut, not rounded: ties stay ties.
        high = torch.from_numpy((bits >> 16).astype(np.uint16).view(np.int16)).view(torch.bfloat16)
        for kind, matrix, stored in [("F32", f32, bits), ("BF16", high, (bits >> 16).astype(np.uint16))]:
            tensors[f"{name}/{kind}"] = (kind, stored)
            for form in FORMATS:
                tensors[f"{name}/{kind}/{form}"] = ("U8", pack(matrix, form))
    for form in ["bfp8_b", "bfp4_b"]:
        tensors[f"unpack/{form}"] = ("U8", codes(form))
        tensors[f"unpack/{form}/f32"] = ("F32", unpack(codes(form), form))
    header, offset = {}, 0
    # Larger elements first, so that all are aligned.
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1][1].itemsize))
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(array.tobytes() for _, array in tensors.values())
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data)


main(sys.argv[1], *map(int, sys.argv[2:]))
