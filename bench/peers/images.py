"""Photos to records by Pillow, OpenCV and torchvision, as their users do it.

usage: images.py FOLDER    one JSON request a line in, one JSON answer a line out

The work: a JPEG file's bytes, RGB, shorter side 256, the center 224 x 224, channels first,
(x/255 - mean)/std as float32. One thread. FOLDER holds the photos of each set.
"""
import glob
import io
import os
import sys
from collections import deque
from pathlib import Path

import cv2
import numpy as np
import PIL
import torch
import torchvision
from PIL import Image, features
from served import serve, timed
from torchvision import transforms as tv1

try:
    from torchvision.transforms import v2
except ImportError:  # torchvision before 0.15
    v2 = None

torch.set_num_threads(1)
cv2.setNumThreads(1)

SIDE, SHORTER = 224, 256
MEAN, STD = (.485, .456, .406), (.229, .224, .225)
PIL_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS}
TV_FILTERS = {"bilinear": tv1.InterpolationMode.BILINEAR, "bicubic": tv1.InterpolationMode.BICUBIC, "lanczos": tv1.InterpolationMode.LANCZOS}
CV_FILTERS = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA, "cubic": cv2.INTER_CUBIC, "lanczos4": cv2.INTER_LANCZOS4}

# x*SCALE - SHIFT is (x/255 - mean)/std but for rounding, in one pass less.
SCALE = np.float32(1 / (255 * np.array(STD)))[:, None, None]
SHIFT = np.float32(np.array(MEAN) / np.array(STD))[:, None, None]


def geometry(w, h):
    """Size after the resize, and the corner of the crop: torchvision's."""
    if w <= h:
        nw, nh = SHORTER, int(SHORTER * h / w)
    else:
        nw, nh = int(SHORTER * w / h), SHORTER
    return nw, nh, round((nw - SIDE) / 2), round((nh - SIDE) / 2)


def planes(hwc):
    """The record of an image of 224 x 224."""
    chw = hwc.transpose(2, 0, 1)
    out = np.empty(chw.shape, np.float32)
    np.multiply(chw, SCALE, out=out)
    out -= SHIFT
    return out


def pillow(filter, draft=False):
    def do(data):
        m = Image.open(io.BytesIO(data))
        if draft:
            m.draft("RGB", (SHORTER, SHORTER))
        if m.mode != "RGB":
            m = m.convert("RGB")
        w, h, x, y = geometry(*m.size)
        m = m.resize((w, h), PIL_FILTERS[filter]).crop((x, y, x + SIDE, y + SIDE))
        return planes(np.asarray(m))
    return do


def decode_opencv(data):
    if hasattr(cv2, "IMREAD_COLOR_RGB"):
        return cv2.imdecode(data, cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    return cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION), cv2.COLOR_BGR2RGB)


def opencv(filter):
    def do(data):
        m = decode_opencv(np.frombuffer(data, np.uint8))
        w, h, x, y = geometry(m.shape[1], m.shape[0])
        m = cv2.resize(m, (w, h), interpolation=CV_FILTERS[filter])
        return planes(m[y:y + SIDE, x:x + SIDE])
    return do


def torchvision_pillow(filter):
    full = tv1.Compose([tv1.Resize(SHORTER, TV_FILTERS[filter]), tv1.CenterCrop(SIDE), tv1.ToTensor(), tv1.Normalize(MEAN, STD)])

    def do(data):
        m = Image.open(io.BytesIO(data)).convert("RGB")
        return full(m).numpy()
    return do


def torchvision_tensor(filter):
    tv = v2 or tv1
    size = [tv.Resize(SHORTER, TV_FILTERS[filter], antialias=True), tv.CenterCrop(SIDE)]
    scale = v2.ToDtype(torch.float32, scale=True) if v2 else tv1.ConvertImageDtype(torch.float32)
    full = tv.Compose([*size, scale, tv.Normalize(MEAN, STD)])

    def do(data):
        m = torchvision.io.decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=torchvision.io.ImageReadMode.RGB)
        return full(m).contiguous().numpy()
    return do


# Name "PEER, FILTER", its description, and its function. FILTER is penstock's filter to compare with.
WAYS = [
    ("Pillow, bilinear", "Pillow, BILINEAR, NumPy", pillow("bilinear")),
    ("Pillow draft, bilinear", "Pillow, draft (decoded smaller), BILINEAR, NumPy", pillow("bilinear", True)),
    ("OpenCV linear, bilinear", "OpenCV, INTER_LINEAR (no antialias), NumPy", opencv("linear")),
    ("OpenCV area, bilinear", "OpenCV, INTER_AREA, NumPy", opencv("area")),
    ("torchvision on Pillow, bilinear", "torchvision on Pillow, BILINEAR", torchvision_pillow("bilinear")),
    ("torchvision tensor, bilinear", "torchvision tensor, BILINEAR antialias", torchvision_tensor("bilinear")),
    ("Pillow, bicubic", "Pillow, BICUBIC, NumPy", pillow("bicubic")),
    ("OpenCV cubic, bicubic", "OpenCV, INTER_CUBIC (no antialias), NumPy", opencv("cubic")),
    ("torchvision on Pillow, bicubic", "torchvision on Pillow, BICUBIC", torchvision_pillow("bicubic")),
    ("torchvision tensor, bicubic", "torchvision tensor, BICUBIC antialias", torchvision_tensor("bicubic")),
    ("Pillow, lanczos", "Pillow, LANCZOS, NumPy", pillow("lanczos")),
    ("OpenCV lanczos4, lanczos", "OpenCV, INTER_LANCZOS4 (no antialias), NumPy", opencv("lanczos4")),
    ("torchvision on Pillow, lanczos", "torchvision on Pillow, LANCZOS", torchvision_pillow("lanczos")),
]


def versions():
    return (f"Pillow {PIL.__version__} (libjpeg-turbo {features.version('libjpeg_turbo')}), OpenCV {cv2.__version__}, "
            f"torchvision {torchvision.__version__}, torch {torch.__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}")


def main():
    folder, sets, ways = sys.argv[1], {}, {name: do for name, _, do in WAYS}

    def answer(q):
        if not q["do"]:
            return {"text": versions(), "ways": [{"name": name, "text": text} for name, text, _ in WAYS]}
        if q["set"] not in sets:
            names = sorted(glob.glob(os.path.join(folder, q["set"], "*", "*")))
            sets[q["set"]] = [Path(n).read_bytes() for n in names]
        do, files = ways[q["do"]], sets[q["set"]][q["from"]:q["to"]]
        return timed(lambda: deque(map(do, files), 0))
    serve(answer)


main()
