"""The N1.6 frame chain with the reference's own libraries, as an oracle and as something to be faster than.

    python3.11 -m venv venv
    venv/bin/pip install opencv-python-headless==4.11.0.86 pillow==12.3.0 numpy albumentations==1.4.18
    venv/bin/python benches/reference/image_chain.py time     # from the root of the repository
    venv/bin/python benches/reference/image_chain.py golden   # rewrites tests/data/n16/*.json

`time` measures this chain and, in turn with it, the bench `encode`, and prints the ratios of the fastest times.
OpenCV is held to one thread; the Rust chain uses one, too. "plain" calls OpenCV, Pillow and
NumPy directly; "albumentations" goes through the transforms of the deployed processor, minus its tensor
conversions. `golden` stores SHA-256 sums of every stage, and of single resizes, for white noise of many sizes.
"""

import hashlib
import json
import math
import pathlib
import subprocess
import sys
import time

import albumentations as A
import cv2
import numpy as np
from frame_chain import centre_crop, finish, letterbox, plain_chain, resize_square, vision_side

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/data/n16"
TIMED = [(256, 256), (640, 480), (1280, 720), (1920, 1080)]


def noise(seed, width, height):
    """White noise: little-endian words splitmix64(seed * 2^32 + index), cut to the frame's length."""
    length = 3 * width * height
    with np.errstate(over="ignore"):
        z = np.arange(-(-length // 8), dtype=np.uint64) + np.uint64(seed << 32) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z.astype("<u8").view(np.uint8)[:length].reshape(height, width, 3)


class Letterbox(A.ImageOnlyTransform):
    def apply(self, img, **_):
        return letterbox(img)


class CentreCrop(A.ImageOnlyTransform):
    def apply(self, img, **_):
        return centre_crop(img, 0.95)


def albumentations_chain():
    resize = {"max_size": 256, "interpolation": cv2.INTER_AREA}
    steps = [
        Letterbox(p=1.0),
        A.SmallestMaxSize(**resize),
        CentreCrop(p=1.0),
        A.SmallestMaxSize(**resize),
    ]
    compose = A.Compose(steps, p=1.0)
    return lambda rgb: finish(np.ascontiguousarray(compose(image=rgb)["image"]))


def fastest_ms(chain, rgb, seconds=2.0):
    """Fastest of many calls: what the machine's other work disturbs least."""
    fastest, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        chain(rgb)
        fastest = min(fastest, time.perf_counter() - start)
    return fastest * 1e3


def rust_bench():
    """The compiled bench, and where it leaves its results."""
    command = ["cargo", "bench", "--no-default-features", "--bench", "encode", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    executable = next(m["executable"] for m in messages if m.get("target", {}).get("kind") == ["bench"])
    return executable, pathlib.Path(executable).parents[2] / "criterion/n16_frame_chain"


def rust_ms(executable, results, name):
    """Mean of the fastest of criterion's samples."""
    options = ["--bench", "--warm-up-time", "0.5", "--measurement-time", "2", "--sample-size", "500"]
    subprocess.run([executable, *options, f"/{name}$"], cwd=ROOT, check=True, capture_output=True)
    sample = json.loads((results / name / "new/sample.json").read_text())
    return min(time / calls for time, calls in zip(sample["times"], sample["iters"])) / 1e6


def time_both():
    composed = albumentations_chain()
    executable, results = rust_bench()
    print("frame        plain ms   albumentations ms   rust ms   plain / rust   albumentations / rust")
    for width, height in TIMED:
        rgb, name = noise(1, width, height), f"{width}x{height}"
        plain, alb = fastest_ms(plain_chain, rgb), fastest_ms(composed, rgb)
        rust = rust_ms(executable, results, name)
        print(f"{name:10} {plain:10.3f} {alb:19.3f} {rust:9.3f} {plain / rust:14.1f} {alb / rust:23.1f}")


def golden_sizes():
    """(width, height, edge, fraction)"""
    released = (256, 0.95)
    sides = [64, 65, 127, 128, 129, 200, 242, 243, 244, 255, 256, 257, 258, 300, 383, 384, 385, 511, 512, 513]
    sides += [256 * k for k in range(3, 17)] + [2500, 4095, 4094]
    for side in sides:
        yield side, side, *released
    for width, height in [
        (4096, 64), (64, 4096), (4095, 65), (67, 4093), (640, 480), (480, 640), (1280, 720), (720, 1280),
        (1920, 1080), (1080, 1920), (320, 180), (333, 217), (256, 64), (64, 256), (256, 255), (255, 256),
        (257, 64), (101, 256), (848, 480), (960, 540), (2592, 1944), (768, 431), (1024, 767), (4096, 2304),
    ]:  # fmt: skip
        yield width, height, *released
    random = np.random.default_rng(16)
    for _ in range(30):
        width, height = (int(side) for side in np.exp(random.uniform(np.log(64), np.log(3000), 2)))
        yield width, height, *released
    for edge, fraction in [
        (28, 0.95), (40, 0.9), (42, 0.5), (98, 1.0), (100, 0.02), (224, 0.95), (224, 1.0), (230, 0.875),
        (238, 0.95), (239, 0.95), (240, 0.95), (252, 0.999), (256, 0.9), (266, 0.95), (336, 0.7), (448, 0.95),
        (512, 0.95), (1000, 0.95), (1792, 0.97), (1807, 0.95), (2048, 0.3),
    ]:  # fmt: skip
        yield 640, 360, edge, fraction
        yield 150, 211, edge, fraction


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def chain_cases():
    for seed, (width, height, edge, fraction) in enumerate(golden_sizes()):
        rgb = noise(seed, width, height)
        case = {"seed": seed, "width": width, "height": height, "shortest_edge": edge, "crop_fraction": fraction}
        stages = {"input": rgb, **plain_chain(rgb, edge, fraction)}
        yield case | {name: sha256(stage) for name, stage in stages.items()}


def resize_cases():
    """Single resizes that are not square, as other versions' chains need them."""
    random = np.random.default_rng(17)
    sizes = [
        (320, 180, 455, 256), (1280, 720, 455, 256), (1920, 1080, 455, 256), (432, 243, 455, 256),
        (455, 256, 448, 256), (640, 480, 341, 256), (512, 256, 256, 128), (768, 512, 256, 256),
        (256, 512, 256, 256), (512, 256, 256, 256), (300, 200, 300, 100), (300, 200, 150, 200),
        (300, 200, 400, 100), (300, 200, 100, 400), (1, 1, 5, 7), (2, 3, 1, 1), (3, 200, 7, 50), (200, 3, 50, 2),
    ]  # fmt: skip
    sizes += [tuple(int(side) for side in np.exp(random.uniform(0, np.log(700), 4))) for _ in range(40)]
    for seed, (width, height, to_width, to_height) in enumerate(sizes):
        rgb, to = noise(seed, width, height), (to_width, to_height)
        area = rgb if rgb.shape[1::-1] == to else cv2.resize(rgb, to, interpolation=cv2.INTER_AREA)
        bicubic = Image.fromarray(rgb).resize(to)
        yield {
            "seed": seed, "from": [width, height], "to": to,
            "opencv_area": sha256(area), "pillow_bicubic": sha256(np.asarray(bicubic)),
        }  # fmt: skip


def write_golden():
    versions = {"opencv": cv2.__version__, "pillow": Image.__version__}
    for name, cases in [("image_chain", chain_cases()), ("resize", resize_cases())]:
        path = GOLDEN / f"{name}.json"
        lines = ",\n".join(json.dumps(case) for case in cases)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"reference": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    cv2.setNumThreads(1)
    actions = {"time": time_both, "golden": write_golden}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    actions[sys.argv[1]]()
