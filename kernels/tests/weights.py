"""Weights as they are packed: tiles of a column, in packets, in a bank of the arena."""

from dataclasses import dataclass

import numpy as np
from blocks import FACE, SIDE, Values, from_bf16, from_tiles, padded_to_tiles, round_to_bf16, to_tiles
from machine import BANKS, PACKET_BYTES, Bytes

FACE_ROWS = SIDE * SIDE // FACE
#: Bits of magnitude of a code; the sign stands above them.
MAGNITUDE = {"Bfp8B": 7, "Bfp4B": 3}
ALIGNMENT = 64


@dataclass
class Packed:
    values: Values  # [inputs, columns]
    tiles: list[Bytes]


def _bf16(inputs: int, columns: int, seed: int) -> Packed:
    bits = round_to_bf16(np.random.default_rng(seed).standard_normal((inputs, columns)).astype(np.float32))
    tiles = to_tiles(np.pad(bits, ((0, -inputs % SIDE), (0, -columns % SIDE))))
    return Packed(from_bf16(bits), [tile.view(np.uint8) for tile in tiles[:, 0]])


def _shared_exponents(form: str, inputs: int, columns: int, seed: int) -> Packed:
    """Codes and exponents of which every combination is a value, so that nothing has to be rounded here."""
    magnitude = MAGNITUDE[form]
    random = np.random.default_rng(seed)
    count = -(-inputs // SIDE)
    exponents = random.integers(118, 127, (count, FACE_ROWS), dtype=np.uint8)
    codes = random.integers(0, 2 << magnitude, (count, FACE_ROWS, FACE), dtype=np.uint8)
    # A zero has no sign: a sign without magnitude is not zero to the card, but minus infinity.
    codes[codes == 1 << magnitude] = 0
    places = padded_to_tiles(np.ones((inputs, columns), np.float32))
    codes = np.where(to_tiles(places)[:, 0].reshape(codes.shape) == 0, 0, codes).astype(np.uint8)
    sign = 1.0 - 2.0 * (codes >> magnitude)
    scale = np.exp2(exponents.astype(np.float64) - (126 + magnitude))
    values = sign * (codes & ((1 << magnitude) - 1)) * scale[..., None]
    matrix = from_tiles(values.reshape(count, 1, SIDE * SIDE)).astype(np.float32)
    mantissas = codes if form == "Bfp8B" else codes[..., 0::2] | codes[..., 1::2] << 4
    tiles = [np.concatenate([exponents[tile], mantissas[tile].reshape(-1)]) for tile in range(count)]
    return Packed(matrix[:inputs, :columns], tiles)


def packed(form: str, inputs: int, columns: int, seed: int) -> Packed:
    """A column of tiles of random weights, at most 32 columns wide; what fills up its tiles is zero."""
    assert columns <= SIDE
    return _bf16(inputs, columns, seed) if form == "Bf16" else _shared_exponents(form, inputs, columns, seed)


def packets(tiles: list[Bytes]) -> list[Bytes]:
    """Tiles one after the other; one that does not fit whole begins the next packet."""
    found = [b""]
    for tile in tiles:
        if len(found[-1]) + len(tile) > PACKET_BYTES:
            found.append(b"")
        found[-1] += tile.tobytes()
    return [np.frombuffer(packet, np.uint8) for packet in found]


@dataclass
class Place:
    bank: int
    offset: int
    bytes: int


def arena(pieces: list[Bytes]) -> tuple[Bytes, list[Place]]:
    """Pieces in the banks in turn, and where they lie."""
    banks = [b"" for _ in range(BANKS)]
    places = []
    for number, piece in enumerate(pieces):
        bank = number % BANKS
        places.append(Place(bank, len(banks[bank]), len(piece)))
        banks[bank] += piece.tobytes() + bytes(-len(piece) % ALIGNMENT)
    size = max(len(bank) for bank in banks)
    return np.stack([np.frombuffer(bank.ljust(size, b"\0"), np.uint8) for bank in banks]), places
