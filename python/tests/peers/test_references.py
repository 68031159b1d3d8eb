"""torchvision's references for detection and segmentation, in short: the losses with penstock's loader are those with torchvision's own."""

import contextlib
import importlib.util
import io
import json
import os
import random
import tempfile
import unittest
from unittest import mock

import numpy as np
from PIL import Image

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples")


def squares(folder, count=8):
    """Make a set of COCO whose objects are squares of one color a class."""
    rng, images, annotations = random.Random(1), [], []
    os.makedirs(os.path.join(folder, "annotations"))
    os.makedirs(os.path.join(folder, "train2017"))
    for i in range(count):
        width, height = rng.choice([(120, 90), (90, 120)])
        pixels = np.full((height, width, 3), 90, np.uint8)
        for _ in range(rng.randint(1, 3)):
            x, y, s, kind = rng.randint(0, width - 41), rng.randint(0, height - 41), rng.randint(20, 40), rng.randint(1, 3)
            pixels[y : y + s, x : x + s] = [(255, 0, 0), (0, 255, 0), (0, 0, 255)][kind - 1]
            annotations.append({
                "id": len(annotations) + 1, "image_id": i, "category_id": kind, "iscrowd": 0, "area": s * s, "bbox": [x, y, s, s],
                "segmentation": [[x, y, x + s, y, x + s, y + s, x, y + s]],
            })  # fmt: skip
        Image.fromarray(pixels).save(os.path.join(folder, "train2017", f"{i}.jpg"), quality=95)
        images.append({"id": i, "file_name": f"{i}.jpg", "width": width, "height": height})
    with open(os.path.join(folder, "annotations", "instances_train2017.json"), "w") as f:
        json.dump({"images": images, "annotations": annotations, "categories": [{"id": k, "name": str(k)} for k in (1, 2, 3)]}, f)


class TestReferences(unittest.TestCase):
    def test_losses(self):
        spec = importlib.util.spec_from_file_location("torchvision_references", os.path.join(EXAMPLES, "torchvision_references.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        programs = {"PENSTOCK_FEED": os.environ["PENSTOCK_TEST_FEED"], "PENSTOCK_PREPROCESS": os.environ["PENSTOCK_TEST_PREPROCESS"]}
        with tempfile.TemporaryDirectory() as parent, mock.patch.dict(os.environ, programs), contextlib.redirect_stdout(io.StringIO()):
            folder = os.path.join(parent, "set")
            squares(folder)
            for task in ("detection", "segmentation"):
                first = [module.losses(folder, task, kind, 0, steps=2, workers=w)[0] for kind, w in (("torchvision", 0), ("penstock", 1))]
                with self.subTest(task):
                    self.assertAlmostEqual(first[1] / first[0], 1, delta=0.1)  # other images are in the first batch, of the same kind


if __name__ == "__main__":
    unittest.main()
