"""Images with boxes and masks through penstock.DataLoader and through torchvision's transforms v2: images per second, and CPU time.

    PYTHONPATH=python python bench/peers/labels.py [--runs 5] [--workers 2] [--images 400] FOLDER

The argument is a folder of class folders of JPEG files. Random boxes and polygons are annotated on them as COCO does, and prepared
once by penstock. Each run of one is followed by a run of the other, in one process; medians are printed. The rate is from the first batch on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import penstock
import penstock.transforms
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
from torchvision.transforms import v2

CASES = {
    "224, boxes and masks": (
        [penstock.transforms.RandomResizedCrop(224), penstock.transforms.RandomHorizontalFlip(), penstock.transforms.SanitizeBoundingBoxes(),
         penstock.transforms.ToTensor()],
        [v2.ToImage(), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes()],
        ["boxes", "labels", "masks"],
    ),
    "800, boxes": (
        [penstock.transforms.RandomIoUCrop(), penstock.transforms.Resize((800, 800)), penstock.transforms.RandomHorizontalFlip(),
         penstock.transforms.SanitizeBoundingBoxes(), penstock.transforms.ToTensor()],
        [v2.ToImage(), v2.RandomIoUCrop(), v2.Resize((800, 800), antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
         v2.SanitizeBoundingBoxes()],
        ["boxes", "labels"],
    ),
}  # fmt: skip


def annotate(photos, folder, count):
    """Make a set of COCO with links to some photos."""
    rng, images, annotations = random.Random(1), [], []
    os.makedirs(os.path.join(folder, "annotations"))
    os.makedirs(os.path.join(folder, "train2017"))
    paths = [p for p in sorted(Path(photos).rglob("*")) if p.suffix.lower() in (".jpg", ".jpeg")]
    for i in range(count):
        path, name = paths[i % len(paths)], f"{i}.jpg"
        os.symlink(path.resolve(), os.path.join(folder, "train2017", name))
        with Image.open(path) as image:
            width, height = image.size
        images.append({"id": i, "file_name": name, "width": width, "height": height})
        for _ in range(rng.randint(1, 7)):
            x, y, r = rng.uniform(0.2, 0.8) * width, rng.uniform(0.2, 0.8) * height, rng.uniform(0.05, 0.2) * min(width, height)
            turns = [k / 20 * 2 * math.pi for k in range(20)]
            polygon = [v for t in turns for v in (x + r * math.cos(t), y + r * math.sin(t))]
            annotations.append({
                "id": len(annotations) + 1, "image_id": i, "category_id": rng.randint(1, 9), "bbox": [x - r, y - r, 2 * r, 2 * r],
                "area": math.pi * r * r, "iscrowd": 0, "segmentation": [polygon],
            })  # fmt: skip
    path = os.path.join(folder, "annotations", "instances_train2017.json")
    with open(path, "w") as f:
        json.dump({"images": images, "annotations": annotations, "categories": [{"id": i, "name": str(i)} for i in range(1, 10)]}, f)
    return path


def measure(opened):
    """Return images per second of a loader, and CPU seconds of this process and its children, which have ended then."""
    before = os.times()
    with opened as loader:
        batches = iter(loader)
        next(batches)
        start, count = time.perf_counter(), sum(len(batch[0]) for batch in batches)
        rate = count / (time.perf_counter() - start)
        del batches
    after = os.times()
    return rate, sum(after[:4]) - sum(before[:4])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, default=400)
    options = parser.parse_args()
    print("case                   penstock/s  torchvision/s  ratio  penstock CPU s  torchvision CPU s")
    with tempfile.TemporaryDirectory() as folder:
        path = annotate(options.photos, os.path.join(folder, "coco"), options.images)
        preprocess = os.environ.get("PENSTOCK_PREPROCESS", "preprocess")
        for name, (ours, theirs, keys) in CASES.items():
            dest = os.path.join(folder, "-".join(keys))
            command = [preprocess, "--quiet", "--keep-encoded", "--outside", "--fields", ",".join(["images", *keys])]
            subprocess.run([*command, os.path.join(folder, "coco"), dest], check=True)
            with contextlib.redirect_stdout(None):
                images = CocoDetection(os.path.join(folder, "coco", "train2017"), path, transforms=v2.Compose(theirs))
            images = wrap_dataset_for_transforms_v2(images, target_keys=keys)
            results = [], []
            for run in range(options.runs):
                moves = penstock.transforms.Compose(ours)
                results[0].append(measure(penstock.DataLoader(dest, 16, shuffle=True, seed=run, transforms=moves, num_workers=options.workers)))
                loader = DataLoader(images, 16, shuffle=True, num_workers=options.workers, collate_fn=lambda batch: tuple(zip(*batch)))
                results[1].append(measure(contextlib.nullcontext(loader)))
            (a, c), (b, d) = ([statistics.median(v) for v in zip(*r)] for r in results)
            print(f"{name:22} {a:10.0f} {b:14.0f} {a / b:6.2f} {c:15.2f} {d:18.2f}", flush=True)


if __name__ == "__main__":
    main()
