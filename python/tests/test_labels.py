"""Masks, boxes and keypoints next to images that transforms move: they follow, or are refused."""

import importlib.util
import os
import struct
import tempfile
import unittest
import zlib
from unittest import mock

import numpy as np

import penstock
from penstock.transforms import (  # fmt: skip
    ClampKeyPoints,
    ColorJitter,
    Compose,
    ConvertBoundingBoxFormat,
    FixedSizeCrop,
    MixUp,
    Pad,
    PadToLargest,
    RandomHorizontalFlip,
    RandomIoUCrop,
    RandomResizedCrop,
    RandomShortestSize,
    Resize,
    SanitizeBoundingBoxes,
    SanitizeKeyPoints,
    ToTensor,
)

from . import data


def gray_png(pixels):
    """Return the PNG of an array of bytes."""
    height, width = pixels.shape

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


setUpModule = data.name_programs


class TestLabels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, program in (("PENSTOCK_PREPROCESS", data.preprocess()), ("PENSTOCK_FEED", os.environ["PENSTOCK_TEST_FEED"])):
            patch = mock.patch.dict(os.environ, {name: program})
            patch.start()
            self.addCleanup(patch.stop)
        self.path = os.path.join(folder.name, "ds")
        places = np.indices((7, 9)).astype(np.uint8).transpose(1, 2, 0)
        fields = [
            penstock.Field("images", "uint8", (7, 9, 3), layout="HWC"), penstock.Field("mask", "uint8", (7, 9, 1), layout="HWC"),
            penstock.Field("boxes", "float32", (4,), ragged=True), penstock.Field("labels", "int64"),
        ]  # fmt: skip
        with penstock.Writer(self.path, fields) as w:
            for i in range(64):
                image = np.concatenate([places, np.full((7, 9, 1), i, np.uint8)], 2)
                w.append({"images": image, "mask": places[:, :, :1] * 9 + places[:, :, 1:], "boxes": [[1, 2, 3, 4]], "labels": i})

    def load(self, fields, transforms, **options):
        with penstock.DataLoader(self.path, 64, fields=fields, transforms=transforms, output="numpy", **options) as loader:
            return next(iter(loader))

    def test_boxes_stay_with_their_images(self):
        every = ["images", "boxes", "labels"]
        for move in (RandomHorizontalFlip(), Compose([RandomResizedCrop(6), ToTensor()])):
            with self.assertRaisesRegex(
                penstock.Error, r'"boxes" \(float32\[\*,4\]\) may be boxes or points in it.*contents=\{"boxes": "boxes"\}.*independent=\["boxes"\]'
            ):
                self.load(every, move)
            self.assertEqual(len(self.load(every, move, independent=["boxes"])["labels"]), 64)
        self.load(every, Compose([ColorJitter(0.5), ToTensor()]))
        self.load(["images", "labels"], RandomHorizontalFlip())

    def test_masks_move_with_their_images(self):
        pair = ["images", "mask"]
        near = [RandomResizedCrop(6, interpolation="nearest"), RandomHorizontalFlip()]
        for name, transforms, message in (
            ("in another order", {"images": Compose([ColorJitter(0.5), *near]), "mask": Compose(near)}, "draws other random numbers"),
            ("one only", {"images": RandomHorizontalFlip()}, "stays where it is"),
            ("one for all, of colors", Compose([*near, ColorJitter(0.5)]), "may be a mask, and ColorJitter"),
            ("one for all, that blends", Compose([RandomResizedCrop(6)]), "may be a mask, and RandomResizedCrop"),
        ):
            with self.subTest(name), self.assertRaisesRegex(penstock.Error, message):
                self.load(pair, transforms)
        for transforms in (Compose(near), {"images": Compose([*near, ColorJitter(saturation=0)]), "mask": Compose(near)}):
            batch = self.load(pair, transforms, shuffle=True, seed=3)
            at = batch["images"].astype(int)
            np.testing.assert_array_equal(at[..., 0] * 9 + at[..., 1], batch["mask"][..., 0])

    def test_names(self):
        with self.assertRaisesRegex(penstock.Error, 'independent: there is no field "box"'):
            self.load(None, None, independent=["box"])
        with self.assertRaisesRegex(TypeError, "independent is 'boxes'; it is a list of names"):
            self.load(None, None, independent="boxes")


class TestFieldsOfLabels(unittest.TestCase):
    """Masks, boxes and keypoints are declared, in every format, and instances are checked."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.schema = [
            penstock.Field("images", "uint8", (5, 6, 3), layout="HWC"), penstock.Field("boxes", "float32", content="boxes", instances="objects"),
            penstock.Field("labels", "int64", ragged=True, instances="objects"), penstock.Field("mask", "uint16", (5, 6), content="mask"),
            penstock.Field("points", "float32", (2, 3), ragged=True, content="keypoints", image="images", instances="objects"),
        ]  # fmt: skip

    def record(self, n, labels=None):
        return {
            "images": np.zeros((5, 6, 3), np.uint8), "boxes": [[1, 2, 3, 4]] * n, "labels": [7] * (n if labels is None else labels),
            "mask": np.full((5, 6), 300, np.uint16), "points": np.ones((n, 2, 3), np.float32),
        }  # fmt: skip

    def test_formats(self):
        for name in ("flat", "labels.h5", "labels.zarr"):
            with self.subTest(name):
                path = os.path.join(self.folder, name)
                with penstock.Writer(path, self.schema) as w:
                    for n in (0, 3, 1):
                        w.append(self.record(n))
                with penstock.open(path) as ds:
                    got = {f.name: (f.shape, f.ragged, f.content, f.image, f.instances) for f in ds.fields.values()}
                    self.assertEqual(got, {
                        "images": ((5, 6, 3), False, "", "", ""), "boxes": ((4,), True, "boxes", "images", "objects"),
                        "labels": ((), True, "", "", "objects"), "mask": ((5, 6), False, "mask", "images", ""),
                        "points": ((2, 3), True, "keypoints", "images", "objects"),
                    })  # fmt: skip
                    self.assertEqual([len(ds["boxes"][i]) for i in range(3)], [0, 3, 1])

    def test_mistakes(self):
        path = os.path.join(self.folder, "bad")
        with self.assertRaisesRegex(penstock.Error, 'boxes has 2 rows and labels has 1; fields of the instances "objects"'):
            with penstock.Writer(path, self.schema) as w:
                w.append(self.record(2))
                w.append(self.record(2, labels=1))
        for field, message in (
            (penstock.Field("boxes", "float64", (4,), ragged=True, content="boxes"), "content boxes needs float32"),
            (penstock.Field("boxes", "float32", content="boxes", image="image"), 'no field of images "image".*did you mean "images"'),
            (penstock.Field("boxes", "float32", (4,), ragged=True, content="box"), 'content "box" is none of'),
        ):
            with self.subTest(message), self.assertRaisesRegex(penstock.Error, message):
                with penstock.Writer(path, [self.schema[0], field]) as w:
                    w.append({"images": np.zeros((5, 6, 3), np.uint8), "boxes": np.zeros((1, 4), field.dtype)})


class TestLabelsMove(unittest.TestCase):
    """Declared labels go where transforms bring the pixels of their image."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, program in (("PENSTOCK_PREPROCESS", data.preprocess()), ("PENSTOCK_FEED", os.environ["PENSTOCK_TEST_FEED"])):
            patch = mock.patch.dict(os.environ, {name: program})
            patch.start()
            self.addCleanup(patch.stop)
        self.path = os.path.join(folder.name, "ds")
        places = np.indices((20, 30)).astype(np.uint8).transpose(1, 2, 0)
        self.fields = [
            penstock.Field("images", "uint8", (20, 30, 3), layout="HWC"), penstock.Field("mask", "int32", (20, 30), content="mask"),
            penstock.Field("boxes", "float32", content="boxes", instances="objects"),
            penstock.Field("points", "float32", content="keypoints", instances="objects"),
            penstock.Field("labels", "int64", ragged=True, instances="objects"),
        ]  # fmt: skip
        rng = np.random.default_rng(3)
        with penstock.Writer(self.path, self.fields) as w:
            for i in range(48):
                n = i % 4
                low = rng.integers(0, [24, 14], (n, 2))
                boxes = np.concatenate([low, low + rng.integers(1, 7, (n, 2))], 1).astype(np.float32)
                points = np.concatenate([boxes[:, :2], np.full((n, 1), 2, np.float32)], 1)
                image = np.concatenate([places, np.full((20, 30, 1), i, np.uint8)], 2)
                w.append({
                    "images": image, "mask": places[:, :, 0].astype(np.int32) * 100000 + places[:, :, 1], "boxes": boxes, "points": points,
                    "labels": 10 * i + np.arange(n),
                })  # fmt: skip
        with penstock.open(self.path) as ds:
            self.boxes = [ds["boxes"][i] for i in range(48)]

    def test_boxes_follow(self):
        moves = [ColorJitter(hue=0), RandomIoUCrop(), RandomHorizontalFlip(), RandomResizedCrop(12, interpolation="nearest"), SanitizeBoundingBoxes()]
        seen = left = 0
        with penstock.DataLoader(self.path, 16, shuffle=True, seed=5, transforms=Compose(moves), output="numpy") as loader:
            for batch in loader:
                self.assertEqual(batch["mask"].dtype, np.int32)
                self.assertLess((batch["mask"] != batch["images"][..., 0].astype(int) * 100000 + batch["images"][..., 1]).mean(), 0.05)
                for i, image in enumerate(batch["images"]):
                    boxes, points, labels = batch["boxes"][i], batch["points"][i], batch["labels"][i]
                    self.assertEqual((len(boxes), len(points)), (len(labels), len(labels)))
                    record = int(image[0, 0, 2])
                    seen, left = seen + record % 4, left + len(boxes)
                    for box, point, label in zip(boxes, points, labels):
                        self.assertEqual(label // 10, record)
                        x0, y0, x1, y1 = self.boxes[record][label % 10]
                        at = np.argwhere((image[..., 1] >= x0) & (image[..., 1] < x1) & (image[..., 0] >= y0) & (image[..., 0] < y1))
                        low, high = at.min(0)[::-1], at.max(0)[::-1] + 1
                        self.assertLess(np.abs(np.concatenate([low, high]) - box).max(), 1.01)
                        self.assertTrue(
                            np.isclose(np.clip(point[:2], 0, 12), [[box[0], box[1]], [box[2], box[1]]], atol=1e-3).all(1).any(), (point, box)
                        )
        self.assertGreater(left, seen // 4)
        self.assertLess(left, seen)

    def test_masks_of_instances(self):
        """A file has the masks of all instances, one below the other; loaders have them as arrays, in step with the boxes."""
        path = os.path.join(os.path.dirname(self.path), "stacks")
        fields = [
            penstock.Field("images", "uint8", (20, 30, 3), layout="HWC"), penstock.Field("boxes", "float32", content="boxes", instances="objects"),
            penstock.Field("masks", "uint8", ragged=True, content="mask", instances="objects"),
        ]  # fmt: skip
        with penstock.open(self.path) as ds, penstock.Writer(path, fields) as w:
            for i, boxes in enumerate(self.boxes):
                masks = np.zeros((len(boxes), 20, 30), np.uint8)
                for mask, (left, top, right, bottom) in zip(masks, boxes.astype(int)):
                    mask[top:bottom, left:right] = 1
                w.append({"images": ds["images"][i], "boxes": boxes, "masks": gray_png(masks.reshape(-1, 30)) if len(boxes) else b""})
        moves = Compose([RandomHorizontalFlip(), RandomIoUCrop(), Resize((40, 60)), SanitizeBoundingBoxes(min_size=2)])
        with penstock.DataLoader(path, 16, shuffle=True, seed=5, transforms=moves, output="numpy") as loader:
            left = 0
            for batch in loader:
                for masks, boxes in zip(batch["masks"], batch["boxes"], strict=True):
                    self.assertEqual(masks.shape, (len(boxes), 40, 60))
                    left += len(boxes)
                    for mask, box in zip(masks, boxes):
                        at = np.argwhere(mask)
                        self.assertLess(np.abs(np.concatenate([at.min(0)[::-1], at.max(0)[::-1] + 1]) - box).max(), 3)
        self.assertGreater(left, 20)
        moves = Compose([RandomIoUCrop(), SanitizeBoundingBoxes()])
        with penstock.DataLoader(path, 16, shuffle=True, seed=5, transforms=moves, batch_transforms=PadToLargest(), output="numpy") as loader:
            for batch in loader:
                self.assertEqual(batch["masks"].values.shape[1:], batch["images"].shape[1:3])
                for masks, boxes, (h, w) in zip(batch["masks"], batch["boxes"], batch["images_sizes"], strict=True):
                    self.assertEqual(len(masks), len(boxes))
                    self.assertFalse(masks[:, h:].any() or masks[:, :, w:].any())
                    for mask, box in zip(masks, boxes):
                        at = np.argwhere(mask)
                        np.testing.assert_array_equal(np.concatenate([at.min(0)[::-1], at.max(0)[::-1] + 1]), box)
        moves = Compose([Resize((40, 60)), SanitizeBoundingBoxes(min_size=2)])
        with penstock.Writer(os.path.join(os.path.dirname(self.path), "odd"), fields) as w:
            w.append({"images": np.zeros((20, 30, 3), np.uint8), "boxes": [[1, 2, 3, 4]], "masks": gray_png(np.zeros((40, 30), np.uint8))})
        with self.assertRaisesRegex(penstock.Error, "2 masks, and boxes has 1 rows"):
            with penstock.DataLoader(os.path.join(os.path.dirname(self.path), "odd"), 1, transforms=moves, output="numpy") as loader:
                next(iter(loader))

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "no torch, whose tensors targets are")
    def test_detection(self):
        import penstock.torch

        with penstock.DataLoader(self.path, 8, transforms=Compose([Resize((40, 60)), ToTensor()])) as loader:
            batch = next(iter(loader))
            images, targets = penstock.torch.detection(batch)
            self.assertEqual((len(images), tuple(images[0].shape), len(targets)), (8, (3, 40, 60), 8))
            for i, target in enumerate(targets):
                self.assertEqual(list(target), ["mask", "boxes", "points", "labels"])
                np.testing.assert_array_equal(target["boxes"].numpy(), self.boxes[i] * 2)
                self.assertEqual(target["labels"].tolist(), [10 * i + k + 1 for k in range(i % 4)])
                self.assertEqual(tuple(target["mask"].shape), (40, 60))
            _, targets = penstock.torch.detection(batch, fields={"boxes": "boxes", "labels": "labels"}, first_label=0)
            self.assertEqual([list(t) for t in targets[:1]], [["boxes", "labels"]])
            self.assertEqual(targets[3]["labels"].tolist(), [30, 31, 32])
            for options, error, message in (
                ({"images": "pictures"}, KeyError, "no field 'pictures'; there are: images, mask"),
                ({"fields": {"boxes": "box"}}, KeyError, "no field 'box'"),
                ({"images": "boxes"}, TypeError, "field 'boxes' is a Jagged; a tensor of images of one size"),
            ):  # fmt: skip
                with self.subTest(message), self.assertRaisesRegex(error, message):
                    penstock.torch.detection(batch, **options)
            if importlib.util.find_spec("torchvision") is None:
                self.skipTest("no torchvision, whose tv_tensors are the rest of this test")
            from torchvision import tv_tensors

            images, targets = penstock.torch.detection(batch, fields={"boxes": "boxes", "mask": "mask", "keypoints": "points"}, tv_tensors=True)
            self.assertIsInstance(images[1], tv_tensors.Image)
            self.assertIsInstance(targets[1]["mask"], tv_tensors.Mask)
            self.assertIsInstance(targets[1]["keypoints"], tv_tensors.KeyPoints)
            self.assertEqual((targets[1]["boxes"].canvas_size, targets[1]["boxes"].format.value), ((40, 60), "XYXY"))

    def test_sizes(self):
        """Images of several sizes are padded to the largest of their batch, with the masks on them; the rest stays in place."""
        moves = Compose([RandomHorizontalFlip(1.0), RandomShortestSize([10, 16, 20], interpolation="nearest")])
        pad = PadToLargest(multiple_of=4, fill=7, mask_fill=-1)
        shapes = set()
        with penstock.DataLoader(self.path, 3, shuffle=True, seed=1, transforms=moves, batch_transforms=pad, output="numpy") as loader:
            self.assertEqual(list(loader.fields), ["images", "mask", "boxes", "points", "labels", "images_sizes"])
            for batch in loader:
                height, width = batch["images"].shape[1:3]
                sizes = batch["images_sizes"]
                shapes.add((height, width))
                self.assertEqual((height, width), tuple(-(-sizes.max(0) // 4) * 4))
                self.assertEqual((batch["mask"].shape, batch["mask"].dtype), ((len(sizes), height, width), np.int32))
                for i, (h, w) in enumerate(sizes):
                    image, mask = batch["images"][i], batch["mask"][i]
                    record, scale = int(image[0, 0, 2]), h / 20
                    self.assertEqual(w, h * 3 // 2)
                    np.testing.assert_array_equal(mask[:h, :w], image[:h, :w, 0].astype(int) * 100000 + image[:h, :w, 1])
                    self.assertEqual((np.unique(image[h:]).tolist(), np.unique(image[:, w:]).tolist()), ([7] * int(h < height), [7] * int(w < width)))
                    self.assertEqual((np.unique(mask[h:]).tolist(), np.unique(mask[:, w:]).tolist()), ([-1] * int(h < height), [-1] * int(w < width)))
                    want = self.boxes[record][:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [30, 0, 30, 0]
                    np.testing.assert_allclose(batch["boxes"][i], want * scale, atol=1e-4)
        self.assertGreater(len(shapes), 1)
        for options, message in (
            ({"transforms": moves}, r"batch_transforms=PadToLargest\(\)"),
            ({"transforms": moves, "batch_transforms": PadToLargest(fill=0.5)}, "Pad with 0.5"),
            ({"batch_transforms": pad}, "no images with transforms"),
            ({"transforms": moves, "batch_transforms": [pad, MixUp(num_classes=4)]}, "MixUp mixes images of one size"),
            ({"transforms": RandomHorizontalFlip(), "batch_transforms": PadToLargest(field="image")},
                'no images with transforms that it could pad in the field "image"'),
            ({"transforms": moves, "batch_transforms": pad, "on_error": "blank"}, "Blank has no length"),
        ):  # fmt: skip
            with self.subTest(message), self.assertRaisesRegex(penstock.Error, message):
                penstock.DataLoader(self.path, 3, output="numpy", **options)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "no torch, whose tensors targets are")
    def test_sizes_in_detection(self):
        import penstock.torch

        moves = Compose([RandomShortestSize([10, 15, 20]), ToTensor()])
        with penstock.DataLoader(self.path, 16, transforms=moves, batch_transforms=PadToLargest()) as loader:
            batch = next(iter(loader))
        images, targets = penstock.torch.detection(batch)
        outside = penstock.torch.padding_mask(batch)
        self.assertEqual(list(targets[0]), ["mask", "boxes", "points", "labels"])
        self.assertEqual(len({tuple(image.shape) for image in images}), 3)
        for i, (image, target, (h, w)) in enumerate(zip(images, targets, batch["images_sizes"].tolist(), strict=True)):
            self.assertEqual((tuple(image.shape), tuple(target["mask"].shape)), ((3, h, w), (h, w)))
            self.assertEqual((int((~outside[i]).sum()), bool(outside[i, :h, :w].any())), (h * w, False))
            self.assertEqual(float(batch["images"][i][:, outside[i]].sum()), 0)

    def test_contents(self):
        path = os.path.join(os.path.dirname(self.path), "old")
        with penstock.Writer(path, [self.fields[0], penstock.Field("b", "float32", (4,), ragged=True)]) as w:
            w.append({"images": np.zeros((20, 30, 3), np.uint8), "b": [[1, 2, 4, 6]]})
        with penstock.DataLoader(path, 1, transforms=RandomHorizontalFlip(1.0), contents={"b": "boxes"}, output="numpy") as loader:
            np.testing.assert_array_equal(next(iter(loader))["b"][0], [[26, 2, 29, 6]])
        for contents, error, message in (
            ({"c": "boxes"}, penstock.Error, 'contents: there is no field "c"'),
            ({"b": "box"}, penstock.Error, '"box" is none of mask, boxes and keypoints'),
            ({"b": "mask"}, penstock.Error, "content mask needs integers"), (["b"], TypeError, "contents is .*; it is a dict"),
        ):  # fmt: skip
            with self.subTest(message), self.assertRaisesRegex(error, message):
                with penstock.DataLoader(path, 1, transforms=RandomHorizontalFlip(1.0), contents=contents, output="numpy") as loader:
                    next(iter(loader))

    def test_keypoints(self):
        """Points outside are brought to the edge, or removed with all rows of their instances."""
        cut = {"op": "Crop", "top": 0, "left": 0, "height": 12, "width": 15}
        with penstock.DataLoader(self.path, 48, transforms=[cut, *ClampKeyPoints().to_json()], output="numpy") as loader:
            batch = next(iter(loader))
        for points, boxes in zip(batch["points"], self.boxes):
            np.testing.assert_array_equal(points[:, :2], np.minimum(boxes[:, :2], [15, 12]))
        with penstock.DataLoader(self.path, 48, transforms=[cut, *SanitizeKeyPoints().to_json()], output="numpy") as loader:
            batch = next(iter(loader))
        for i, boxes in enumerate(self.boxes):
            left = np.flatnonzero((boxes[:, 0] < 15) & (boxes[:, 1] < 12))
            self.assertEqual(batch["labels"][i].tolist(), (10 * i + left).tolist())
            np.testing.assert_array_equal(batch["points"][i][:, :2], boxes[left, :2])
            np.testing.assert_array_equal(batch["boxes"][i], np.minimum(boxes[left], [15, 12, 15, 12]))
        with penstock.DataLoader(self.path, 48, transforms=FixedSizeCrop((12, 40), fill=9), output="numpy") as loader:
            batch = next(iter(loader))
        self.assertEqual((batch["images"].shape[1:3], batch["images"][0, 3, 35].tolist()), ((12, 40), [9, 9, 9]))
        for i, (boxes, image) in enumerate(zip(self.boxes, batch["images"])):
            top = int(image[0, 0, 0])
            moved = np.clip(boxes - [0, top, 0, top], 0, [40, 12, 40, 12])
            left = np.flatnonzero(moved[:, 3] > moved[:, 1])
            self.assertEqual(batch["labels"][i].tolist(), (10 * i + left).tolist())
            np.testing.assert_array_equal(batch["boxes"][i], moved[left])
        with self.assertRaisesRegex(penstock.Error, 'boxes of batches are XYXY.*box_convert\\(batch\\["boxes"\\].values, "xyxy", "cxcywh"'):
            penstock.DataLoader(self.path, 4, transforms=[RandomHorizontalFlip(), ConvertBoundingBoxFormat("CXCYWH")], output="numpy")

    def test_fill_of_masks(self):
        with penstock.DataLoader(
            self.path, 4, fields=["images", "mask"], transforms=Pad(2, fill={"image": 9, "mask": 255}), output="numpy"
        ) as loader:
            batch = next(iter(loader))
        self.assertEqual((batch["images"].shape[1:3], batch["mask"].shape[1:]), ((24, 34), (24, 34)))
        self.assertEqual((batch["images"][0, 0, 0, 0], batch["mask"][0, 0, 0], batch["mask"][0, 2, 2]), (9, 255, 0))
        pads = Compose([Pad(1, fill={"mask": 1, "image": 0}), Pad(1, fill={"mask": 2, "image": 0})])
        with self.assertRaisesRegex(penstock.UnsupportedError, "masks have"):
            penstock.DataLoader(self.path, 4, transforms=pads, output="numpy")
