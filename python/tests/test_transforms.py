import dataclasses
import inspect
import json
import sys
import types
import unittest
import unittest.mock

import penstock
from penstock import transforms as T

from . import data

try:
    import torch
    import torchvision.transforms as v1
    from torchvision.transforms import v2
except ImportError:
    v2 = None

#: One of each, with parameters that are not the defaults.
OPS = [
    T.Resize(9), T.Resize((9, 12), "bicubic"), T.Resize(8, max_size=20), T.Resize(None, max_size=20), T.CenterCrop((8, 9)),
    T.Pad((1, 2), 3, "edge"), T.Pad(2, (1, 2, 3)), T.RandomCrop(8, (2, 3, 4, 5), True, 7), T.RandomResizedCrop(7, (0.2, 0.9), (1, 1.5)),
    T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(0.2), T.ColorJitter(0.4, (0.5, 1.5), 0.3, 0.1), T.Grayscale(3), T.RandomGrayscale(0.3),
    T.RGB(), T.GaussianBlur(3, 0.7), T.GaussianBlur((5, 5)), T.RandomRotation(20, "bilinear", fill=5), T.RandomRotation(20, center=(3, 4)),
    T.RandomAffine((-10, 20), (0.1, 0.1), (0.8, 1.2), 10, "bilinear"), T.RandomPerspective(0.3, 1.0), T.ElasticTransform(20.0, 0.5),
    T.RandomInvert(0.9), T.RandomPosterize(3), T.RandomSolarize(100.0), T.RandomAdjustSharpness(2.0), T.RandomAutocontrast(),
    T.RandomEqualize(), T.AutoAugment("cifar10"), T.RandAugment(1, 5), T.TrivialAugmentWide(), T.AugMix(2), T.ToImage(), T.PILToTensor(),
]  # fmt: skip
#: Those that make other sizes, and those of boxes; test_labels has RandomIoUCrop, SanitizeBoundingBoxes and SanitizeKeyPoints.
SIZES = [
    T.RandomZoomOut(3, (1, 2), 0.9),
    T.ScaleJitter((30, 20), (0.5, 1)),
    T.RandomShortestSize([9, 12], 20),
    T.RandomResize(9, 12),
    T.RandomRotation(9, expand=True),
]
BOXES = [
    T.LabelOptions(255, "nearest", "pixels"),
    T.ClampBoundingBoxes(),
    T.ClampKeyPoints(),
    T.ConvertBoundingBoxFormat("XYXY"),
    T.FixedSizeCrop(8, 3, "edge"),
]
LAST = [T.ToTensor(), T.ToDtype("float16", True), T.ConvertImageDtype("bfloat16"), T.ToDtype("uint8")]


def imitation(name, module="torchvision.transforms.v2._misc", **defaults):
    """Return a class that keeps its parameters as one of torchvision does."""

    def init(self, **given):
        self.__dict__.update({**defaults, **given})

    init.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in defaults.items()])
    return type(name, (), {"__module__": module, "__init__": init})


class TransformsTest(unittest.TestCase):
    def test_go_knows_them(self):
        tried = {type(t).__name__ for t in [*OPS, *SIZES, *BOXES, *LAST]} | {"Normalize", "RandomErasing", "LinearTransformation", "PadTo"}
        tried |= {"RandomIoUCrop", "SanitizeBoundingBoxes", "SanitizeKeyPoints"}
        self.assertEqual(tried, {name for name, c in T._RECORD.items() if not issubclass(c, T.ArrayTransform)})  # test_array_transforms has those
        tails = {t: [t, T.Normalize([0.5], [0.2]), T.RandomErasing(1.0, value="random")] for t in LAST[:3]}
        for i, last in enumerate(LAST):
            ops = [*OPS[i::4], *tails.get(last, [last])]
            with penstock.DataLoader(data.path("images"), 3, output="numpy", transforms=ops, command=data.feed()) as loader:
                self.assertEqual(next(iter(loader))["images"].dtype, loader.fields["images"].numpy, ops)
        for t in SIZES:
            with penstock.DataLoader(
                data.path("images"), 3, output="numpy", transforms=[*BOXES, t, T.Resize((8, 9)), T.ToImage()], command=data.feed()
            ) as loader:
                self.assertEqual(next(iter(loader))["images"].shape[-2:], (8, 9), t)

    def test_defaults(self):
        """Defaults that are written out are those of torchvision."""
        self.assertEqual(T.PadTo(5), T.PadTo(5, value=0))
        self.assertEqual(T.RandomErasing(), T.RandomErasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0))
        self.assertEqual(T.RandomHorizontalFlip(), T.RandomHorizontalFlip(p=0.5))
        self.assertEqual(T.RandomPerspective(), T.RandomPerspective(distortion_scale=0.5, p=0.5))

    def test_zero_is_zero(self):
        with penstock.DataLoader(data.path("images"), 3, output="numpy", command=data.feed()) as loader:
            want = next(iter(loader))["images"].copy()
        for t in (
            T.RandomHorizontalFlip(0), T.RandomVerticalFlip(0.0), T.RandomErasing(p=0), T.RandomPerspective(0, 1.0), T.RandAugment(0),
            T.RandomInvert(0),
            T.RandomPosterize(1, 0), T.RandomSolarize(0.0, 0), T.RandomAdjustSharpness(0, 0), T.ColorJitter(0, 0, 0, 0), T.ToDtype("uint8"),
            T.RandomRotation(0), T.RandomAffine(0),
        ):  # fmt: skip
            with penstock.DataLoader(data.path("images"), 3, output="numpy", transforms=[t, T.ToImage()], command=data.feed()) as loader:
                self.assertTrue((next(iter(loader))["images"] == want).all(), t)
        for t, text in (
            (T.AugMix(severity=0), "severity 0 must be 1 to 10"),
            (T.AugMix(mixture_width=0), "mixture_width 0 must be 1 to"),
            (T.AugMix(alpha=0), "alpha 0 must be positive"),
            (T.TrivialAugmentWide(0), "num_magnitude_bins 0 must be 2 or more"),
            (T.Grayscale(0), "num_output_channels 0 must be one of 1, 3"),
            ({"op": "Img2Dataset", "image_size": 0}, "image_size 0 must be 1 to 1048576"),
            (T.Resize(8, max_size=0), "Resize: max_size is 0; it must be positive, or None"),
            (T.Resize(None), "Resize: give size, or max_size"),
            (T.AutoAugment(""), "policy is empty; for its default, leave it out"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                penstock.DataLoader(data.path("images"), 3, output="numpy", transforms=t, command=data.feed()).close()
        for t, text in (
            (T.MixUp(0, 3), "MixUp: alpha is 0; it must be positive"),
            (T.CutMix(0.0, 3), "CutMix: alpha is 0"),
            (T.MixUp(1.0, 0), "num_classes is 0"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                penstock.DataLoader(data.path("images"), 3, output="numpy", transforms=T.ToTensor(), batch_transforms=t, command=data.feed()).close()

    def test_json(self):
        self.assertEqual(T.translate({"op": "Sharpen", "sigma": 1}), [{"op": "Sharpen", "sigma": 1}])
        self.assertEqual(
            T.Compose([T.Resize(9), [T.CenterCrop(8), T.Compose([T.Normalize()])]]).to_json(),
            [{"op": "Resize", "size": 9, "interpolation": "bilinear"}, {"op": "CenterCrop", "size": 8}, {"op": "Normalize"}],
        )

    def test_parameters_that_torchvision_keeps_in_other_ways(self):
        crop = imitation(
            "RandomCrop", "torchvision.transforms.v2._geometry", size=(16, 16), padding=None, pad_if_needed=False, fill=0, padding_mode="constant"
        )
        for padding, want in (([1, 3, 2, 4], [1, 2, 3, 4]), ([0, 0, 8, 8], [0, 8, 0, 8]), (None, None)):  # v2: left, right, top, bottom
            self.assertEqual(T.translate(crop(padding=padding))[0].get("padding"), want)
        crop = imitation(
            "RandomCrop", "torchvision.transforms.transforms", size=(16, 16), padding=None, pad_if_needed=False, fill=0, padding_mode="constant"
        )
        self.assertEqual(T.translate(crop(padding=(1, 2, 3, 4)))[0]["padding"], [1, 2, 3, 4])
        with self.assertRaisesRegex(penstock.UnsupportedError, "Grayscale: rounding='up': penstock has no such parameter; leave it out"):
            T.translate(imitation("Grayscale", num_output_channels=1, rounding="down")(rounding="up"))

    def test_kinds_of_images(self):
        Image = type("Image", (), {"__module__": "torchvision.tv_tensors._image"})
        Tensor = type("Tensor", (), {"__module__": "torch"})
        to_image, to_tensor = imitation("ToImage")(), imitation("ToTensor")()
        to_dtype, resize, pad = (
            imitation("ToDtype", dtype=None, scale=False),
            imitation("Resize", size=8, interpolation="bilinear", max_size=None, antialias=True),
            imitation("Pad", padding=1, fill=0, padding_mode="constant"),
        )
        rotation = imitation("RandomRotation", degrees=9, interpolation="nearest", expand=False, center=None, fill=0)
        for given, want in (
            ([to_image, to_dtype(dtype={Image: "float32", "others": None})], "float32"),
            ([to_image, imitation("ToPureTensor")(), to_dtype(dtype={Tensor: "float32"})], "float32"),
            ([imitation("PILToTensor")(), to_dtype(dtype={Image: "float16", "others": None})], "uint8"),
            ([to_dtype(dtype={Image: "float32", Tensor: "float32"})], "float32"),
        ):  # fmt: skip
            self.assertEqual(T.translate(given)[-1], {"op": "ToDtype", "dtype": want, "scale": False})
        self.assertEqual(T.translate([resize(), to_dtype(dtype="float32")])[0], {"op": "ToImage"})  # which tensors are, (C, H, W)
        self.assertEqual(T.translate([resize(), T.Normalize()])[0], {"op": "ToImage"})
        self.assertEqual([t["op"] for t in T.translate([T.Resize(8), T.ToDtype("float32")])], ["Resize", "ToDtype"])
        self.assertEqual(T.translate([to_image, pad(fill={Image: 7, "others": 0})])[-1]["fill"], [7])
        for given in (
            [resize(interpolation="nearest"), to_tensor],
            [resize(interpolation="nearest-exact"), to_image],
            [resize(interpolation="nearest-exact")],
        ):
            self.assertEqual([t["interpolation"] for t in T.translate(given) if t["op"] == "Resize"], ["nearest"])
        self.assertEqual(T.translate([resize(interpolation=3), to_image])[0]["interpolation"], "bicubic")
        for given, text in (
            ([to_image, to_dtype(dtype={Tensor: "float32"})], "ToDtype: dtype=.* has not one value for Image"),
            ([to_dtype(dtype={Image: "float32", "others": None})], "has not one value for tensors"),
            ([pad(fill={Image: 7, "others": 0})], "Pad: fill=.* has not one value for images; give one fill, and no dict"),
            ([to_dtype(dtype="float32"), to_image], "ToDtype is for tensors, and here the images are PIL images: move it after ToImage"),
            ([to_image, resize(interpolation="nearest")], "Resize: interpolation=nearest makes other pixels of a tensor .*; move it before ToImage"),
            ([to_image, resize(interpolation="nearest-exact")], "Resize: interpolation=nearest makes other pixels of a tensor"),
            ([resize(interpolation="nearest")],
                "interpolation=NEAREST takes other pixels of a tensor .*; write InterpolationMode.NEAREST_EXACT, or put ToImage after it"),
            ([to_image, resize(interpolation="bicubic")], "Resize: interpolation=bicubic makes other pixels of a tensor .*; move it before ToImage"),
            ([to_image, resize(antialias=None)], "antialias=None: .*; write antialias=True"),
            ([to_image, rotation(interpolation="bilinear")], "RandomRotation: interpolation=bilinear makes other pixels"),
            ([to_image, rotation(degrees=[90, 90])], "RandomRotation: a fixed angle makes other pixels"),
            ([to_image, imitation("ColorJitter", brightness=None, contrast=None, saturation=None, hue=None)(hue=(-0.1, 0.1))],
                "ColorJitter: hue makes other pixels"),
            ([resize(interpolation="cubic"), to_image], "interpolation='cubic': there are nearest, lanczos, bilinear"),
            ([to_tensor, resize()], "Resize works on uint8 images, and a step before it makes floats; put it before that step"),
            ([to_image, to_dtype(dtype="float32"), pad()], "Pad works on uint8 images"),
            ([to_tensor, imitation("RandomCrop", size=8, padding=None, pad_if_needed=True, fill=0, padding_mode="constant")()],
                "RandomCrop works on uint8 images"),
            ([to_tensor, imitation("ConvertImageDtype", dtype="float16")()], "ConvertImageDtype works on uint8 images"),
        ):  # fmt: skip
            with self.assertRaisesRegex(penstock.UnsupportedError, text):
                T.translate(given)

    def test_floats(self):
        """Operations that the engine has for floats stay in it, and so do those that follow a conversion to bytes."""
        to_tensor, to_dtype = imitation("ToTensor")(), imitation("ToDtype", dtype=None, scale=True)
        crop = imitation("RandomCrop", size=8, padding=None, pad_if_needed=False, fill=0, padding_mode="constant")()
        resize = imitation("Resize", size=8, interpolation="bilinear", max_size=None, antialias=True)()
        flip = imitation("RandomHorizontalFlip", p=0.5)()
        self.assertEqual([t["op"] for t in T.translate([to_tensor, crop, flip])], ["ToTensor", "RandomCrop", "RandomHorizontalFlip"])
        self.assertEqual([t["op"] for t in T.translate([imitation("ToImage")(), to_dtype(dtype="uint8"), resize])], ["ToImage", "ToDtype", "Resize"])

    def test_a_matrix_that_is_too_large(self):
        n = T._LARGEST_MATRIX
        self.assertLess(len(json.dumps(T.LinearTransformation([[-1 / 3] * n] * n, [0.0] * n).to_json())), (1 << 20) - 65536)
        with self.assertRaisesRegex(penstock.UnsupportedError, "a matrix of 193 x 193 numbers .* give torchvision's"):
            T.LinearTransformation([[0.0] * (n + 1)] * (n + 1), [0.0] * (n + 1)).to_json()

    def test_pass_order(self):
        self.assertEqual(T.Resize(8, pass_order="horizontal").to_json()[0]["pass_order"], "horizontal")
        self.assertNotIn("pass_order", T.RandomResizedCrop(8).to_json()[0])  # auto
        resize = imitation("Resize", size=8, interpolation="bilinear", max_size=None, antialias=True)()
        for version, want in (("12.9.9", "horizontal"), ("13.0.0", "auto"), ("14.1", "auto"), ("9.5.0.dev0", "horizontal")):
            pil = types.ModuleType("PIL")
            pil.__version__ = version
            with unittest.mock.patch.dict(sys.modules, {"PIL": pil}):
                self.assertEqual(T.translate(resize)[0]["pass_order"], want)
                self.assertEqual(T.translate([imitation("ToImage")(), resize])[1]["pass_order"], "horizontal")
        with unittest.mock.patch.dict(sys.modules, {"PIL": None}):
            self.assertEqual(T.translate(resize)[0]["pass_order"], "auto")

    def test_what_there_is_not(self):
        for t, text in (
            (lambda x: x, "builtins.function cannot run in the feeding process, .*; leave it out here, and apply it in Python"),
            (T.Resize(8, antialias=False), "antialias=False: filters always widen"),
            (
                [imitation("ToImage")(), imitation("RandomRotation", degrees=(-9, 9), interpolation="nearest", expand=True, center=None, fill=0)()],
                "RandomRotation: expand makes other",
            ),
            (T.GaussianBlur((3, 5)), "the kernel is a square"),
            (T.Pad(1, 0.5), r"fill=0.5: images are bytes"),
            (T.Pad(1, [3, 0.5]), r"fill=\[3, 0.5\]: images are bytes"),
            (T.Pad(1, {"images": 3, "others": 4}), "fill=.*: give one color"),
            (T.MixUp(), "MixUp works on batches: give it to batch_transforms="),
            (T.RandomChoice([T.MixUp(), T.ToTensor()]), "ToTensor works on single records"),
        ):
            with self.assertRaisesRegex(penstock.UnsupportedError, text):
                T.translate(t, {**T._RECORD, "RandomChoice": T.RandomChoice})
        with self.assertRaisesRegex(ValueError, "1 probabilities of 2"):
            T.RandomChoice([T.MixUp(), T.CutMix()], [1]).to_json()

    @unittest.skipIf(v2 is None, "no torchvision")
    def test_torchvision_is_translated(self):
        norm = ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
        for module in (v1, v2):
            to_tensor = [v1.ToTensor()] if module is v1 else [v2.ToImage(), v2.ToDtype({v2.Identity: None, "others": torch.float32}, scale=True)]
            got = module.Compose([
                module.RandomResizedCrop(24, interpolation=module.InterpolationMode.BICUBIC), module.RandomHorizontalFlip(), module.ColorJitter(0.5),
                module.Compose([module.RandAugment(3), module.RandomRotation(5)]), torch.nn.Sequential(module.GaussianBlur(3)),
                module.Grayscale(3), *to_tensor, module.Normalize(*norm), module.RandomErasing(value="random"),
            ])  # fmt: skip
            ours_to_tensor = [T.ToTensor()] if module is v1 else [T.ToImage(), T.ToDtype("float32", True)]
            want = T.Compose([
                T.RandomResizedCrop((24, 24), interpolation="bicubic", pass_order=T._pass_order("PIL images")), T.RandomHorizontalFlip(),
                T.ColorJitter((0.5, 1.5)),
                T.RandAugment(3, fill=None), T.RandomRotation((-5.0, 5.0)), T.GaussianBlur(3), T.Grayscale(3), *ours_to_tensor,
                T.Normalize(*norm), T.RandomErasing(value="random"),
            ])  # fmt: skip
            self.assertEqual(T.translate(got), want.to_json())
        self.assertEqual(T.translate(v2.CutMix(num_classes=9, alpha=0.5), T.BATCH), T.CutMix(0.5, 9).to_json())
        choice = v2.RandomChoice([v2.CutMix(num_classes=9), v2.MixUp(num_classes=9)])
        want = [{"op": "CutMix", "alpha": 1.0, "num_classes": 9}, {"op": "MixUp", "alpha": 1.0, "num_classes": 9}]
        self.assertEqual(T.translate(choice, T.BATCH), [{"op": "RandomChoice", "transforms": want, "p": [0.5, 0.5]}])
        for t, name in ((v2.RandomApply([v2.Grayscale(3)]), "RandomApply"), (v1.Lambda(abs), "Lambda"), (v2.FiveCrop(3), "FiveCrop")):
            with self.assertRaisesRegex(penstock.UnsupportedError, rf"torchvision.transforms.*{name} cannot run"):
                T.translate(t)

    @unittest.skipIf(v2 is None, "no torchvision")
    def test_names_and_defaults_are_torchvisions(self):
        for name, ours in {**T._RECORD, "MixUp": T.MixUp, "CutMix": T.CutMix}.items():
            if name in ("PadTo", "LabelOptions", "FixedSizeCrop") or issubclass(ours, T.ArrayTransform):
                self.assertFalse(hasattr(v2, name), name)
                continue
            if name == "Normalize":  # whose mean and std may be those of the dataset
                continue
            theirs = inspect.signature(getattr(v2, name).__init__).parameters
            for f in dataclasses.fields(ours):
                if f.name == "pass_order" or (f.name in ("field", "labels") and ours in (T.MixUp, T.CutMix)):
                    continue
                want = theirs[f.name].default
                with self.subTest(f"{name}.{f.name}"):
                    if want is inspect.Parameter.empty:
                        self.assertIs(f.default, dataclasses.MISSING)
                    else:
                        self.assertEqual(T._plain(f.default), T._plain(want))
