#!/usr/bin/python3
"""Writes golden_torchvision.txt: what torchvision's transforms on Pillow images make of images that the tests rebuild.

Usage: python3 golden_torchvision.py > golden_torchvision.txt

It needs torchvision and Pillow. What torchvision draws at random is given here, once for each line: an operation, its
parameters, the size of the image (golden.py says what is in it) and the CRC32 of the bytes that come out.
"""
import random
import zlib

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, autoaugment, functional

FILTERS = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}


def image(w, h, c):
    x, out = w * 65536 + h * 4 + c, bytearray(w * h * c)
    for i in range(len(out)):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = x >> 24
    a = np.frombuffer(bytes(out), np.uint8).reshape(h, w, c).copy()
    for y in range(0, h, 8):
        for z in range((y // 8 % 2) * 8, w, 16):
            a[y:y + 8, z:z + 8] = a[y, z]
    return Image.fromarray(a if c == 3 else a[:, :, 0])


def emit(*fields, out):
    print(*fields, "%08x" % zlib.crc32(np.ascontiguousarray(np.asarray(out)).tobytes()))


def auto_augment():
    for policy in autoaugment.AutoAugmentPolicy:
        t = autoaugment.AutoAugment(policy)
        for w, h, c in ((64, 48, 3), (37, 53, 1)):
            im = image(w, h, c)
            space = t._augmentation_space(10, (h, w))
            for i, pair in enumerate(t.policies):
                for k, (name, _, bin) in enumerate(pair):
                    magnitudes, signed = space[name]
                    magnitude = float(magnitudes[bin]) if bin is not None else 0.0
                    for negative in (0, 1) if signed else (0,):
                        v = -magnitude if negative else magnitude
                        emit("autoaugment", policy.value, w, h, c, i, k, negative,
                             out=autoaugment._apply_op(im, name, v, InterpolationMode.NEAREST, None))


def perspective():
    rng = random.Random(5)
    for w, h, c in ((64, 48, 3), (37, 53, 1), (224, 224, 3), (2, 3, 3)):
        im = image(w, h, c)
        start = [[0, 0], [w - 1, 0], [w - 1, h - 1], [0, h - 1]]
        for name, f in FILTERS.items():
            for _ in range(8):
                x, y = (lambda: rng.randint(0, w // 4)), (lambda: rng.randint(0, h // 4))
                end = [[x(), y()], [w - 1 - x(), y()], [w - 1 - x(), h - 1 - y()], [x(), h - 1 - y()]]
                fill = (9, 8, 7) if c == 3 else 9
                emit("perspective", name, w, h, c, *sum(end, []), out=functional.perspective(im, start, end, f, fill))


def aug_mix():
    rng = random.Random(6)
    for w, h, c in ((64, 48, 3), (37, 53, 1)):
        im = image(w, h, c)
        space = autoaugment.AugMix()._augmentation_space(10, (h, w))
        names = list(space)
        for name, f in FILTERS.items():
            for _ in range(12):
                shares = [rng.randint(1, 9) for _ in range(4)]
                weights = torch.tensor(shares, dtype=torch.float32) / sum(shares)
                mix, reported = weights[0] * functional.pil_to_tensor(im), [shares[0]]
                for i in range(3):
                    aug, depth = im, rng.randint(1, 3)
                    reported += [shares[1 + i], depth]
                    for _ in range(depth):
                        op, bin, negative = rng.randrange(len(names)), rng.randrange(8), rng.randrange(2)
                        magnitudes, signed = space[names[op]]
                        magnitude = float(magnitudes[bin]) if magnitudes.ndim > 0 else 0.0
                        magnitude *= -1 if signed and negative else 1
                        aug = autoaugment._apply_op(aug, names[op], magnitude, f, None)
                        reported += [op, bin, negative]
                    mix.add_(weights[1 + i] * functional.pil_to_tensor(aug))
                emit("augmix", name, w, h, c, *reported, out=mix.to(torch.uint8).permute(1, 2, 0))


def elastic():
    for w, h, c in ((64, 48, 3), (37, 53, 1), (224, 224, 3), (1, 9, 3)):
        im = image(w, h, c)
        x, steps = 7, np.empty((h, w, 2), np.float32)
        for at in np.ndindex(steps.shape):
            x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
            steps[at] = np.float32(x >> 8) / np.float32(1 << 23) - np.float32(1)
        for name in ("nearest", "bilinear"):
            for alpha in (1, 4, 30):
                field = torch.from_numpy(steps * np.float32(alpha) / np.array([w, h], np.float32))
                fill = [9.0, 8.0, 7.0][:c]
                emit("elastic", name, w, h, c, alpha, out=functional.elastic_transform(im, field[None], FILTERS[name], fill))


print("# torchvision", torchvision.__version__.split("+")[0], "Pillow", PIL.__version__)
auto_augment()
perspective()
aug_mix()
elastic()
