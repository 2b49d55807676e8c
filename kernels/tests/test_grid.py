"""All cores of the grid at once."""

import numpy as np
import pytest
from blocks import Block, random, stored
from lowered import core, encode
from machine import COLUMNS, ROWS, Core, Program, poisoned, run, take_turns

pytestmark = [pytest.mark.device, pytest.mark.full]

TILE = 2048
SIZE = 64 * 1024


def test_every_core_works_on_its_own_tile() -> None:
    """Each core reads a tile of f32, rounds it, and writes it; then tells the core behind it, which waits for that."""
    places = [(x, y) for y in range(ROWS) for x in range(COLUMNS)]
    values = random((len(places), 1024), 1)
    x, out = Block(0, "F32", 1, 1), Block(8192, "Bf16", 1, 1)
    cores = []
    for number, place in enumerate(places):
        worker = Core(place, poisoned(SIZE))
        tile = dict(tile=number, tile_step=1, count=1, offset=0, address_step=0)
        copy = encode(
            "CopyBlock", x=x.address, x_format="F32", x_row_tiles=1, x_row=0, x_column=0, out=out.address,
            out_format="Bf16", out_row_tiles=1, out_row=0, out_column=0, rows=32, columns=32,
        )  # fmt: skip
        take_turns(
            worker,
            ("mover", encode("ReadTiles", buffer=0, bytes=2 * TILE, address=x.address, **tile)),
            ("compute", copy),
            ("mover", encode("WriteTiles", buffer=1, bytes=TILE, address=out.address, **tile)),
        )
        behind = places[(number + 1) % len(places)]
        worker.feeder = [
            encode("Signal", core=core(*behind), semaphore=2, value=1),
            encode("Wait", semaphore=2, value=1),
        ]
        cores.append(worker)
    sources = values.view(np.uint8).reshape(len(places), 2 * TILE)
    found = run(Program(cores, buffers={0: sources, 1: np.zeros((len(places), TILE), np.uint8)}, scratch_bytes=8192))
    assert np.array_equal(found.buffers[1].view(np.uint16), stored(values, "Bf16"))
