"""Transforms of images, (3, height, width) of uint8 or float32, without random draws."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageOps

Array = np.ndarray[Any, Any]


def _pillow(function: Callable[[Image.Image], Image.Image]) -> Callable[[Array], Array]:
    """Return a function of Pillow as one of arrays."""

    def applied(image: Array) -> Array:
        made = np.asarray(function(Image.fromarray(np.ascontiguousarray(np.moveaxis(image, 0, 2)))))
        return np.moveaxis(made, 2, 0) if made.ndim == 3 else made[None]

    return applied


def center_crop(image: Array, height: int, width: int) -> Array:
    """Crop around the center; an image that is smaller is padded with zeros first, as in torchvision."""
    _, h, w = image.shape
    if height > h or width > w:
        left, top = max(0, (width - w) // 2), max(0, (height - h) // 2)
        right, bottom = max(0, (width - w + 1) // 2), max(0, (height - h + 1) // 2)
        image = np.pad(image, ((0, 0), (top, bottom), (left, right)))
        _, h, w = image.shape
    top, left = round((h - height) / 2), round((w - width) / 2)
    return image[:, top : top + height, left : left + width]


def pad(image: Array, left: int, top: int, right: int, bottom: int, mode: str, fill: int) -> Array:
    sides = ((0, 0), (top, bottom), (left, right))
    if mode == "constant":
        return np.pad(image, sides, constant_values=fill)
    return np.pad(image, sides, mode={"edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}[mode])


def grayscale(image: Array, channels: int) -> Array:
    """Return luma by ITU-R 601-2 as Pillow computes it."""
    gray = _pillow(lambda i: i.convert("L"))(image)
    return np.repeat(gray, channels, 0)


def normalize(image: Array, mean: list[float], std: list[float]) -> Array:
    return (image - np.array(mean, np.float32)[:, None, None]) / np.array(std, np.float32)[:, None, None]


def draw(rng: random.Random, height: int, width: int) -> list[dict[str, Any]]:
    """Return steps by the names and arguments of torchvision's transforms."""
    steps: list[dict[str, Any]] = []
    for name in rng.sample(
        ["CenterCrop", "Pad", "HorizontalFlip", "VerticalFlip", "Invert", "Posterize", "Solarize", "Equalize", "Autocontrast"], rng.randint(0, 3)
    ):
        if name == "CenterCrop":
            height, width = rng.randint(1, height + 3), rng.randint(1, width + 3)
            steps.append({"name": name, "size": [height, width]})
        elif name == "Pad":
            mode = rng.choice(["constant", "edge", "reflect", "symmetric"])
            most = (1, 1) if mode == "constant" else (0, 0)
            sides = [rng.randint(0, max(most[0], min(3, width - 1))), rng.randint(0, max(most[1], min(3, height - 1)))]
            steps.append({"name": name, "padding": sides, "mode": mode, "fill": rng.randrange(256) if mode == "constant" else 0})
            height, width = height + 2 * sides[1], width + 2 * sides[0]
        else:
            argument = {"Posterize": rng.randint(1, 8), "Solarize": rng.randint(0, 255)}.get(name)
            steps.append({"name": name, **({} if argument is None else {"argument": argument})})
    if rng.random() < 0.3:
        steps.append({"name": "Grayscale", "channels": 3})
    if rng.random() < 0.6:
        steps.append({"name": "ToTensor"})
        if rng.random() < 0.7:
            values = [[round(rng.uniform(0.1, 0.9), 3) for _ in range(3)] for _ in range(2)]
            steps.append({"name": "Normalize", "mean": values[0], "std": values[1]})
    return steps


def apply(steps: list[dict[str, Any]], image: Array) -> Array:
    """Return an image after the steps."""
    for s in steps:
        name = s["name"]
        if name == "CenterCrop":
            image = center_crop(image, *s["size"])
        elif name == "Pad":
            x, y = s["padding"]
            image = pad(image, x, y, x, y, s["mode"], s["fill"])
        elif name == "HorizontalFlip":
            image = image[:, :, ::-1]
        elif name == "VerticalFlip":
            image = image[:, ::-1]
        elif name == "Invert":
            image = 255 - image
        elif name == "Posterize":
            image = _pillow(lambda i, bits=s["argument"]: ImageOps.posterize(i, bits))(image)
        elif name == "Solarize":
            image = np.where(image >= s["argument"], 255 - image, image)
        elif name == "Equalize":
            image = _pillow(ImageOps.equalize)(image)
        elif name == "Autocontrast":
            image = _pillow(ImageOps.autocontrast)(image)
        elif name == "Grayscale":
            image = grayscale(image, s["channels"])
        elif name == "ToTensor":
            image = image.astype(np.float32) / np.float32(255)
        elif name == "Normalize":
            image = normalize(image, s["mean"], s["std"])
    return np.ascontiguousarray(image)
