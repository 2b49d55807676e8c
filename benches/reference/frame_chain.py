"""The N1.6 frame chain with OpenCV, Pillow and NumPy, called directly."""

import math

import cv2
import numpy as np
from PIL import Image


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
