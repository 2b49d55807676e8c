"""Time and memory of the wheel's own host conversion, on the weights of `benches/pack.rs`.

`python benches/reference/ttnn_pack.py`; needs what `tests/data/card/wheel.py` needs.
"""

import resource
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/data/card"))
from wheel import FORMATS, pack, ttnn

MATRICES = [((1536, 1536), 96), ((1536, 2048), 32), ((6144, 1536), 32), ((1536, 6144), 32), ((3072, 1536), 32)]
DRAWN = 128 << 20


def drawn():
    """As in `benches/pack.rs`, a piece at a time."""
    values = np.empty(DRAWN, np.uint16)
    for start in range(0, DRAWN, 1 << 22):
        mixed = np.arange(start, start + (1 << 22), dtype=np.uint32) * np.uint32(2_654_435_761)
        mixed = (mixed ^ mixed >> 15) * np.uint32(2_246_822_519)
        exponent = 115 + (mixed >> 8 & 7)
        values[start : start + (1 << 22)] = mixed >> 31 << 15 | exponent << 7 | mixed >> 24 & 0x7F
    return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)


def matrices(values):
    start = 0
    for (rows, cols), count in MATRICES:
        for _ in range(count):
            if start + rows * cols > DRAWN:
                start = 0
            yield values[start : start + rows * cols].reshape(rows, cols)
            start += rows * cols


def main():
    values = drawn()
    weights = sum(rows * cols * count for (rows, cols), count in MATRICES)
    for name in ["bfp4_b", "bfp8_b"]:
        first = next(matrices(values))
        checksum = zlib.crc32(pack(first, name).tobytes())
        for transposed in [False, True]:
            start = time.perf_counter()
            for matrix in matrices(values):
                # Results are dropped at once.
                ttnn.from_torch(matrix.T if transposed else matrix, dtype=FORMATS[name], layout=ttnn.TILE_LAYOUT)
            seconds = time.perf_counter() - start
            kind = "transposed" if transposed else "as stored"
            print(f"{name} {kind}: {seconds:.2f} s, {weights / seconds / 1e9:.3f} G weights/s, CRC-32 {checksum:08x}")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{name}: {memory} kB at most")


main()
