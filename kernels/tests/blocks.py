"""Blocks, rounding and packed weights as the card stores them, by plain numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt
from machine import Bytes

SIDE, FACE = 32, 16
Bits = npt.NDArray[Any]  # of uint32 or uint16
Values = npt.NDArray[Any]  # of float32 or float64
Matrix = npt.NDArray[Any]

VALUE_BYTES = {"Bf16": 2, "F32": 4}


def tile_bytes(form: str) -> int:
    return SIDE * SIDE * VALUE_BYTES[form]


def round_to_bf16(values: Values) -> Bits:
    """To nearest, ties to even; every NaN becomes 0x7fc0."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def from_bf16(bits: Bits) -> Values:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def stored(values: Values, form: str) -> Bits:
    """The bits of values in a format."""
    if form == "Bf16":
        return round_to_bf16(values)
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def as_values(bits: Bits) -> Values:
    return from_bf16(bits) if bits.dtype == np.uint16 else bits.view(np.float32)


def to_tiles(matrix: Matrix) -> Matrix:
    """`[rows, columns]`, whole tiles, to `[row tiles, column tiles, values of a tile]`: a tile is four faces."""
    down, right = matrix.shape[0] // SIDE, matrix.shape[1] // SIDE
    faces = matrix.reshape(down, 2, FACE, right, 2, FACE).transpose(0, 3, 1, 4, 2, 5)
    return faces.reshape(down, right, SIDE * SIDE)


def from_tiles(tiles: Matrix) -> Matrix:
    down, right = tiles.shape[:2]
    faces = tiles.reshape(down, right, 2, 2, FACE, FACE).transpose(0, 2, 4, 1, 3, 5)
    return faces.reshape(down * SIDE, right * SIDE)


class Block:
    """A matrix in L1: one column of tiles after the other."""

    def __init__(self, address: int, form: str, row_tiles: int, column_tiles: int) -> None:
        self.address, self.form = address, form
        self.row_tiles, self.column_tiles = row_tiles, column_tiles
        self.type = np.uint16 if form == "Bf16" else np.uint32

    @property
    def bytes(self) -> int:
        return self.row_tiles * self.column_tiles * tile_bytes(self.form)

    @property
    def end(self) -> int:
        return self.address + self.bytes

    def get(self, l1: Bytes) -> Bits:
        """The bits of all values, `[rows, columns]`."""
        data = l1[self.address : self.end].copy().view(self.type)
        tiles = data.reshape(self.column_tiles, self.row_tiles, SIDE * SIDE).transpose(1, 0, 2)
        return from_tiles(tiles)

    def put(self, l1: Bytes, bits: Bits) -> None:
        assert bits.dtype == self.type
        tiles = to_tiles(bits).transpose(1, 0, 2)
        l1[self.address : self.end] = np.ascontiguousarray(tiles).reshape(-1).view(np.uint8)

    def set(self, l1: Bytes, row: int, column: int, values: Values) -> None:
        """Rounds values and puts them at a place; what is around them stays."""
        bits = self.get(l1)
        bits[row : row + values.shape[0], column : column + values.shape[1]] = stored(values, self.form)
        self.put(l1, bits)

    def take_over(self, l1: Bytes, other: Bytes, cells: tuple[slice, slice]) -> None:
        """Takes the bits of some cells from another L1."""
        bits = self.get(l1)
        bits[cells] = self.get(other)[cells]
        self.put(l1, bits)


def padded_to_tiles(values: Values) -> Values:
    rows, columns = values.shape
    return np.pad(values, ((0, -rows % SIDE), (0, -columns % SIDE)))


def random(shape: tuple[int, ...], seed: int, scale: float = 1.0) -> Values:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)
