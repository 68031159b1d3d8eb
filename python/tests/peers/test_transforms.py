"""Every class of torchvision.transforms, v1 and v2, with random parameters: torchvision's pixels, or refused."""

import inspect
import itertools
import math
import os
import random
import re
import shutil
import tempfile
import unittest
import warnings

import numpy as np
import PIL.Image
import torch
import torchvision.transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

import penstock
from penstock import transforms as T
from tests import data
from tests.peers import SEED, cases

FIELDS, RECORDS, TOGETHER, MOST = 64, 3, 8, 700
PIL_FILTERS = ("nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos")
#: Kinds of images, as a program goes through them.
PIL_IMAGE, TENSOR = "PIL", "tensor"
#: The slack of policies on tensors: the pixels are Pillow's, and at 135 degrees many lie between two.
POLICY = 2.5


def interpolation(rng, names=PIL_FILTERS):
    """Return a filter, as any of the things that torchvision takes for it."""
    name = rng.choice(names)
    mode = v2.InterpolationMode(name)
    numbers = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
    return numbers[name] if name in numbers and rng.random() < 0.2 else mode


def size(rng):
    return rng.choice((rng.randint(1, 40), [rng.randint(1, 40)], (rng.randint(1, 40), rng.randint(1, 40))))


def fill(rng, channels, v):
    color = rng.choice((rng.randint(0, 255), tuple(rng.randint(0, 255) for _ in range(channels)), 0, 255, None))
    if v is v2 and rng.random() < 0.2:
        return {tv_tensors.Image: color, "others": rng.choice((color, 7))}
    return color


def padding(rng):
    n = [rng.randint(0, 9) for _ in range(4)]
    return rng.choice((n[0], n[:1], tuple(n[:2]), n))


def padding_mode(rng):
    return rng.choice(("constant", "edge", "reflect", "symmetric"))


def once(rng):
    """Return a probability with one outcome."""
    return rng.choice((0, 0.0, 1, 1.0))


def same(x):
    return (x, x)


WARPS = ("nearest", "bilinear", "bicubic")

#: Functions of a generator, the channels and the module, which make the parameters of a class.
PARAMETERS = {
    "Resize": lambda r, c, v: {"size": size(r), "interpolation": interpolation(r), "max_size": r.choice((None, None, r.randint(1, 60))),
        "antialias": r.choice((True, True, True, None, False))},
    "CenterCrop": lambda r, c, v: {"size": size(r)},
    "Pad": lambda r, c, v: {"padding": padding(r), "fill": fill(r, c, v), "padding_mode": padding_mode(r)},
    "RandomCrop": lambda r, c, v: {"size": (r.randint(1, 20), r.randint(1, 20)), "padding": r.choice((None, padding(r))),
        "pad_if_needed": r.random() < 0.6, "fill": fill(r, c, v), "padding_mode": padding_mode(r)},
    "RandomResizedCrop": lambda r, c, v: {"size": size(r), "scale": (1.0, 1.0), "ratio": same(r.choice((0.6, 1.7, 1.0, 1.3))),
        "interpolation": interpolation(r), "antialias": True},
    "RandomHorizontalFlip": lambda r, c, v: {"p": r.choice((0, 1, 0.3))},
    "RandomVerticalFlip": lambda r, c, v: {"p": r.choice((0, 1, 0.3))},
    "ColorJitter": lambda r, c, v: {r.choice(("brightness", "contrast", "saturation")): same(r.choice((0.0, 1.0, r.uniform(0, 3))))}
        if r.random() < 0.8 else {"hue": same(r.uniform(-0.5, 0.5))},
    "Grayscale": lambda r, c, v: {"num_output_channels": r.choice((1, 3))},
    "RandomGrayscale": lambda r, c, v: {"p": once(r)},
    "RGB": lambda r, c, v: {},
    "GaussianBlur": lambda r, c, v: {"kernel_size": r.choice((1, 3, 5, 7, (3, 3), (3, 5))),
        "sigma": r.choice((r.uniform(0.1, 3), same(r.uniform(0.1, 3))))},
    "RandomRotation": lambda r, c, v: {"degrees": same(r.choice((r.uniform(-360, 360), 90, 180, -90, 45, 0))),
        "interpolation": interpolation(r, WARPS), "expand": r.random() < 0.3, "center": r.choice((None, None, None, (2, 3))), "fill": fill(r, c, v)},
    "RandomAffine": lambda r, c, v: {"degrees": same(r.uniform(-180, 180)), "translate": r.choice((None, (0, 0))),
        "scale": r.choice((None, same(r.uniform(0.5, 2)))), "shear": r.choice((None, same(r.uniform(-40, 40)), same(r.uniform(-40, 40)) * 2)),
        "interpolation": interpolation(r, WARPS), "fill": fill(r, c, v), "center": r.choice((None, None, (2, 3)))},
    "RandomPerspective": lambda r, c, v: {"distortion_scale": r.uniform(0, 1), "p": 0, "interpolation": interpolation(r, WARPS),
        "fill": fill(r, c, v)},
    "ElasticTransform": lambda r, c, v: {"alpha": r.choice((0.0, (0.0, 0.0))), "sigma": r.uniform(0.1, 1),
        "interpolation": interpolation(r, ("nearest", "bilinear")), "fill": fill(r, c, v)},
    "RandomErasing": lambda r, c, v: {"p": 0, "scale": (0.1, 0.3), "ratio": (0.5, 2), "value": r.choice((0, 3.5, "random")),
        "inplace": r.random() < 0.5},
    "RandomInvert": lambda r, c, v: {"p": once(r)},
    "RandomPosterize": lambda r, c, v: {"bits": r.randint(0, 8), "p": once(r)},
    "RandomSolarize": lambda r, c, v: {"threshold": r.choice((r.randint(0, 256), r.uniform(0, 255))), "p": once(r)},
    "RandomAdjustSharpness": lambda r, c, v: {"sharpness_factor": r.choice((0, 1, 2, r.uniform(0, 5))), "p": once(r)},
    "RandomAutocontrast": lambda r, c, v: {"p": once(r)},
    "RandomEqualize": lambda r, c, v: {"p": once(r)},
    "RandAugment": lambda r, c, v: {"num_ops": r.choice((0, 1)), "magnitude": r.randint(0, 12), "num_magnitude_bins": r.choice((13, 31)),
        "interpolation": interpolation(r, WARPS), "fill": fill(r, c, v)},
    "TrivialAugmentWide": lambda r, c, v: {"num_magnitude_bins": r.randint(2, 5), "interpolation": interpolation(r, WARPS), "fill": fill(r, c, v)},
}  # fmt: skip
#: Their results are only in part a matter of parameters: that they are translated is in ../test_transforms.py.
RANDOM = {"AutoAugment", "AugMix"}
#: These come at the end.
TAIL = {"ToImage", "PILToTensor", "ToTensor", "ToDtype", "ConvertImageDtype", "Normalize", "LinearTransformation", "Identity", "ToPureTensor"}
CONTAINERS = {"Compose"}
#: Those of detection and of labels, which TestMovesAgainstTorchvision of Go's package transforms compares; torchvision has neither
#: LabelOptions nor FixedSizeCrop.
LABELS = {"ClampBoundingBoxes", "ClampKeyPoints", "ConvertBoundingBoxFormat", "FixedSizeCrop", "LabelOptions", "RandomIoUCrop", "RandomResize",
          "RandomShortestSize", "RandomZoomOut", "SanitizeBoundingBoxes", "SanitizeKeyPoints", "ScaleJitter"}  # fmt: skip
BATCHES = {"MixUp", "CutMix", "RandomChoice"}


def exact(t, kind):
    """Return by how many levels torchvision may differ, as transforms.translate documents it."""
    name = type(t).__name__
    if name == "GaussianBlur":
        return 1
    smooth = getattr(t, "interpolation", None)
    if name in ("RandomAffine", "RandomRotation", "RandAugment", "TrivialAugmentWide") and smooth not in (v2.InterpolationMode.NEAREST, 0):
        return 1
    if kind == TENSOR and name in ("Resize", "RandomResizedCrop"):
        return 2
    if kind == TENSOR and name in ("RandAugment", "TrivialAugmentWide"):
        return POLICY
    if kind == TENSOR and name == "ColorJitter":
        return 2
    return 1 if kind == TENSOR and name in ("Grayscale", "RandomGrayscale", "RandomAdjustSharpness", "RandomAutocontrast") else 0


def program(rng, channels):
    """Return transforms, and by how many levels torchvision may differ."""
    v = rng.choice((v1, v2))
    names = [n for n in PARAMETERS if hasattr(v, n) and n != "RandomErasing"]
    kind, steps, slack, draws = rng.choice((PIL_IMAGE, PIL_IMAGE, TENSOR)), [], 0, 0
    if kind is TENSOR:
        steps.append(v2.ToImage() if v is v2 and rng.random() < 0.7 else v.PILToTensor())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        t = made(rng, rng.choice(names), channels, v)
        if t is None:
            continue
        least, random_one = exact(t, kind), len(expansions(t)) > 1
        if (slack and type(t).__name__ not in ("CenterCrop", "RandomHorizontalFlip", "RandomVerticalFlip")) or (draws and random_one):
            continue
        slack, draws = max(slack, least), draws + random_one
        steps.append(t)
    return steps + tail(rng, v, kind), slack


def made(rng, name, channels, v):
    """Return a transform with random parameters, None if torchvision does not take them."""
    parameters = PARAMETERS[name](rng, channels, v)
    try:
        return getattr(v, name)(**parameters)
    except (ValueError, TypeError):
        return None


def tail(rng, v, kind):
    """Return what makes tensors and numbers of images, most often right."""
    steps, way = [], rng.random()
    if kind is PIL_IMAGE and way < 0.3:
        return steps
    if kind is PIL_IMAGE and way < 0.5:
        steps.append(v.ToTensor())
    else:
        if kind is PIL_IMAGE:
            steps.append(v2.ToImage() if v is v2 else v.PILToTensor())
        if v is v2 and rng.random() < 0.3:
            steps.append(rng.choice((v2.Identity(), v2.ToPureTensor())))
        if way < 0.6:
            return steps
        dtype = rng.choice((torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.float64, torch.int32))
        if v is v2 and rng.random() < 0.7:
            by_type = rng.choice((dtype, dtype, {tv_tensors.Image: dtype, "others": None}, {torch.Tensor: dtype}, {"others": dtype}))
            steps.append(v2.ToDtype(by_type, scale=rng.random() < 0.7))
        else:
            steps.append(v.ConvertImageDtype(dtype))
    if rng.random() < 0.5:
        steps.append(v.Normalize([rng.uniform(0, 1)], [rng.uniform(0.1, 1)], inplace=rng.random() < 0.5))
    if rng.random() < 0.3:
        t = made(rng, "RandomErasing", 1, v)
        steps.append(t)
    return steps


def expansions(t):
    """Return functions of an image; a transform draws one of them."""
    name = type(t).__name__
    if name.endswith("Flip") and 0 < t.p < 1:
        flip = F.horizontal_flip if name == "RandomHorizontalFlip" else F.vertical_flip
        return [lambda x: x, flip]
    if name in ("RandomCrop", "RandomResizedCrop"):
        return [None, None]
    if name in ("RandAugment", "TrivialAugmentWide") and getattr(t, "num_ops", 1) > 0:
        return [None, None]
    return [t]


def outcomes(t, image):
    """Return all the images into which a transform may turn one."""
    name = type(t).__name__
    if name == "RandomCrop":
        return crops(t, image)
    if name == "RandomResizedCrop":
        return resized_crops(t, image)
    if name in ("RandAugment", "TrivialAugmentWide") and getattr(t, "num_ops", 1) > 0:
        return augmented(t, image)
    return [f(image) for f in expansions(t)]


def crops(t, image):
    h, w = t.size
    width, height = F.get_size(image)[::-1]
    if t.padding is not None:
        p = t.padding
        if type(t).__module__.startswith("torchvision.transforms.v2"):  # as its own make_params has them
            p = [p[0], p[2], p[1], p[3]]
        image = F.pad(image, p, kind_fill(t, image), t.padding_mode)
        height, width = F.get_size(image)
    if t.pad_if_needed and (width < w or height < h):
        image = F.pad(image, [max(w - width, 0), max(h - height, 0)], kind_fill(t, image), t.padding_mode)
        height, width = F.get_size(image)
    if width < w or height < h:
        raise ValueError("too small")
    return [F.crop(image, y, x, h, w) for y, x in itertools.product(range(height - h + 1), range(width - w + 1))]


def resized_crops(t, image):
    """Return the images of all places of a part whose area and aspect are given."""
    height, width = F.get_size(image)
    aspect = math.exp(torch.log(torch.tensor(t.ratio))[0].item())
    w, h = round(math.sqrt(height * width * aspect)), round(math.sqrt(height * width / aspect))
    if not (0 < w <= width and 0 < h <= height):
        return [t(image)]
    places = itertools.product(range(height - h + 1), range(width - w + 1))
    return [F.resized_crop(image, y, x, h, w, list(t.size), t.interpolation, antialias=t.antialias) for y, x in places]


def kind_fill(t, image):
    if not isinstance(t.fill, dict):
        return t.fill
    return t.fill.get(type(image), t.fill["others"])


def augmented(t, image):
    """Return the images of all draws: of v2's class, which has v1's space and is built from v1's parameters."""
    same_t = t
    if not hasattr(t, "_AUGMENTATION_SPACE"):
        same_t = getattr(v2, type(t).__name__)(**{p: getattr(t, p) for p in inspect.signature(type(t).__init__).parameters if p != "self"})
    height, width = F.get_size(image)
    results = []
    for op, (magnitudes, signed) in same_t._AUGMENTATION_SPACE.items():
        found = magnitudes(same_t.num_magnitude_bins, height, width)
        if found is None:
            chosen = [0.0]
        elif type(t).__name__ == "RandAugment":
            chosen = [float(found[same_t.magnitude])]
        else:
            chosen = [float(m) for m in found]
        for m in dict.fromkeys(s * m for m in chosen for s in ((1, -1) if signed else (1,))):
            results.append(same_t._apply_image_or_video_transform(image, op, m, interpolation=same_t.interpolation, fill=same_t._fill))
            if op == "Solarize":  # v2 multiplies by 255 what v1 has as 255 parts, so that pixels at the threshold differ
                results.append(F.solarize(image, float(torch.linspace(255.0, 0.0, same_t.num_magnitude_bins)[found.tolist().index(m)])))
    return results


def tensor(image):
    """Return an image as a batch has it: PIL images are (H, W, C)."""
    if isinstance(image, PIL.Image.Image):
        a = torch.from_numpy(np.array(image))
        return a[:, :, None] if a.ndim == 2 else a
    return image.as_subclass(torch.Tensor)


def expected(steps, image):
    """Return all the tensors that torchvision may return for an array."""
    images = [PIL.Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)]
    for t in steps:
        images = [made for image in images for made in outcomes(t, image)]
        if len(images) > MOST:
            raise unittest.SkipTest("too many outcomes")
    return [tensor(i) for i in images]


def close(got, want, slack):
    """Return whether tensors are the same: bytes up to slack levels, floats up to the last bits."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype is torch.uint8:
        away = (got.int() - want.int()).abs() > slack
        return bool(away.double().mean() <= 0.3 if slack == POLICY else not away.any())
    # torch rounds after each operation, and a difference grows with a division by a deviation of 0.1 at least.
    last = torch.finfo(got.dtype).eps * 12
    if slack == POLICY:
        away = (got.double() - want.double()).abs() > last + slack * (10 / 255 if scaled(want) else 10)
        return bool(away.double().mean() <= 0.3)
    return np.allclose(got.double(), want.double(), rtol=last, atol=last + slack * (10 / 255 if scaled(want) else 10))


def scaled(want):
    return want.abs().max() < 30


class Transforms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["PENSTOCK_PREPROCESS"] = data.preprocess()
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.path, rng = os.path.join(folder, "ds"), np.random.default_rng(SEED)
        fields, cls.images = [], {}
        for k in range(FIELDS):
            h, w, c = rng.integers(1, 41), rng.integers(1, 41), (1, 3, 3)[k % 3]
            fields.append(penstock.Field(f"f{k}", "uint8", (int(h), int(w), c), layout="HWC"))
            smooth = np.add.outer(np.add.outer(np.arange(h) * 5, np.arange(w) * 3), np.arange(c) * 20).clip(0, 255)
            cls.images[f"f{k}"] = [
                rng.integers(0, 256, (h, w, c), np.uint8),
                smooth.astype(np.uint8),
                (rng.integers(0, 4, (h, w, c)) * 60 + 10).astype(np.uint8),
            ]
        with penstock.Writer(cls.path, fields) as writer:
            for i in range(RECORDS):
                writer.append({f.name: cls.images[f.name][i] for f in fields})
        cls.tried, cls.refused = 0, 0

    @classmethod
    def tearDownClass(cls):
        print(f"transforms: {cls.tried} programs compared with torchvision, {cls.refused} refused, {RECORDS} images each", flush=True)

    def batch(self, recipes, seed):
        """Return the images of programs by field, and why some are refused."""
        refused = {}
        while recipes:
            try:
                with penstock.DataLoader(
                    self.path,
                    RECORDS,
                    fields=list(recipes),
                    independent=list(recipes),
                    transforms=recipes,
                    seed=seed,
                    num_workers=1,
                    command=data.feed(),
                ) as loader:
                    batch = next(iter(loader))
                    return {name: batch[name].clone() for name in recipes}, refused
            except (penstock.Error, ValueError) as e:
                bad = {name: str(e) for name in re.findall(r'field "(f\d+)"', str(e)) if name in recipes}
                if not bad:
                    raise
                refused.update(bad)
                recipes = {name: r for name, r in recipes.items() if name not in bad}
        return {}, refused

    @cases(150)
    def test_programs(self, rng: random.Random) -> None:
        """Eight programs, each of one to three transforms and what makes tensors, on three images."""
        torch.manual_seed(rng.randrange(1 << 31))
        warnings.simplefilter("ignore")
        programs, recipes = {}, {}
        for name in rng.sample(sorted(self.images), TOGETHER):
            steps, slack = program(rng, self.images[name][0].shape[2])
            try:
                recipes[name] = T.translate(v2.Compose(steps) if steps else [])
                programs[name] = steps, slack
            except (penstock.UnsupportedError, ValueError) as e:
                self.assertGreater(len(str(e)), 20)
                type(self).refused += 1
        got, refused = self.batch(recipes, rng.randrange(1 << 31))
        type(self).refused += len(refused)
        for name, images in got.items():
            self.compare(name, *programs[name], images)

    def compare(self, name, steps, slack, images):
        for image, made in zip(self.images[name], images):
            try:
                want = expected(steps, image)
            except unittest.SkipTest:
                return
            except Exception:  # torchvision refuses this, so that there is nothing to compare with
                return
            if not any(close(made, w, slack) for w in want):
                difference = min(((made.double() - w.double()).abs().max().item() for w in want if w.shape == made.shape), default="shape")
                raise AssertionError(
                    f"{image.shape} {steps}: {made.dtype} {made.shape}, want one of {len(want)}, {want[0].dtype} {want[0].shape}; "
                    f"difference {difference}, may be {slack}\n{T.translate(v2.Compose(steps))}"
                )
        type(self).tried += 1

    def test_every_class(self):
        """A class of torchvision is compared here, or refused."""
        for v in (v1, v2):
            for name, c in inspect.getmembers(v, inspect.isclass):
                if not c.__module__.startswith("torchvision.transforms") or name in ("InterpolationMode", "AutoAugmentPolicy", "Transform"):
                    continue
                if name in PARAMETERS.keys() | TAIL | RANDOM | CONTAINERS | BATCHES | LABELS:
                    continue
                with (
                    self.subTest(f"{v.__name__}.{name}"),
                    self.assertRaisesRegex(penstock.UnsupportedError, f"{name} cannot run in the feeding process"),
                ):
                    T.translate(c.__new__(c))
        # Those of arrays, which it does not have, are compared with NumPy: ../test_array_transforms.py.
        arrays = {name for name, c in T._RECORD.items() if issubclass(c, T.ArrayTransform)}
        self.assertEqual(set(T._RECORD) - {"PadTo"} - PARAMETERS.keys() - TAIL - RANDOM - LABELS, arrays)
