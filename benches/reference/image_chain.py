"""The N1.6 frame chain with the reference's own libraries, as an oracle and as something to be faster than.

    python3.11 -m venv venv
    venv/bin/pip install opencv-python-headless==4.11.0.86 pillow==12.3.0 numpy albumentations==1.4.18
    venv/bin/python benches/reference/image_chain.py time     # from the root of the repository
    venv/bin/python benches/reference/image_chain.py golden   # rewrites tests/data/n16/image_chain.json

`time` measures this chain and then, on the same machine and in the same run, `cargo bench --bench encode`, and
prints the ratio. OpenCV is held to one thread; the Rust chain uses one, too. "plain" calls OpenCV, Pillow and
NumPy directly; "albumentations" goes through the transforms of the deployed processor, minus its tensor
conversions. `golden` stores SHA-256 sums of every stage for white noise of many sizes.
"""

import hashlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import albumentations as A
import cv2
import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/data/n16/image_chain.json"
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


def letterbox(rgb):
    height, width = rgb.shape[:2]
    side = max(height, width)
    top, left = (side - height) // 2, (side - width) // 2
    if height == width:
        return rgb
    border = (top, side - height - top, left, side - width - left)
    return cv2.copyMakeBorder(rgb, *border, cv2.BORDER_CONSTANT, value=0)


def resize_square(rgb, edge):
    return rgb if rgb.shape[0] == edge else cv2.resize(rgb, (edge, edge), interpolation=cv2.INTER_AREA)


def centre_crop(rgb, fraction):
    side = rgb.shape[0]
    cropped = max(1, int(side * fraction))
    start = (side - cropped) // 2
    return rgb[start : start + cropped, start : start + cropped]


def vision_side(side):
    """Multiple of 28 nearest to `side`, within the processor's limits on pixels."""
    nearest = min(max(28, round(side / 28) * 28), 7000)
    low, high = 4 * 784, 4096 * 784
    if nearest * nearest > high:
        return math.floor(nearest / math.sqrt(nearest * nearest / high) / 28) * 28
    if nearest * nearest < low:
        return math.ceil(side * math.sqrt(low / (side * side)) / 28) * 28
    return nearest


def finish(resized):
    side = vision_side(resized.shape[0])
    u8 = np.asarray(Image.fromarray(resized).resize((side, side)))
    half = np.float32(127.5)
    return u8, (u8.transpose(2, 0, 1).astype(np.float32) - half) / half


def plain_chain(rgb, edge=256, fraction=0.95):
    resize1 = resize_square(letterbox(rgb), edge)
    crop = centre_crop(resize1, fraction)
    resize2 = resize_square(crop, edge)
    u8, pixels = finish(resize2)
    return {"resize1": resize1, "crop": crop, "resize2": resize2, "u8": u8, "pixels": pixels}


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


def median_ms(chain, rgb, seconds=3.0):
    for _ in range(10):
        chain(rgb)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        chain(rgb)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def time_both():
    composed = albumentations_chain()
    reference = {}
    for width, height in TIMED:
        rgb = noise(1, width, height)
        reference[width, height] = median_ms(plain_chain, rgb), median_ms(composed, rgb)
    bench = ["cargo", "bench", "--no-default-features", "--bench", "encode"]
    subprocess.run(bench, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, check=True, capture_output=True
    )
    target = pathlib.Path(json.loads(metadata.stdout)["target_directory"])
    print("frame        plain ms   albumentations ms   rust ms   plain / rust   albumentations / rust")
    for (width, height), (plain, alb) in reference.items():
        estimates = target / f"criterion/n16_frame_chain/{width}x{height}/new/estimates.json"
        rust = json.loads(estimates.read_text())["median"]["point_estimate"] / 1e6
        name = f"{width}x{height}"
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


def write_golden():
    cases = []
    for seed, (width, height, edge, fraction) in enumerate(golden_sizes()):
        rgb = noise(seed, width, height)
        stages = plain_chain(rgb, edge, fraction)
        case = {"seed": seed, "width": width, "height": height, "shortest_edge": edge, "crop_fraction": fraction}
        for name, stage in {"input": rgb, **stages}.items():
            case[name] = hashlib.sha256(np.ascontiguousarray(stage).tobytes()).hexdigest()
        cases.append(case)
    versions = {"opencv": cv2.__version__, "pillow": Image.__version__}
    lines = ",\n".join(json.dumps(case) for case in cases)
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text(f'{{"reference": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases in {GOLDEN}")


if __name__ == "__main__":
    cv2.setNumThreads(1)
    actions = {"time": time_both, "golden": write_golden}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    actions[sys.argv[1]]()
