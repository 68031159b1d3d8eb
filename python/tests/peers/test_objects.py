"""Objects on images against pycocotools and torchvision's datasets: boxes, classes, flags, and each pixel of the masks."""

import contextlib
import io
import json
import os
import random
import subprocess
import tempfile
import unittest
import warnings

import numpy as np
from PIL import Image
from pycocotools import mask as runs
from pycocotools.coco import COCO

from torchvision import datasets
from torchvision.datasets import wrap_dataset_for_transforms_v2

import penstock
from tests.peers import cases


warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)  # of pycocotools


_VOC = ("aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep sofa train "
        "tvmonitor").split()  # fmt: skip


def prepared(source, folder, fields, *options):
    """Make a dataset of a source that stays files, and open it."""
    dest = os.path.join(folder, "ds")
    command = [os.environ["PENSTOCK_TEST_PREPROCESS"], "--quiet", "--keep-encoded", "--workers", "1", *options, source, dest]
    if fields:
        command += ["--fields", fields]
    subprocess.run(command, check=True)
    return penstock.open(dest)


def masks_of(file, n, size):
    """Return the masks of n objects, which are one below the other in a file."""
    if n == 0:
        return np.zeros((0, *size), np.uint8)
    return np.array(Image.open(io.BytesIO(bytes(file)))).astype(np.uint8).reshape(n, *size)


def polygon(rng, width, height):
    """Return the corners of a polygon: mostly of the image, some far outside, some with corners on pixels or twice."""
    margin = rng.choice([0, 0, 3, 40])
    corners = []
    for _ in range(rng.randint(3, 12)):
        x, y = rng.uniform(-margin, width + margin), rng.uniform(-margin, height + margin)
        if rng.random() < 0.2:
            x, y = round(x), round(y)
        elif rng.random() < 0.2:
            x, y = round(x * 2) / 2, round(y * 5) / 5
        corners += [x, y] * rng.choice([1, 1, 1, 2])
    return corners


def segmentation(rng, width, height):
    """Return an outline as COCO has it: polygons, run lengths, or their text."""
    kind = rng.random()
    if kind < 0.7:
        return [polygon(rng, width, height) for _ in range(rng.choice([1, 1, 2, 3]))]
    packed = runs.encode(np.asfortranarray((np.random.default_rng(rng.getrandbits(32)).random((height, width)) < rng.random()).astype(np.uint8)))
    if kind < 0.85:
        return {"size": packed["size"], "counts": packed["counts"].decode()}
    bits = runs.decode(packed).flatten(order="F")
    edges = np.flatnonzero(np.diff(np.concatenate([[0], bits, [2]])))
    return {"size": packed["size"], "counts": np.diff(np.concatenate([[0], edges])).tolist()}


class TestCOCO(unittest.TestCase):
    @cases(5)
    def test_sets(self, rng):
        """Each case is a set of 20 images and 100 objects."""
        with tempfile.TemporaryDirectory() as folder:
            self.check(rng, os.path.join(folder, "set"), folder, 100)

    def check(self, rng, folder, out, objects):
        os.makedirs(os.path.join(folder, "annotations"))
        os.makedirs(os.path.join(folder, "train2017"))
        categories = [{"id": i, "name": f"class {i}"} for i in rng.sample(range(1, 91), 20)]
        images, annotations = [], []
        for i in rng.sample(range(10**6), 20):
            width, height = rng.randint(1, 90), rng.randint(1, 90)
            Image.new("RGB", (width, height)).save(os.path.join(folder, "train2017", f"{i}.png"))
            images.append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
        for i in range(objects):
            image = rng.choice(images)
            x, y = rng.uniform(0, image["width"]), rng.uniform(0, image["height"])
            annotations.append({
                "id": i, "image_id": image["id"], "category_id": rng.choice(categories)["id"], "iscrowd": int(rng.random() < 0.1),
                "bbox": [x, y, rng.uniform(0, image["width"] - x), rng.uniform(0, image["height"] - y)], "area": rng.uniform(0, 1000),
                "segmentation": segmentation(rng, image["width"], image["height"]),
            })  # fmt: skip
        path = os.path.join(folder, "annotations", "instances_train2017.json")
        with open(path, "w") as f:
            json.dump({"info": {}, "licenses": [], "images": images, "annotations": annotations, "categories": categories}, f)
        with contextlib.redirect_stdout(None):
            coco = COCO(path)
        numbers = {c: n for n, c in enumerate(sorted(coco.getCatIds()))}
        with prepared(folder, out, "images,boxes,labels,area,iscrowd,image_id,masks") as ds:
            self.assertEqual(list(ds.fields["labels"].classes), [coco.cats[c]["name"] for c in sorted(coco.cats)])
            self.assertEqual(ds["image_id"][:].tolist(), sorted(coco.imgs))
            for at, i in enumerate(sorted(coco.imgs)):
                found = coco.loadAnns(coco.getAnnIds(i))
                boxes = np.array([a["bbox"] for a in found], np.float64).reshape(-1, 4)
                boxes[:, 2:] += boxes[:, :2]
                np.testing.assert_array_equal(ds["boxes"][at], boxes.astype(np.float32))
                self.assertEqual(ds["labels"][at].tolist(), [numbers[a["category_id"]] for a in found])
                self.assertEqual(ds["iscrowd"][at].tolist(), [a["iscrowd"] for a in found])
                np.testing.assert_array_equal(ds["area"][at], np.array([a["area"] for a in found], np.float32))
                size = coco.imgs[i]["height"], coco.imgs[i]["width"]
                for have, want in zip(masks_of(ds["masks"][at], len(found), size), found, strict=True):
                    np.testing.assert_array_equal(have, coco.annToMask(want), err_msg=json.dumps(want["segmentation"]))


class TestVOC(unittest.TestCase):
    @cases(3)
    def test_sets(self, rng):
        """Each case is a set of 20 images, with the objects that torchvision reads; its boxes begin one pixel further right and down."""
        with tempfile.TemporaryDirectory() as folder:
            self.check(rng, os.path.join(folder, "VOCdevkit", "VOC2012"), folder)

    def check(self, rng, root, folder):
        for name in ("Annotations", "JPEGImages", "ImageSets/Main", "ImageSets/Segmentation", "SegmentationClass"):
            os.makedirs(os.path.join(root, name))
        classes = rng.sample(_VOC, 7)
        names = [f"{rng.randint(2007, 2012)}_{i:06}" for i in range(20)]
        for name in names:
            width, height = rng.randint(10, 90), rng.randint(10, 90)
            Image.new("RGB", (width, height)).save(os.path.join(root, "JPEGImages", name + ".jpg"))
            numbers = np.random.default_rng(rng.getrandbits(32)).choice([0, 1, 15, 20, 255], (height, width)).astype(np.uint8)
            mask = Image.fromarray(numbers, "P")
            mask.putpalette([rng.randrange(256) for _ in range(768)])
            mask.save(os.path.join(root, "SegmentationClass", name + ".png"))
            objects = ""
            for _ in range(rng.randint(1, 5)):
                left, top = rng.randint(1, width), rng.randint(1, height)
                box = {"xmin": left, "ymin": top, "xmax": rng.randint(left, width), "ymax": rng.randint(top, height)}
                parts = [f"<name>{rng.choice(classes)}</name>", f"<difficult>{rng.randint(0, 1)}</difficult>",
                         "<pose>Left</pose>", f"<truncated>{rng.randint(0, 1)}</truncated>", "<bndbox>" + "".join(f"<{k}>{v}</{k}>" for k, v in rng.sample(sorted(box.items()), 4)) + "</bndbox>",
                         "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>"]  # fmt: skip
                objects += "<object>" + "".join(rng.sample(parts, len(parts))) + "</object>"
            with open(os.path.join(root, "Annotations", name + ".xml"), "w") as f:
                f.write(f"<annotation><size><width>{width}</width><height>{height}</height><depth>3</depth></size>{objects}</annotation>")
        for kind in ("Main", "Segmentation"):
            rng.shuffle(names)
            with open(os.path.join(root, "ImageSets", kind, "trainval.txt"), "w") as f:
                f.write("".join(n + "\n" for n in names))
        theirs = wrap_dataset_for_transforms_v2(datasets.VOCDetection(folder, "2012", "trainval"), target_keys="all")
        with prepared(root, folder, "") as ds:
            self.assertEqual(list(ds.fields["labels"].classes), _VOC)
            for i, (image, target) in enumerate(theirs):
                boxes = target["boxes"].numpy().astype(np.float32) - np.array([1, 1, 0, 0], np.float32)
                np.testing.assert_array_equal(ds["boxes"][i], boxes)
                np.testing.assert_array_equal(ds["labels"][i], target["labels"].numpy() - 1)
                found = target["annotation"]["object"]
                for flag in ("difficult", "truncated"):
                    self.assertEqual(ds[flag][i].tolist(), [int(o[flag]) for o in found])
                np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(bytes(ds["images"][i])))), np.array(image))
        with prepared(root, os.path.join(folder, "masks"), "images,mask") as ds:
            for i, (_, mask) in enumerate(datasets.VOCSegmentation(folder, "2012", "trainval")):
                np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(bytes(ds["mask"][i])))), np.array(mask))


if __name__ == "__main__":
    unittest.main()
