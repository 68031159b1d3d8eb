"""Functions in a DataLoader's transforms, compared with torchvision, albumentations and Kornia by hand."""

import io
import os
import random
import shutil
import tempfile
import unittest
import warnings

import albumentations as A
import kornia.augmentation as K
import numpy as np
import torch
import torchvision.transforms as v1
from albumentations.pytorch import ToTensorV2
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2

import penstock
from penstock import transforms as T
from penstock._code.randomness import record_seed, seed_random
from penstock.functions import PLACE

from .. import data

RECORDS = 60
PROGRAMS = int(os.environ.get("PENSTOCK_PROGRAMS", "40"))


def turned(image):
    return image.rotate(90)


def noise(x):
    x = x.to(torch.float32)
    return x + torch.randn_like(x) / 10


def five(crops):
    return torch.stack([v1.functional.to_tensor(crop) for crop in crops])


class FunctionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="penstock-functions-")
        cls.path = os.path.join(cls.base, "ds")
        rng = np.random.default_rng(1)
        with penstock.Writer(cls.path, schema=[penstock.Field("image", "uint8", (32, 32, 3), layout="HWC")], command=data.preprocess()) as w:
            for _ in range(RECORDS):
                w.append({"image": rng.integers(0, 256, (32, 32, 3), np.uint8)})
        cls.images = penstock.open(cls.path)["image"][:].copy()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.base)

    def check(self, transforms, want, last_bit=0, **options):
        """Compare each record with ``want(image)``, whose random numbers are seeded as those of functions."""
        made = penstock.DataLoader(
            self.path, 16, shuffle=True, transforms=transforms, command=data.feed(), **{"num_workers": random.randint(0, 3), **options}
        )
        self.addCleanup(made.close)
        for b in made:
            for i, r in enumerate(b.indices):
                key = record_seed(0, 0, int(r))
                seed_random(key)
                expected = want(self.images[int(r)].copy(), key)
                if not isinstance(expected, torch.Tensor):
                    expected = torch.as_tensor(np.array(expected))
                got = b["image"][i]
                self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
                # v2's ToDtype multiplies by 1/255, where all others divide: the last bit
                torch.testing.assert_close(got, expected.as_subclass(torch.Tensor), rtol=0, atol=last_bit)
        return made

    def compose(self, t, **options):
        return self.check(t, lambda image, _: t(Image.fromarray(image)), **options)

    def test_torchvision(self):
        seeded = torch.Generator().manual_seed(1)
        normalize = v1.Normalize([0.5] * 3, [0.2] * 3)
        for t in (
            v1.Compose([v1.CenterCrop(20), v1.Lambda(turned), v1.ToTensor(), normalize]),
            v1.Compose([turned, v1.RandomHorizontalFlip(), v1.ToTensor(), normalize]),
            v1.Compose([v1.ToTensor(), v1.Lambda(noise), normalize]),
            v1.Compose([v1.FiveCrop(16), v1.Lambda(five)]),
            v1.Compose([v1.ToTensor(), v1.Resize((24, 20)), v1.RandomCrop(24, padding=2), normalize]),
            v1.Compose([v1.CenterCrop(9), v1.ToTensor(), v1.LinearTransformation(torch.rand(243, 243, generator=seeded), torch.zeros(243))]),
            v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Pad(2), v2.RandomGrayscale(0.0)]),
            v2.Compose([v2.ToImage(), v2.RandomPhotometricDistort(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]),
            v2.Compose([v2.CenterCrop(20), v2.ToImage(), noise, v2.Normalize([0.5] * 3, [0.2] * 3)]),
            v2.Compose([v2.RandomPhotometricDistort(p=1.0), v2.Resize((24, 24)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
        ):
            with self.subTest(t=t):
                self.compose(t, last_bit=6e-8 if isinstance(t, v2.Compose) else 0)

    def test_the_engine_does_the_ends(self):
        made = self.compose(v1.Compose([v1.CenterCrop(20), v1.Lambda(turned), v1.ToTensor(), v1.Normalize([0.5], [0.2])]))
        ops = [e["op"] for e in made._engine.session._pipelines[""]]
        self.assertEqual(ops, ["CenterCrop", "Function", "ToTensor", "Normalize"])

    def test_random_programs(self):
        rng = random.Random(11)
        pil = [turned, v1.RandomHorizontalFlip(), v1.RandomVerticalFlip(), v1.RandomGrayscale(0.5), v1.RandomRotation(30), v1.Lambda(turned)]
        ends = [[], [v1.ToTensor()], [v1.ToTensor(), v1.Normalize([0.5] * 3, [0.2] * 3)], [v1.PILToTensor()], [v1.ToTensor(), noise]]
        for _ in range(PROGRAMS):
            steps = [v1.Lambda(turned), *rng.choices(pil, k=rng.randint(0, 3)), *rng.choice(ends)]
            with self.subTest(steps=steps):
                self.compose(v1.Compose(steps))

    def test_albumentations(self):
        for pipeline in (
            A.Compose([A.HorizontalFlip(p=0.5), A.RandomBrightnessContrast(p=1), A.Normalize(), ToTensorV2()]),
            A.Compose([A.RandomCrop(20, 20), A.GaussNoise(p=1), A.CoarseDropout(p=0.5)]),
        ):

            def want(image, key, pipeline=pipeline):
                pipeline.set_random_seed(key & 0xFFFFFFFF)
                return pipeline(image=image)["image"]

            with self.subTest(pipeline=pipeline):
                self.check([pipeline], want)

    def test_kornia(self):
        pipeline = K.AugmentationSequential(K.RandomHorizontalFlip(p=0.5), K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0))
        self.check([T.ToTensor(), pipeline], lambda image, _: pipeline(v1.functional.to_tensor(image).unsqueeze(0)).squeeze(0))
        with self.assertRaisesRegex(penstock.Error, r"put ToTensor\(\) before it"):
            self.check([pipeline], None)

    def test_what_functions_take(self):
        def pil(x: Image.Image):
            return x.transpose(Image.Transpose.FLIP_LEFT_RIGHT)

        def tensor(x: torch.Tensor):
            return x * 2

        pool = torch.nn.AvgPool2d(2)
        self.check([T.CenterCrop(20), pil], lambda image, _: pil(Image.fromarray(image[6:26, 6:26])))
        self.check([tensor], lambda image, _: torch.from_numpy(image).permute(2, 0, 1) * 2)
        self.check([T.ToTensor(), pool], lambda image, _: pool(v1.functional.to_tensor(image)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.check(
                [T.Function(v2.functional.horizontal_flip, takes="tv_tensor")], lambda image, _: torch.from_numpy(image).permute(2, 0, 1).flip(-1)
            )

    def test_spawn(self):
        self.check([np.flip], lambda image, _: np.flip(image), multiprocessing_context="spawn", num_workers=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.check([lambda x: x // 2], lambda image, _: image // 2, multiprocessing_context="spawn", num_workers=1)


def flipped(record: dict):
    """Return a record flipped by torchvision."""
    box = tv_tensors.BoundingBoxes(record["boxes"], format="XYXY", canvas_size=record["image"].shape[:2])
    image, box = v2.RandomHorizontalFlip()(Image.fromarray(record["image"]), box)
    return {"image": image, "boxes": box}


class RecordsTest(unittest.TestCase):
    """Functions of whole records, compared with calls by hand."""

    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="penstock-records-")
        cls.path = os.path.join(cls.base, "ds")
        rng = np.random.default_rng(2)
        cls.records = []
        for i in range(RECORDS):
            corners = rng.integers(0, 24, (i % 4, 2))
            boxes = np.concatenate([corners, corners + rng.integers(4, 16, corners.shape)], 1).astype(np.float32)
            image = Image.fromarray(rng.integers(0, 256, (40 + i % 9, 48, 3), np.uint8))
            file = io.BytesIO()
            image.save(file, "PNG")
            cls.records.append({"image": file.getvalue(), "boxes": boxes, "labels": np.arange(len(boxes))})
        schema = [
            penstock.Field("image", "uint8", content="image", ragged=True),
            penstock.Field("boxes", "float32", content="boxes", instances="objects"),
            penstock.Field("labels", "int64", ragged=True, instances="objects"),
        ]
        with penstock.Writer(cls.path, schema=schema, command=data.preprocess(), keep_encoded=True) as w:
            for record in cls.records:
                w.append(record)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.base)

    def check(self, transforms, want, **options):
        made = penstock.DataLoader(
            self.path, 16, shuffle=True, transforms=transforms, command=data.feed(), **{"num_workers": random.randint(0, 2), **options}
        )
        self.addCleanup(made.close)
        for b in made:
            for i, r in enumerate(b.indices):
                key, record = record_seed(0, 0, int(r), place=PLACE), self.records[int(r)]
                seed_random(key)
                image = np.array(Image.open(io.BytesIO(record["image"])))
                for name, expected in want({**record, "image": image}, key).items():
                    np.testing.assert_array_equal(np.asarray(b[name][i]), np.asarray(expected), f"{name} of record {r}")

    def test_albumentations_with_boxes(self):
        pipeline = A.Compose(
            [A.RandomSizedBBoxSafeCrop(24, 24), A.HorizontalFlip(), A.RandomBrightnessContrast(), A.Normalize(), ToTensorV2()],
            bbox_params=A.BboxParams(format="pascal_voc", label_fields=["labels"], min_visibility=0.2),
        )

        def want(record, key):
            pipeline.set_random_seed(key & 0xFFFFFFFF)
            made = pipeline(image=record["image"], bboxes=record["boxes"], labels=record["labels"])
            return {"image": made["image"], "boxes": np.asarray(made["bboxes"], np.float32).reshape(-1, 4), "labels": made["labels"]}

        self.check([pipeline], want)
        self.check(T.Record(pipeline, takes={"image": "image", "bboxes": "boxes", "labels": "labels"}), want)
        yolo = A.Compose([A.HorizontalFlip()], bbox_params=A.BboxParams(format="yolo", label_fields=["labels"]))
        with self.assertRaisesRegex(ValueError, "format 'yolo'.*give it format='pascal_voc'"):
            self.check([yolo], want)

    def test_torchvision(self):
        def want(record, _):
            made = flipped({**record, "image": record["image"][:40]})
            return {"image": np.array(made["image"]).transpose(2, 0, 1) / np.float32(255), "boxes": made["boxes"]}

        def cut(record: dict):
            return {**record, "image": record["image"][:40]}

        self.check([cut, flipped, T.ToTensor()], want)


if __name__ == "__main__":
    unittest.main()
