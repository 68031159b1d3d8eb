"""Objects on images against pycocotools, torchvision's datasets, and the documents of YOLO, LabelMe and panoptic COCO.

Compared are boxes, classes, and each pixel of the masks.
"""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest
import warnings

import numpy as np
from PIL import Image, ImageDraw
from pycocotools import mask as runs
from pycocotools.coco import COCO
from torchvision import datasets
from torchvision.datasets import wrap_dataset_for_transforms_v2

import penstock
from tests.peers import cases

warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)  # of pycocotools


_VOC = ["aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog", "horse", "motorbike", "person",
    "pottedplant", "sheep", "sofa", "train", "tvmonitor"]  # fmt: skip


def prepared(source, folder, fields, *options):
    """Make a dataset of a source that stays files, and open it."""
    dest = os.path.join(folder, "ds")
    command = [os.environ["PENSTOCK_TEST_PREPROCESS"], "--quiet", "--keep-encoded", "--workers", "1", *options, source, dest]
    if fields:
        command += ["--fields", fields]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode != (3 if "skip" in options else 0):  # 3 says that samples were skipped
        raise AssertionError(done.stderr)
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
                         "<pose>Left</pose>", f"<truncated>{rng.randint(0, 1)}</truncated>",
                         "<bndbox>" + "".join(f"<{k}>{v}</{k}>" for k, v in rng.sample(sorted(box.items()), 4)) + "</bndbox>",
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


class TestWrappedCOCO(unittest.TestCase):
    @cases(4)
    def test_sets(self, rng):
        """Each case is a set of 12 photographs. One file is missing, some are turned by EXIF, and some have no objects."""
        with tempfile.TemporaryDirectory() as folder:
            self.check(rng, os.path.join(folder, "set"), folder)

    def check(self, rng, root, folder):
        photos = os.path.join(root, "val2017")
        os.makedirs(os.path.join(root, "annotations"))
        os.makedirs(photos)
        categories = [{"id": i, "name": f"class {i}"} for i in rng.sample(range(1, 91), 9)]
        images, annotations = [], []
        for i in rng.sample(range(1000), 12):
            width, height = rng.randint(20, 90), rng.randint(20, 90)
            exif = Image.Exif()
            exif[0x0112] = rng.choice([1, 1, 3, 6, 8])
            pixels = np.random.default_rng(i).integers(0, 255, (height, width, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(os.path.join(photos, f"{i:012}.jpg"), exif=exif)
            images.append({"id": i, "file_name": f"{i:012}.jpg", "width": width, "height": height})
            for _ in range(rng.choice([0, 0, 1, 2, 5])):
                x, y = rng.uniform(0, width - 2), rng.uniform(0, height - 2)
                annotations.append({
                    "id": len(annotations) + 1, "image_id": i, "category_id": rng.choice(categories)["id"], "iscrowd": 0, "area": 1.0,
                    "bbox": [x, y, rng.uniform(0.5, width - x), rng.uniform(0.5, height - y)], "segmentation": segmentation(rng, width, height),
                })  # fmt: skip
                annotations[-1]["iscrowd"] = int(isinstance(annotations[-1]["segmentation"], dict))
        rng.shuffle(annotations)
        missing = rng.choice(images)
        path = os.path.join(root, "annotations", "instances_val2017.json")
        with open(path, "w") as f:
            json.dump({"images": images, "annotations": annotations, "categories": categories}, f)
        os.remove(os.path.join(photos, missing["file_name"]))
        with contextlib.redirect_stdout(None):
            theirs = datasets.CocoDetection(photos, path)
        rows = [k for k, i in enumerate(theirs.ids) if i != missing["id"]]
        theirs = wrap_dataset_for_transforms_v2(theirs, target_keys=["image_id", "boxes", "labels", "masks", "iscrowd"])
        numbers = {c: n for n, c in enumerate(sorted(c["id"] for c in categories))}
        with prepared(root, folder, "images,boxes,labels,iscrowd,image_id,masks", "--on-error", "skip", "--outside") as ds:
            self.assertEqual(len(ds), len(rows))
            for at, k in enumerate(rows):
                image, target = theirs[k]
                self.assertEqual(int(ds["image_id"][at]), target["image_id"])
                np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(bytes(ds["images"][at])))), np.array(image))
                n = len(target.get("labels", []))
                self.assertEqual(ds["labels"][at].tolist(), [numbers[c] for c in (target["labels"].tolist() if n else [])])
                self.assertEqual(len(ds["boxes"][at]), n)
                if n:
                    np.testing.assert_allclose(ds["boxes"][at], target["boxes"].numpy(), rtol=0, atol=1e-5)
                    self.assertEqual(ds["iscrowd"][at].tolist(), [int(v) for v in target["iscrowd"]])
                    np.testing.assert_array_equal(masks_of(ds["masks"][at], n, target["masks"].shape[1:]), target["masks"].numpy())


class TestPanoptic(unittest.TestCase):
    @cases(4)
    def test_sets(self, rng):
        """Each case is 8 images with segments, whose ids are R + 256 G + 65536 B of PNG files, as the format's page says."""
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.join(folder, "set")
            for name in ("annotations/panoptic_val2017", "val2017"):
                os.makedirs(os.path.join(root, name))
            categories = [{"id": i, "name": f"class {i}", "isthing": rng.randint(0, 1)} for i in rng.sample(range(1, 201), 12)]
            images, annotations, want = [], [], {}
            for i in rng.sample(range(1000), 8):
                width, height = rng.randint(5, 60), rng.randint(5, 60)
                Image.new("RGB", (width, height)).save(os.path.join(root, "val2017", f"{i}.jpg"))
                images.append({"id": i, "file_name": f"{i}.jpg", "width": width, "height": height})
                ids = np.array([0, *rng.sample(range(1, 1 << 24), rng.randint(1, 5))])
                grid = np.kron(np.random.default_rng(i).integers(0, len(ids), (4, 4)), np.ones((15, 15), int))[:height, :width]
                place = ids[grid]
                Image.fromarray(np.stack([place & 255, place >> 8 & 255, place >> 16], 2).astype(np.uint8)).save(
                    os.path.join(root, "annotations", "panoptic_val2017", f"{i}.png")
                )
                found = []
                for n in ids[1:].tolist():
                    ys, xs = np.nonzero(place == n)
                    if len(xs):
                        box = [int(xs.min()), int(ys.min()), int(np.ptp(xs)) + 1, int(np.ptp(ys)) + 1]
                        found.append(
                            {"id": n, "category_id": rng.choice(categories)["id"], "area": len(xs), "bbox": box, "iscrowd": rng.randint(0, 1)}
                        )
                annotations.append({"image_id": i, "file_name": f"{i}.png", "segments_info": found})
                want[i] = place, found
            path = os.path.join(root, "annotations", "panoptic_val2017.json")
            with open(path, "w") as f:
                json.dump({"images": images, "annotations": annotations, "categories": categories}, f)
            numbers = {c: n for n, c in enumerate(sorted(c["id"] for c in categories))}
            with prepared(path, folder, "images,boxes,labels,iscrowd,image_id,masks") as ds:
                self.assertEqual(ds["image_id"][:].tolist(), sorted(want))
                for at, i in enumerate(sorted(want)):
                    place, found = want[i]
                    boxes = np.array([s["bbox"] for s in found], np.float32).reshape(-1, 4)
                    boxes[:, 2:] += boxes[:, :2]
                    np.testing.assert_array_equal(ds["boxes"][at], boxes)
                    self.assertEqual(ds["labels"][at].tolist(), [numbers[s["category_id"]] for s in found])
                    self.assertEqual(ds["iscrowd"][at].tolist(), [s["iscrowd"] for s in found])
                    for have, segment in zip(masks_of(ds["masks"][at], len(found), place.shape), found, strict=True):
                        np.testing.assert_array_equal(have, place == segment["id"])


class TestYOLO(unittest.TestCase):
    @cases(4)
    def test_sets(self, rng):
        """Each case is 12 images of boxes, of polygons, or of both in one file, by Ultralytics' document: a row of more than six numbers
        turns all rows into polygons, duplicate rows count once, and no file, or an empty one, is an image without objects."""
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.join(folder, "set")
            for name in ("images", "labels"):
                os.makedirs(os.path.join(root, name, "train"))
            want = {}
            for i in range(12):
                width, height = rng.randint(10, 90), rng.randint(10, 90)
                Image.new("RGB", (width, height)).save(os.path.join(root, "images", "train", f"{i:02}.png"))
                rows = []
                for _ in range(rng.randint(0, 4)):
                    if rng.random() < 0.5 and i % 3:
                        rows.append([rng.randint(0, 4), *(round(rng.random(), 4) for _ in range(2 * rng.randint(3, 8)))])
                    else:
                        w, h = round(rng.uniform(0.1, 0.5), 4), round(rng.uniform(0.1, 0.5), 4)
                        rows.append([rng.randint(0, 4), round(rng.uniform(w / 2, 1 - w / 2), 4), round(rng.uniform(h / 2, 1 - h / 2), 4), w, h])
                rows += rng.sample(rows, min(len(rows), rng.randint(0, 1)))
                if rows or rng.random() < 0.5:
                    with open(os.path.join(root, "labels", "train", f"{i:02}.txt"), "w") as f:
                        f.write("".join(" ".join(map(str, row)) + "\n" for row in rows))
                want[i] = (width, height), list(dict.fromkeys(map(tuple, rows)))
            with open(os.path.join(root, "data.yaml"), "w") as f:
                f.write("path: .\ntrain: images/train\nnames: [a, b, c, d, e]\n")
            with prepared(os.path.join(root, "data.yaml"), folder, "images,boxes,labels", "--outside") as ds:
                self.assertEqual(list(ds.fields["labels"].classes), list("abcde"))
                for i in range(12):
                    size, rows = want[i]
                    scale, boxes = np.array([*size, *size]), []
                    for row in rows:
                        if any(len(r) > 6 for r in rows):
                            corners = np.array(row[1:]).reshape(-1, 2)
                            boxes.append(np.concatenate([corners.min(0), corners.max(0)]) * scale)
                        else:
                            x, y, w, h = row[1:]
                            boxes.append(np.array([x - w / 2, y - h / 2, x + w / 2, y + h / 2]) * scale)
                    np.testing.assert_allclose(ds["boxes"][i], np.reshape(boxes, (-1, 4)), rtol=0, atol=1e-4)
                    self.assertEqual(ds["labels"][i].tolist(), [row[0] for row in rows])


def near_outline(corners, shape):
    """Return the pixels whose center is at most a pixel from the outline of a polygon."""
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    near = np.zeros(shape, bool)
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        length = max((bx - ax) ** 2 + (by - ay) ** 2, 1e-9)
        t = np.clip(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, 0, 1)
        near |= (x - ax - t * (bx - ax)) ** 2 + (y - ay - t * (by - ay)) ** 2 <= 2
    return near


class TestLabelMe(unittest.TestCase):
    @cases(4)
    def test_sets(self, rng):
        """Each case is 10 files of polygons and rectangles. LabelMe fills them with Pillow, which also takes the pixels of the
        outline: all others are the same."""
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.join(folder, "set")
            os.makedirs(root)
            want = {}
            for i in range(10):
                width, height = rng.randint(20, 90), rng.randint(20, 90)
                Image.new("RGB", (width, height)).save(os.path.join(root, f"{i}.png"))
                shapes = []
                for _ in range(rng.randint(0, 4)):
                    kind = rng.choice(["polygon", "polygon", "rectangle"])
                    corners = range(rng.randint(3, 7) if kind == "polygon" else 2)
                    points = [[round(rng.uniform(0, width), 2), round(rng.uniform(0, height), 2)] for _ in corners]
                    shapes.append({"label": rng.choice("xyz"), "points": points, "group_id": None, "shape_type": kind, "flags": {}})
                with open(os.path.join(root, f"{i}.json"), "w") as f:
                    json.dump(
                        {
                            "version": "5.4.1",
                            "flags": {},
                            "shapes": shapes,
                            "imagePath": f"{i}.png",
                            "imageData": None,
                            "imageHeight": height,
                            "imageWidth": width,
                        },
                        f,
                    )
                want[i] = (height, width), shapes
            with prepared(root, folder, "images,boxes,labels,masks", "--from", "labelme") as ds:
                classes = list(ds.fields["labels"].classes)
                for i in range(10):
                    shape, shapes = want[i]
                    self.assertEqual([classes[k] for k in ds["labels"][i]], [s["label"] for s in shapes])
                    boxes = [np.concatenate([np.min(s["points"], 0), np.max(s["points"], 0)]) for s in shapes]
                    np.testing.assert_allclose(ds["boxes"][i], np.reshape(boxes, (-1, 4)), rtol=0, atol=1e-4)
                    for have, s in zip(masks_of(ds["masks"][i], len(shapes), shape), shapes, strict=True):
                        canvas, points = Image.new("L", shape[::-1]), [tuple(p) for p in s["points"]]
                        if s["shape_type"] == "rectangle":
                            (a, b), (c, d) = points
                            points = [(a, b), (c, b), (c, d), (a, d)]
                        ImageDraw.Draw(canvas).polygon(points, outline=1, fill=1)
                        outside = (have != np.array(canvas)) & ~near_outline(points, shape)
                        self.assertFalse(outside.any(), (s, np.argwhere(outside)))


if __name__ == "__main__":
    unittest.main()
