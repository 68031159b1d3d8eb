"""Images with boxes and masks through penstock.DataLoader, torchvision's transforms v2, albumentations and DALI: images per second, and CPU time.

    PYTHONPATH=python python bench/peers/labels.py [--runs 5] [--workers 2] [--images 400] FOLDER

The argument is a folder of class folders of JPEG files. Random boxes and polygons are annotated on them as COCO does, and prepared
once by penstock. The ways run one after the other in one process, --runs times; medians are printed. The rate is from the first batch on.
A peer that is not installed is left out with a line. The peers' own transforms are used where they have no equal:

 - albumentations crops by RandomSizedBBoxSafeCrop where the others crop by RandomIoUCrop; OpenCV resizes without antialiasing.
 - DALI crops by random_bbox_crop, and its reader gives one mask of classes for an image, where the others give one for each object.
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
import pycocotools.coco
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
from torchvision.transforms import v2

BATCH, IMAGES, ANNOTATIONS = 16, "train2017", "annotations/instances_train2017.json"
CASES = {"224, boxes and masks": ["boxes", "labels", "masks"], "800, boxes": ["boxes", "labels"]}


def annotate(photos, folder, count):
    """Make a set of COCO with links to some photos."""
    rng, images, annotations = random.Random(1), [], []
    os.makedirs(os.path.join(folder, os.path.dirname(ANNOTATIONS)))
    os.makedirs(os.path.join(folder, IMAGES))
    paths = [p for p in sorted(Path(photos).rglob("*")) if p.suffix.lower() in (".jpg", ".jpeg")]
    for i in range(count):
        path, name = paths[i % len(paths)], f"{i}.jpg"
        os.symlink(path.resolve(), os.path.join(folder, IMAGES, name))
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
    with open(os.path.join(folder, ANNOTATIONS), "w") as f:
        json.dump({"images": images, "annotations": annotations, "categories": [{"id": i, "name": str(i)} for i in range(1, 10)]}, f)


def collate(batch):
    """Keep the samples of a batch apart, as torchvision's detection models take them."""
    return tuple(zip(*batch))


def torch_loader(dataset, workers):
    return contextlib.nullcontext(DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, collate_fn=collate))


def penstock_way(coco, keys, workers):
    dest = os.path.join(os.path.dirname(coco), "-".join(keys))
    command = [os.environ.get("PENSTOCK_PREPROCESS", "preprocess"), "--quiet", "--keep-encoded", "--outside", "--fields", ",".join(["images", *keys])]
    subprocess.run([*command, coco, dest], check=True)
    t = penstock.transforms
    crop = [t.RandomResizedCrop(224)] if "masks" in keys else [t.RandomIoUCrop(), t.Resize((800, 800))]
    moves = t.Compose([*crop, t.RandomHorizontalFlip(), t.SanitizeBoundingBoxes(), t.ToTensor()])
    return lambda run: penstock.DataLoader(dest, BATCH, shuffle=True, seed=run, transforms=moves, num_workers=workers)


def torchvision_way(coco, keys, workers):
    crop = [v2.RandomResizedCrop(224, antialias=True)] if "masks" in keys else [v2.RandomIoUCrop(), v2.Resize((800, 800), antialias=True)]
    moves = v2.Compose([v2.ToImage(), *crop, v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes()])
    with contextlib.redirect_stdout(None):
        images = CocoDetection(os.path.join(coco, IMAGES), os.path.join(coco, ANNOTATIONS), transforms=moves)
    images = wrap_dataset_for_transforms_v2(images, target_keys=keys)
    return lambda run: torch_loader(images, workers)


class Albumentations(torch.utils.data.Dataset):
    """Images read by OpenCV, with boxes and masks as pycocotools gives them."""

    def __init__(self, coco, keys):
        import albumentations

        self.folder, self.masks = os.path.join(coco, IMAGES), "masks" in keys
        with contextlib.redirect_stdout(None):
            self.coco = pycocotools.coco.COCO(os.path.join(coco, ANNOTATIONS))
        self.ids = sorted(self.coco.imgs)
        crop = albumentations.RandomResizedCrop((224, 224)) if self.masks else albumentations.RandomSizedBBoxSafeCrop(800, 800)
        params = albumentations.BboxParams(format="pascal_voc", label_fields=["labels"], clip=True, min_area=1)
        self.moves = albumentations.Compose([crop, albumentations.HorizontalFlip(), albumentations.ToTensorV2()], bbox_params=params)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        import cv2

        cv2.setNumThreads(0)
        image = cv2.imread(os.path.join(self.folder, self.coco.imgs[self.ids[i]]["file_name"]), cv2.IMREAD_COLOR_RGB)
        objects = self.coco.imgToAnns[self.ids[i]]
        record = {"image": image, "labels": [o["category_id"] for o in objects]}
        record["bboxes"] = [[x, y, x + w, y + h] for x, y, w, h in (o["bbox"] for o in objects)]
        if self.masks:
            record["masks"] = [self.coco.annToMask(o) for o in objects]
        record = self.moves(**record)
        return record.pop("image").float() / 255, record


def albumentations_way(coco, keys, workers):
    images = Albumentations(coco, keys)
    return lambda run: torch_loader(images, workers)


class Dali:
    """Batches of a DALI pipeline on the CPU, of an epoch."""

    def __init__(self, coco, keys, workers, seed):
        from nvidia.dali import fn, pipeline_def, types

        masks = ["masks"] if "masks" in keys else []
        side, area, thresholds = (224, [0.08, 1], [0.0]) if masks else (800, [0.3, 1], [0.0, 0.1, 0.3, 0.5, 0.7, 0.9])

        @pipeline_def(batch_size=BATCH, num_threads=workers, device_id=None, seed=seed + 1)
        def pipeline():
            files, boxes, labels, *mask = fn.readers.coco(
                file_root=os.path.join(coco, IMAGES), annotations_file=os.path.join(coco, ANNOTATIONS), ltrb=True, ratio=True,
                random_shuffle=True, pixelwise_masks=bool(masks), name="coco",
            )  # fmt: skip
            anchor, shape, boxes, labels = fn.random_bbox_crop(
                boxes, labels, scaling=area, aspect_ratio=[0.75, 4 / 3] if masks else [0.5, 2.0], thresholds=thresholds, allow_no_crop=not masks,
                bbox_layout="xyXY", total_num_attempts=40,
            )  # fmt: skip
            flip = fn.random.coin_flip()
            images = fn.decoders.image_slice(files, anchor, shape, device="cpu", output_type=types.RGB)
            images = fn.resize(images, size=(side, side), antialias=True)
            images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mirror=flip, std=[255] * 3)
            mask = [fn.cast(fn.slice(m, anchor, shape, axis_names="WH"), dtype=types.UINT8) for m in mask]
            mask = [fn.flip(fn.resize(m, size=(side, side), interp_type=types.INTERP_NN), horizontal=flip) for m in mask]
            return images, fn.bb_flip(boxes, ltrb=True, horizontal=flip), labels, *mask

        self.pipeline = pipeline()
        self.pipeline.build()

    def __iter__(self):
        for _ in range(self.pipeline.epoch_size("coco") // BATCH):  # whole batches; the next would mix two epochs
            yield self.pipeline.run()


def dali_way(coco, keys, workers):
    import nvidia.dali  # noqa: F401

    return lambda run: contextlib.nullcontext(Dali(coco, keys, workers, run))


WAYS = {"penstock": penstock_way, "torchvision": torchvision_way, "albumentations": albumentations_way, "DALI": dali_way}


def measure(opened):
    """Return images per second of a loader from its first batch on, and CPU seconds per image of this process and its ended children."""
    before, images = os.times(), 0
    with opened as loader:
        batches = iter(loader)
        images += len(next(batches)[0])
        start, count = time.perf_counter(), sum(len(batch[0]) for batch in batches)
        rate, images = count / (time.perf_counter() - start), images + count
        del batches
    after = os.times()
    return rate, (sum(after[:4]) - sum(before[:4])) / images


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, default=400)
    options = parser.parse_args()
    print("case                   way             images/s  ratio  CPU ms/image  ratio")
    with tempfile.TemporaryDirectory() as folder:
        coco = os.path.join(folder, "coco")
        annotate(options.photos, coco, options.images)
        for case, keys in CASES.items():
            ways, results = {}, {}
            for name, make in WAYS.items():
                try:
                    ways[name] = make(coco, keys, options.workers)
                except ImportError as e:
                    print(f"{case:22} {name}: left out: {e}")
            for run in range(options.runs):
                for name, way in ways.items():
                    results.setdefault(name, []).append(measure(way(run)))
            medians = {name: [statistics.median(v) for v in zip(*rows)] for name, rows in results.items()}
            ours = medians["penstock"]
            for name, (rate, cpu) in medians.items():
                print(f"{case:22} {name:14} {rate:9.0f} {ours[0] / rate:6.2f} {1000 * cpu:13.2f} {cpu / ours[1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
