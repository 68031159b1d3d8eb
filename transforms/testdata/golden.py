#!/usr/bin/python3
"""Writes golden.txt: what Pillow and NumPy make of images that the tests rebuild.

Usage: python3 golden.py > golden.txt

It needs Pillow and NumPy. Pillow 13 decides for each image which axis to resize first, where
earlier ones begin with the width; the script makes both with any of them, by two resizes.

A line is an operation, its parameters, and the CRC32 of the bytes that come out. The input
of w x h x c bytes is the upper byte of x = x*1664525 + 1013904223 (mod 2^32), from x =
w*65536 + h*4 + c, each second 8 x 8 block held flat so that edges occur.
"""
import sys
import zlib

import numpy as np
import PIL
from PIL import Image, ImageEnhance, ImageOps

FILTERS = {"nearest": 0, "box": 4, "bilinear": 2, "hamming": 5, "bicubic": 3, "lanczos": 1}

SIZES = [  # in w, h, out w, h
    (1, 1, 1, 1), (1, 1, 7, 5), (1, 37, 1, 11), (1, 37, 3, 50), (41, 1, 13, 1), (41, 1, 90, 2),
    (2, 2, 3, 3), (3, 2, 2, 3), (5, 7, 31, 29), (31, 29, 5, 7), (33, 17, 33, 9), (33, 17, 11, 17),
    (64, 48, 32, 24), (64, 48, 128, 96), (65, 47, 64, 48), (100, 75, 34, 26), (97, 89, 1, 1),
    (97, 89, 3, 2), (17, 300, 16, 7), (300, 17, 7, 16), (255, 257, 63, 65), (32, 32, 224, 224),
    (500, 375, 341, 256), (333, 500, 256, 384), (640, 427, 224, 224), (1023, 767, 60, 45),
    (333, 500, 224, 224), (100, 640, 224, 224), (61, 500, 20, 164),
]

_cache = {}


def pixels(w, h, c):
    key = (w, h, c)
    if key not in _cache:
        x, out = w * 65536 + h * 4 + c, bytearray(w * h * c)
        for i in range(len(out)):
            x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
            out[i] = x >> 24
        a = np.frombuffer(bytes(out), np.uint8).reshape(h, w, c).copy()
        for y in range(0, h, 8):
            for z in range((y // 8 % 2) * 8, w, 16):
                a[y:y + 8, z:z + 8] = a[y, z]
        _cache[key] = a
    return _cache[key]


def image(w, h, c):
    a = pixels(w, h, c)
    return Image.fromarray(a if c == 3 else a[:, :, 0])


def emit(*fields, out):
    print(*fields, "%08x" % zlib.crc32(np.ascontiguousarray(out).tobytes()))


NEAREST = FILTERS["nearest"]


def auto(im, size, f):
    """The method of Pillow 13."""
    less_w, less_h = im.size[0] - size[0], im.size[1] - size[1]
    if int(PIL.__version__.split(".")[0]) < 13 and less_h > 0 and less_h > 2 * less_w and f != NEAREST:
        im = im.resize((im.size[0], size[1]), f)
    return im.resize(size, f)


def resize(im, size, f):
    """The method of Pillow up to version 12."""
    if f != NEAREST:
        im = im.resize((size[0], im.size[1]), f)
    return im.resize(size, f)


def shorter(w, h, size):
    short, long = min(w, h), max(w, h)
    long = int(size * long / short)
    return (size, long) if w <= h else (long, size)


def center_crop(im, size):
    w, h = im.size
    x, y = int(round((w - size) / 2.0)), int(round((h - size) / 2.0))
    return im.crop((x, y, x + size, y + size))


print("# Pillow", PIL.__version__, "NumPy", np.__version__)
for c in (3, 1):
    for w, h, ow, oh in SIZES:
        emit("pixels", c, w, h, out=pixels(w, h, c))
        for name, f in FILTERS.items():
            emit("resize", name, c, w, h, ow, oh, out=np.asarray(resize(image(w, h, c), (ow, oh), f)))
            if h > oh:
                emit("auto", name, c, w, h, ow, oh, out=np.asarray(auto(image(w, h, c), (ow, oh), f)))
for w, h in ((500, 375), (375, 500), (500, 331), (343, 343), (97, 89), (120, 377)):
    for size, crop in ((256, 224), (60, 51), (48, 48)):
        for name, f in FILTERS.items():
            im = resize(image(w, h, 3), shorter(w, h, size), f)
            emit("shortercrop", name, 3, w, h, size, crop, out=np.asarray(center_crop(im, crop)))
for w, h, _, _ in SIZES[:20]:
    emit("gray", 3, w, h, out=np.asarray(image(w, h, 3).convert("L")))
for mode in ("constant", "edge", "reflect", "symmetric"):
    for c in (3, 1):
        for w, h, l, t, r, b in ((9, 8, 1, 2, 3, 4), (9, 8, 0, 0, 5, 0), (9, 8, 0, 7, 0, 1), (9, 8, 8, 7, 8, 7), (9, 8, 40, 0, 3, 25), (1, 8, 3, 2, 0, 1)):
            kw = {"constant_values": 9} if mode == "constant" else {}
            emit("pad", mode, c, w, h, l, t, r, b, out=np.pad(pixels(w, h, c), ((t, b), (l, r), (0, 0)), mode, **kw))


def hue(im, factor):
    """torchvision's adjust_hue."""
    h, s, v = im.convert("HSV").split()
    a = np.array(h, dtype=np.uint8)
    a += np.array(int(factor * 255), np.int32).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(a, "L"), s, v)).convert("RGB")


COLORS = {
    "brightness": (lambda im, v: ImageEnhance.Brightness(im).enhance(v), (0.0, 0.37, 1.0, 1.9)),
    "contrast": (lambda im, v: ImageEnhance.Contrast(im).enhance(v), (0.0, 0.37, 1.0, 1.9)),
    "saturation": (lambda im, v: ImageEnhance.Color(im).enhance(v), (0.0, 0.37, 1.0, 1.9)),
    "sharpness": (lambda im, v: ImageEnhance.Sharpness(im).enhance(v), (0.0, 0.37, 1.0, 1.9)),
    "hue": (hue, (-0.5, -0.123, 0.0, 0.3)),
    "invert": (lambda im, v: ImageOps.invert(im), (0.0,)),
    "posterize": (lambda im, v: ImageOps.posterize(im, int(v)), (1.0, 4.0, 7.0)),
    "solarize": (lambda im, v: ImageOps.solarize(im, v), (0.0, 100.0, 127.5, 255.0)),
    "autocontrast": (lambda im, v: ImageOps.autocontrast(im), (0.0,)),
    "equalize": (lambda im, v: ImageOps.equalize(im), (0.0,)),
}
for name, (f, values) in COLORS.items():
    for c in (3,) if name == "hue" else (3, 1):
        for w, h in ((1, 1), (2, 3), (64, 48), (100, 75), (257, 255)):
            im = image(w, h, c)
            low = Image.fromarray((np.asarray(im).astype(int) // 3 + 40).astype(np.uint8))
            for v in values:
                emit("color", name, c, w, h, v, out=np.asarray(f(im, v)))
                emit("low", name, c, w, h, v, out=np.asarray(f(low, v)))
MATRICES = ((1, 0.2, -3, 0, 1, 0), (1, 0, 5, 0, 1, -7), (0.9, 0.3, -2.5, -0.31, 1.1, 8.25), (1, 0, -0.5, 0.3, 1, 0), (2.5, 0, 0, 0, 0.3, 0))
for c in (3, 1):
    for w, h in ((1, 1), (17, 300), (64, 48), (101, 75)):
        for name in ("nearest", "bilinear", "bicubic"):
            for m in MATRICES:
                fill = (9, 8, 7) if c == 3 else 9
                emit("affine", name, c, w, h, *m, out=np.asarray(
                    image(w, h, c).transform((w, h), Image.AFFINE, m, FILTERS[name], fillcolor=fill)))
            for angle in (10.0, 45.0, -30.0, 133.3, 359.9):
                emit("rotate", name, c, w, h, angle, out=np.asarray(image(w, h, c).rotate(angle, FILTERS[name])))
sys.stdout.flush()
