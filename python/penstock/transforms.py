"""Transforms of images, by torchvision's names, which the feeding process applies.

::

    from penstock.transforms import CenterCrop, Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, ToTensor

    train = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(), Normalize(IMAGENET_MEAN, IMAGENET_STD)])
    penstock.DataLoader("photos", 256, shuffle=True, transforms=train)

Names, parameters, defaults and geometry follow torchvision.transforms.v2, and pixels follow
Pillow 13: ``pass_order="horizontal"`` makes Resize and RandomResizedCrop follow Pillow up to 12.
A ``torchvision.transforms.Compose``, v1 or v2, makes the same pixels as in torchvision, or is refused: see ``translate``.
Nothing runs in this process: a transform is a description, and its JSON is the same as in the Go package
transforms and of ``penstock preprocess --pipeline``. An operation of Go's that has no class here is
written as its JSON: ``{"op": "Sharpen", "sigma": 1.5}``.

MixUp, CutMix and LabelSmoothing work on batches: ``DataLoader(batch_transforms=...)``.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Union

import numpy as np

from ._base.dataclass import dataclass
from ._base.errors import UnsupportedError
from .functions import Function, Record

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "RGB",
    "AugMix",
    "AutoAugment",
    "Cast",
    "CenterCrop",
    "CenterSpatialCrop",
    "ClampBoundingBoxes",
    "ClampKeyPoints",
    "Clip",
    "ColorJitter",
    "Compose",
    "ConvertBoundingBoxFormat",
    "ConvertImageDtype",
    "CutMix",
    "ElasticTransform",
    "FillNaN",
    "FixedSizeCrop",
    "Function",
    "GaussianBlur",
    "Grayscale",
    "IsFinite",
    "LabelOptions",
    "LabelSmoothing",
    "LinearTransformation",
    "Log",
    "Log1p",
    "MixUp",
    "Normalize",
    "NormalizeTotal",
    "PILToTensor",
    "Pad",
    "PadTo",
    "PadToLargest",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomFlip",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomIoUCrop",
    "RandomNoise",
    "RandomPerspective",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRot90",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomSpatialCrop",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Record",
    "Resize",
    "SanitizeBoundingBoxes",
    "SanitizeKeyPoints",
    "Scale",
    "ScaleJitter",
    "SelectFeatures",
    "Standardize",
    "ToDense",
    "ToDtype",
    "ToImage",
    "ToTensor",
    "TrivialAugmentWide",
    "translate",
]  # fmt: skip

#: The statistics that models trained on ImageNet expect, for Normalize.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Size = Union[int, Sequence[int]]
Fill = Union[float, Sequence[float], None]
Range = Union[float, Sequence[float], None]


class Transform:
    """One operation of a pipeline: a dataclass with torchvision's parameters."""

    #: Parameters that have one possible value here, and why.
    _fixed: ClassVar[Mapping[str, tuple[Any, str]]] = {}

    def to_json(self) -> list[dict[str, Any]]:
        """Return the entries of the pipeline that carry out the transform."""
        entry: dict[str, Any] = {"op": type(self).__name__}
        for f in fields(self):  # type: ignore[arg-type]
            value = _plain(getattr(self, f.name))
            if f.name in self._fixed:
                only, why = self._fixed[f.name]
                if value not in (only, None):
                    raise UnsupportedError(f"{type(self).__name__}: {f.name}={value!r}: {why}")
            elif value is not None:
                entry[f.name] = value
        if "interpolation" in entry:
            entry["interpolation"] = _filter(type(self).__name__, entry["interpolation"])
        return self._entries(entry)

    def _entries(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        if "fill" in entry:
            entry["fill"] = _fill(type(self).__name__, entry["fill"])
        return [entry]


@dataclass(frozen=True)
class Compose(Transform):
    """Transforms, one after the other.

    A torchvision Compose has the same effect, with torchvision's pixels: see ``translate``.

    Args:
        transforms: A list of transforms: classes of this module, torchvision's classes of the same names, dicts of JSON, and
            functions of yours.

    Example:
        ``Compose([RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor()])``
    """

    transforms: Sequence[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.transforms, (list, tuple)):
            raise TypeError(f"Compose takes a list of transforms, and not {type(self.transforms).__name__}: Compose([...])")

    def to_json(self) -> list[dict[str, Any]]:
        return translate(self.transforms)


_ANTIALIAS = {"antialias": (True, "filters always widen when they reduce an image, as Pillow's do; leave antialias out")}


@dataclass(frozen=True)
class Resize(Transform):
    """Scale an image to a size.

    Args:
        size: A number for the shorter side, the other in proportion; or (height, width). None needs ``max_size``, which is then
            the longer side.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming", or a
            torchvision.transforms.InterpolationMode.
        max_size: The longer side is at most this; only with a number as ``size``.
        antialias: True only: filters widen when they reduce an image, as in Pillow. False is refused.
        pass_order: "horizontal" for the pixels of Pillow up to 12; None for the pixels of Pillow 13.

    Example:
        ``Resize(256)``
    """

    size: Size | None
    interpolation: str = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True
    pass_order: str | None = None
    _fixed: ClassVar = _ANTIALIAS

    def _entries(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        if entry.get("max_size") == 0:
            raise ValueError("Resize: max_size is 0; it must be positive, or None for no limit")
        if "size" not in entry:  # the longer side
            if "max_size" not in entry:
                raise ValueError("Resize: give size, or max_size for the longer side")
            entry.update(size=[entry.pop("max_size")], fit="longer")
        return [entry]


@dataclass(frozen=True)
class CenterCrop(Transform):
    """Cut out the middle of an image.

    Args:
        size: (height, width) in pixels; a number makes a square. A smaller image is filled with 0 at its sides.

    Example:
        ``CenterCrop(224)``
    """

    size: Size


@dataclass(frozen=True)
class Pad(Transform):
    """Add pixels at the sides of an image.

    Args:
        padding: Pixels: a number for all sides, (left and right, top and bottom), or (left, top, right, bottom).
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Example:
        ``Pad(4, padding_mode="reflect")``
    """

    padding: Size
    fill: Fill = 0
    padding_mode: str = "constant"


@dataclass(frozen=True)
class RandomCrop(Transform):
    """Cut out a random place of an image.

    Args:
        size: (height, width) in pixels; a number makes a square.
        padding: Pixels to add before, as in ``Pad``; None for none.
        pad_if_needed: Fill up images that are smaller than ``size``; otherwise they are errors.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.
        padding_mode: As in ``Pad``.

    Example:
        ``RandomCrop(32, padding=4)``
    """

    size: Size
    padding: Size | None = None
    pad_if_needed: bool = False
    fill: Fill = 0
    padding_mode: str = "constant"


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Cut out a random part of an image and scale it to a size.

    Args:
        size: (height, width) in pixels; a number makes a square.
        scale: Range of the part's area, as a share of the image.
        ratio: Range of the part's width divided by its height.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming", or a
            torchvision.transforms.InterpolationMode.
        antialias: True only: filters widen when they reduce an image, as in Pillow. False is refused.
        pass_order: "horizontal" for the pixels of Pillow up to 12; None for the pixels of Pillow 13.

    Example:
        ``RandomResizedCrop(224)``
    """

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3 / 4, 4 / 3)
    interpolation: str = "bilinear"
    antialias: bool | None = True
    pass_order: str | None = None
    _fixed: ClassVar = _ANTIALIAS


@dataclass(frozen=True)
class RandomZoomOut(Transform):
    """Place an image at random on a larger one, and its boxes, masks and keypoints with it.

    Args:
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.
        side_range: Range of how many times larger the sides become; both at least 1.
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomZoomOut(side_range=(1.0, 2.0))``
    """

    fill: Fill = 0
    side_range: Sequence[float] = (1.0, 4.0)
    p: float = 0.5


@dataclass(frozen=True)
class RandomIoUCrop(Transform):
    """Cut out a random part that overlaps boxes, as SSD's training does; boxes whose center is outside are removed.

    Args:
        min_scale: Smallest side of the part, as a share of the image.
        max_scale: Largest side of the part, as a share of the image.
        min_aspect_ratio: Smallest width divided by height.
        max_aspect_ratio: Largest width divided by height.
        sampler_options: Overlaps (IoU) to draw from; 1 or more keeps the image whole. None means torchvision's.
        trials: Attempts for each drawn overlap.

    Example:
        ``RandomIoUCrop()``
    """

    min_scale: float = 0.3
    max_scale: float = 1.0
    min_aspect_ratio: float = 0.5
    max_aspect_ratio: float = 2.0
    sampler_options: Sequence[float] | None = None
    trials: int = 40


@dataclass(frozen=True)
class ScaleJitter(Transform):
    """Scale an image by a random factor, with its proportions.

    Args:
        target_size: (width, height), as in torchvision, that a factor of 1 fits in.
        scale_range: Range of the factor.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming", or a
            torchvision.transforms.InterpolationMode.
        antialias: True only: filters widen when they reduce an image, as in Pillow. False is refused.
        pass_order: "horizontal" for the pixels of Pillow up to 12; None for the pixels of Pillow 13.

    Example:
        ``ScaleJitter((640, 480))``
    """

    target_size: Size
    scale_range: Sequence[float] = (0.1, 2.0)
    interpolation: str = "bilinear"
    antialias: bool | None = True
    pass_order: str | None = None
    _fixed: ClassVar = _ANTIALIAS


@dataclass(frozen=True)
class RandomShortestSize(Transform):
    """Scale the shorter side to one of several sizes.

    Args:
        min_size: Sizes to draw from: a number or several.
        max_size: The longer side is at most this; None for no limit.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming", or a
            torchvision.transforms.InterpolationMode.
        antialias: True only: filters widen when they reduce an image, as in Pillow. False is refused.
        pass_order: "horizontal" for the pixels of Pillow up to 12; None for the pixels of Pillow 13.

    Example:
        ``RandomShortestSize([480, 512, 544], max_size=800)``
    """

    min_size: Size
    max_size: int | None = None
    interpolation: str = "bilinear"
    antialias: bool | None = True
    pass_order: str | None = None
    _fixed: ClassVar = _ANTIALIAS


@dataclass(frozen=True)
class RandomResize(Transform):
    """Scale the shorter side to a random size.

    Args:
        min_size: Smallest size, included.
        max_size: Largest size, excluded.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming", or a
            torchvision.transforms.InterpolationMode.
        antialias: True only: filters widen when they reduce an image, as in Pillow. False is refused.
        pass_order: "horizontal" for the pixels of Pillow up to 12; None for the pixels of Pillow 13.

    Example:
        ``RandomResize(256, 480)``
    """

    min_size: int
    max_size: int
    interpolation: str = "bilinear"
    antialias: bool | None = True
    pass_order: str | None = None
    _fixed: ClassVar = _ANTIALIAS


@dataclass(frozen=True)
class ClampBoundingBoxes(Transform):
    """Cut boxes off at the image.

    Args:
        clamping_mode: "auto" only: boxes are not rotated here.

    Example:
        ``ClampBoundingBoxes()``
    """

    clamping_mode: str | None = "auto"
    _fixed: ClassVar = {"clamping_mode": ("auto", "boxes are not rotated here; leave clamping_mode out")}


@dataclass(frozen=True)
class SanitizeBoundingBoxes(Transform):
    """Remove boxes that are too small or outside the image, and the rows of all fields of the same ``instances``.

    Args:
        min_size: Smallest width and height to keep, in pixels.
        min_area: Smallest area to keep, in pixels.
        labels_getter: "default" only: rows go with the fields of the same ``instances``.

    Example:
        ``SanitizeBoundingBoxes(min_size=2)``
    """

    min_size: float = 1.0
    min_area: float = 1.0
    labels_getter: Any = "default"
    _fixed: ClassVar = {
        "labels_getter": ("default", "rows go with the fields of the same instances: penstock.Field(..., instances=...); leave labels_getter out")
    }


@dataclass(frozen=True)
class ConvertBoundingBoxFormat(Transform):
    """Boxes of batches are XYXY, in which all transforms move them; other formats are refused, with what to write.

    Args:
        format: "XYXY".

    Example:
        ``ConvertBoundingBoxFormat("XYXY")``
    """

    format: str


@dataclass(frozen=True)
class ClampKeyPoints(Transform):
    """Brings keypoints outside of the image to its edge. Keypoints that are not labeled do not change.

    Example:
        ``ClampKeyPoints()``
    """


@dataclass(frozen=True)
class SanitizeKeyPoints(Transform):
    """Removes keypoints outside of the image, or instances with one outside, and their rows in all fields of the same ``instances``.

    Args:
        labels_getter: None only: rows go with the fields of the same ``instances``.

    Example:
        ``SanitizeKeyPoints()``
    """

    labels_getter: Any = None
    _fixed: ClassVar = {
        "labels_getter": (None, "rows go with the fields of the same instances: penstock.Field(..., instances=...); leave labels_getter out")
    }


@dataclass(frozen=True)
class FixedSizeCrop(Transform):
    """A random part of that size; smaller images are padded at the right and at the bottom, as in torchvision's detection references.

    Args:
        size: (height, width) in pixels; a number makes a square.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Example:
        ``FixedSizeCrop(224)``
    """

    size: Size
    fill: Fill = 0
    padding_mode: str = "constant"


@dataclass(frozen=True)
class LabelOptions(Transform):
    """How masks, boxes and keypoints follow the transforms after it (docs/labels.md).

    torchvision has no such transform.

    Args:
        mask_fill: The number of masks where an image is filled.
        mask_resize: "nearest-exact" or "nearest"; the second is torchvision's arithmetic.
        keypoints: "corners" or "pixels"; the second is torchvision's arithmetic.

    Example:
        ``LabelOptions(mask_fill=255)``
    """

    mask_fill: int = 0
    mask_resize: str = "nearest-exact"
    keypoints: str = "corners"


@dataclass(frozen=True)
class RandomHorizontalFlip(Transform):
    """Mirror an image left to right.

    Args:
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomHorizontalFlip()``
    """

    p: float = 0.5


@dataclass(frozen=True)
class RandomVerticalFlip(Transform):
    """Mirror an image top to bottom.

    Args:
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomVerticalFlip(0.2)``
    """

    p: float = 0.5


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue at random, in random order.

    Args:
        brightness: A number x for factors from max(0, 1 - x) to 1 + x, or a range; None leaves it.
        contrast: As brightness.
        saturation: As brightness.
        hue: A number x of at most 0.5 for shifts from -x to x, or a range in that; None leaves it.

    Example:
        ``ColorJitter(0.4, 0.4, 0.4, 0.1)``
    """

    brightness: Range = None
    contrast: Range = None
    saturation: Range = None
    hue: Range = None


@dataclass(frozen=True)
class Grayscale(Transform):
    """Turn colors into gray.

    Args:
        num_output_channels: 1, or 3 equal channels.

    Example:
        ``Grayscale(3)``
    """

    num_output_channels: int = 1


@dataclass(frozen=True)
class RandomGrayscale(Transform):
    """Turn colors into gray at random; the number of channels stays.

    Args:
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomGrayscale()``
    """

    p: float = 0.1


@dataclass(frozen=True)
class RGB(Transform):
    """Make three channels of gray images; RGB images stay.

    It has no parameters.

    Example:
        ``RGB()``
    """


@dataclass(frozen=True)
class GaussianBlur(Transform):
    """Blur an image with a square kernel.

    Args:
        kernel_size: Side of the kernel, odd, at most 63. torchvision also takes two different sides, which are refused here.
        sigma: Standard deviation in pixels, or the range to draw it from.

    Example:
        ``GaussianBlur(5)``
    """

    kernel_size: Size
    sigma: Range = (0.1, 2.0)

    def _entries(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        sizes = entry["kernel_size"]
        if isinstance(sizes, list):
            if len(set(sizes)) != 1:
                raise UnsupportedError(f"GaussianBlur: kernel_size={sizes}: the kernel is a square here; give one number")
            entry["kernel_size"] = sizes[0]
        return [entry]


@dataclass(frozen=True)
class RandomRotation(Transform):
    """Rotate an image.

    Args:
        degrees: A number x for angles from -x to x, or a range.
        interpolation: "nearest", "bilinear" or "bicubic", or an InterpolationMode of torchvision.
        expand: Make the image large enough for all of the rotated one; False keeps its size.
        center: (x, y) in pixels to rotate about, from the upper left corner; None is the middle.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.

    Example:
        ``RandomRotation(10)``
    """

    degrees: Range
    interpolation: str = "nearest"
    expand: bool = False
    center: Sequence[float] | None = None
    fill: Fill = 0


@dataclass(frozen=True)
class RandomAffine(Transform):
    """Rotate, shift, scale and shear an image.

    Args:
        degrees: A number x for angles from -x to x, or a range.
        translate: Largest shifts, as shares of (width, height); None for none.
        scale: Range of the factor; None for none.
        shear: Degrees: a number, a range for x, or four numbers for x and y; None for none.
        interpolation: "nearest", "bilinear" or "bicubic", or an InterpolationMode of torchvision.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.
        center: (x, y) in pixels to rotate about, from the upper left corner; None is the middle.

    Example:
        ``RandomAffine(10, translate=(0.1, 0.1), scale=(0.9, 1.1))``
    """

    degrees: Range
    translate: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    shear: Range = None
    interpolation: str = "nearest"
    fill: Fill = 0
    center: Sequence[float] | None = None


@dataclass(frozen=True)
class RandomPerspective(Transform):
    """Move the corners of an image at random.

    Args:
        distortion_scale: How far, from 0 to 1 (half of a side).
        p: Probability for each image, from 0 to 1.
        interpolation: "nearest", "bilinear" or "bicubic", or an InterpolationMode of torchvision.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.

    Example:
        ``RandomPerspective(0.3)``
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: str = "bilinear"
    fill: Fill = 0


@dataclass(frozen=True)
class ElasticTransform(Transform):
    """Move pixels by a smooth random field.

    Args:
        alpha: Strength of the displacement, or a range to draw it from.
        sigma: Smoothness of the displacement in pixels, or a range to draw it from.
        interpolation: "nearest" or "bilinear", or an InterpolationMode of torchvision.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel.

    Example:
        ``ElasticTransform(50.0, 5.0)``
    """

    alpha: Range = 50.0
    sigma: Range = 5.0
    interpolation: str = "bilinear"
    fill: Fill = 0


@dataclass(frozen=True)
class RandomErasing(Transform):
    """Overwrite a random rectangle.

    Args:
        p: Probability for each image, from 0 to 1.
        scale: Range of the rectangle's area, as a share of the image.
        ratio: Range of the rectangle's width divided by its height.
        value: The new value, one for each channel, or "random" (or None) for noise.
        inplace: Without effect; batches are always penstock's own memory.

    Example:
        ``RandomErasing(value="random")``
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str | None = 0.0
    inplace: bool = False

    def _entries(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        del entry["inplace"]
        if entry.get("value") in (None, "random"):  # v2 keeps None for "random"
            entry.update(value=0, mode="pixel")
        return super()._entries(entry)


@dataclass(frozen=True)
class RandomInvert(Transform):
    """Invert the values.

    Args:
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomInvert()``
    """

    p: float = 0.5


@dataclass(frozen=True)
class RandomPosterize(Transform):
    """Keep the upper bits of each value.

    Args:
        bits: Bits to keep, from 1 to 8.
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomPosterize(4)``
    """

    bits: int
    p: float = 0.5


@dataclass(frozen=True)
class RandomSolarize(Transform):
    """Invert the values from a threshold on.

    Args:
        threshold: First value to invert, from 0 to 255.
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomSolarize(128)``
    """

    threshold: float
    p: float = 0.5


@dataclass(frozen=True)
class RandomAdjustSharpness(Transform):
    """Blur or sharpen an image.

    Args:
        sharpness_factor: Not negative: 0 blurs, 1 leaves the image, 2 doubles its sharpness.
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomAdjustSharpness(2)``
    """

    sharpness_factor: float
    p: float = 0.5


@dataclass(frozen=True)
class RandomAutocontrast(Transform):
    """Stretch the values of each channel to the full range.

    Args:
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomAutocontrast()``
    """

    p: float = 0.5


@dataclass(frozen=True)
class RandomEqualize(Transform):
    """Equalize the histogram of each channel.

    Args:
        p: Probability for each image, from 0 to 1.

    Example:
        ``RandomEqualize()``
    """

    p: float = 0.5


@dataclass(frozen=True)
class AutoAugment(Transform):
    """One of the learned pairs of operations of AutoAugment (Cubuk et al.

    2019).

    Args:
        policy: "imagenet", "cifar10" or "svhn".
        interpolation: "nearest", "bilinear" or "bicubic", or an InterpolationMode of torchvision.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel. None is 0.

    Example:
        ``AutoAugment("cifar10")``
    """

    policy: str = "imagenet"
    interpolation: str = "nearest"
    fill: Fill = None


@dataclass(frozen=True)
class RandAugment(Transform):
    """Random operations of one strength (Cubuk et al.

    2020).

    Args:
        num_ops: Operations, one after the other.
        magnitude: Strength, below ``num_magnitude_bins``.
        num_magnitude_bins: Number of strengths.
        interpolation: "nearest", "bilinear" or "bicubic", or an InterpolationMode of torchvision.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel. None is 0.

    Example:
        ``RandAugment(2, 9)``
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Fill = None


@dataclass(frozen=True)
class TrivialAugmentWide(Transform):
    """One random operation of a random strength (Müller and Hutter 2021).

    Args:
        num_magnitude_bins: Number of strengths.
        interpolation: "nearest", "bilinear" or "bicubic", or an InterpolationMode of torchvision.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel. None is 0.

    Example:
        ``TrivialAugmentWide()``
    """

    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Fill = None


@dataclass(frozen=True)
class AugMix(Transform):
    """A mixture of chains of operations with the image (Hendrycks et al.

    2020).

    Args:
        severity: Strength, from 1 to 10.
        mixture_width: Number of chains.
        chain_depth: Operations of a chain; -1 draws 1 to 3.
        alpha: Parameter of the Beta and Dirichlet distributions.
        all_ops: Include brightness, contrast, saturation and sharpness.
        interpolation: "nearest", "bilinear" or "bicubic", or an InterpolationMode of torchvision.
        fill: The value of new pixels, from 0 to 255: a number, or one for each channel. None is 0.

    Example:
        ``AugMix()``
    """

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: str = "bilinear"
    fill: Fill = None


@dataclass(frozen=True)
class ToImage(Transform):
    """Turn an image into (C, H, W), uint8 as it is.

    It has no parameters.

    Example:
        ``ToImage()``
    """


@dataclass(frozen=True)
class ToTensor(Transform):
    """Turn an image into (C, H, W), float32 from 0 to 1.

    It has no parameters.

    Example:
        ``ToTensor()``
    """


@dataclass(frozen=True)
class PILToTensor(Transform):
    """Turn an image into (C, H, W), uint8 as it is.

    It has no parameters.

    Example:
        ``PILToTensor()``
    """


@dataclass(frozen=True)
class ToDtype(Transform):
    """Convert the values.

    Args:
        dtype: A torch.dtype or its name: "uint8", "float16", "bfloat16" or "float32".
        scale: Map the range of integers to 0 to 1, and back; False keeps the numbers.

    Example:
        ``ToDtype("float32", scale=True)``
    """

    dtype: Any
    scale: bool = False


@dataclass(frozen=True)
class ConvertImageDtype(Transform):
    """Convert the values, and map the range of integers to 0 to 1: ``ToDtype`` with ``scale=True``.

    Args:
        dtype: As in ``ToDtype``.

    Example:
        ``ConvertImageDtype()``
    """

    dtype: Any = "float32"


@dataclass(frozen=True)
class Normalize(Transform):
    """Subtract the mean and divide by the standard deviation, by channel, after ToTensor or ToDtype.

    Args:
        mean: One number for each channel. None takes the dataset's, which ``penstock preprocess --normalize`` records;
            torchvision requires it.
        std: As mean.
        inplace: Without effect; batches are always penstock's own memory.

    Example:
        ``Normalize(IMAGENET_MEAN, IMAGENET_STD)``
    """

    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    inplace: bool = False

    def _entries(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        del entry["inplace"]
        return [entry]


#: The longest side of a matrix: as JSON, its numbers fit into a message to the feeding process.
_LARGEST_MATRIX = 192


@dataclass(frozen=True)
class LinearTransformation(Transform):
    """Multiply the flattened record, less a vector, by a matrix, such as for whitening.

    Args:
        transformation_matrix: Shape (D, D), with D values a record. D is at most 192; more is refused.
        mean_vector: Shape (D,).

    Example:
        ``LinearTransformation([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])``
    """

    transformation_matrix: Any
    mean_vector: Any

    def _entries(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        side = len(entry["mean_vector"])
        if side > _LARGEST_MATRIX:
            raise UnsupportedError(
                f"LinearTransformation: a matrix of {side} x {side} numbers is more than the feeding process takes, which is {_LARGEST_MATRIX} x "
                f"{_LARGEST_MATRIX}; give torchvision's, which runs in worker processes"
            )
        return [entry]


@dataclass(frozen=True)
class PadTo(Transform):
    """Cut records of variable length at ``length`` rows, or fill them up.

    It is for fields that are not images: ``transforms={"tokens": PadTo(512)}``. torchvision has no such transform.

    Args:
        length: Rows of each record after it.
        value: The number to fill up with.

    Example:
        ``PadTo(512)``
    """

    length: int
    value: float = 0


@dataclass(frozen=True)
class ArrayTransform(Transform):
    """One operation on the numbers of a field that is not of images."""

    def _entries(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        if isinstance(entry.get("axes"), (str, int)):  # one axis, without a list
            entry["axes"] = [entry["axes"]]
        return [entry]


@dataclass(frozen=True)
class Cast(ArrayTransform):
    """Another type. Integers lose the fraction and stop at their limits, NaN becomes 0 there; floats are rounded to nearest even.

    Args:
        dtype: "float16", "bfloat16", "float32", "int64", ...: a name, or a dtype of torch or NumPy.

    Example:
        ``Cast("bfloat16")``
    """

    dtype: Any

    def to_json(self) -> list[dict[str, Any]]:
        return [{"op": "Cast", "dtype": np.dtype(self.dtype).name if isinstance(self.dtype, (type, np.dtype)) else _plain(self.dtype)}]


@dataclass(frozen=True)
class Scale(ArrayTransform):
    """``x * factor + offset``.

    Args:
        factor: A number.
        offset: A number.

    Example:
        ``Scale(0.01, -273.15)``
    """

    factor: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Standardize(ArrayTransform):
    """``(x - mean) / std``. NaN stays NaN.

    Args:
        mean: A number, a list with one for each position of ``axis``, or an array that is broadcast to a record as in NumPy: one of
            shape (37, 1, 1) for each level, one of shape (721, 1440) for each point of a grid. ``Dataset.statistics`` computes them.
        std: As many.
        axis: The axis of a record that a list is of; -1 is the last.

    Example:
        ``Standardize(np.zeros((3, 1, 1)), np.ones((3, 1, 1)))``
    """

    mean: Any
    std: Any
    axis: int = -1

    def to_json(self) -> list[dict[str, Any]]:
        mean, std = np.asarray(self.mean, np.float64), np.asarray(self.std, np.float64)
        if mean.shape != std.shape:
            raise ValueError(f"Standardize: mean has shape {mean.shape} and std {std.shape}; they must be alike")
        shape = {"shape": list(mean.shape)} if mean.ndim > 1 else {"axis": self.axis}
        return [{"op": "Standardize", "mean": mean.ravel().tolist(), "std": std.ravel().tolist(), **shape}]


@dataclass(frozen=True)
class Clip(ArrayTransform):
    """Limit numbers to a range. NaN stays NaN.

    Args:
        min: The least number; None is no limit.
        max: The largest number; None is no limit.

    Example:
        ``Clip(0, 1)``
    """

    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Log(ArrayTransform):
    """``log(x + offset)``: minus infinity for 0, NaN below.

    Args:
        offset: A number.

    Example:
        ``Log(1e-6)``
    """

    offset: float = 0.0


@dataclass(frozen=True)
class Log1p(ArrayTransform):
    """``log(1 + x)``, exact also for small x.

    Example:
        ``Log1p()``
    """


@dataclass(frozen=True)
class NormalizeTotal(ArrayTransform):
    """Scale the values of a record so that their sum is ``target_sum``, as scanpy.pp.normalize_total. A record of zeros stays as it is.

    Args:
        target_sum: The sum.

    Example:
        ``NormalizeTotal(1e4)``
    """

    target_sum: float = 1e4


@dataclass(frozen=True)
class SelectFeatures(ArrayTransform):
    """Keep some columns of sparse rows, or of records of one axis, in the order in which they are named.

    Args:
        features: Their names: ``Field.features`` has the names of a field.
        columns: Their numbers, in place of names.

    Example:
        ``SelectFeatures(["CD3E", "MS4A1", "LYZ"])``
    """

    features: Sequence[str] | None = None
    columns: Sequence[int] | None = None


@dataclass(frozen=True)
class ToDense(ArrayTransform):
    """Records with a value for each column of sparse rows.

    Example:
        ``ToDense()``
    """


@dataclass(frozen=True)
class FillNaN(ArrayTransform):
    """Replace each NaN. To know which values were NaN, use ``IsFinite`` in another field of the same array.

    Args:
        value: The number that takes their place.

    Example:
        ``FillNaN(0)``
    """

    value: float = 0.0


@dataclass(frozen=True)
class IsFinite(ArrayTransform):
    """Whether numbers are neither NaN nor infinite, as bool.

    Example:
        ``IsFinite()``
    """


@dataclass(frozen=True)
class RandomFlip(ArrayTransform):
    """Reverse each of some axes with a probability. Fields of a record with the same flips, turns and crops, in the same order, are moved alike.

    Args:
        axes: Names, or numbers of axes of a record: -1 is the last. An axis that a field does not have by name is left out.
        p: The probability for each axis.

    Example:
        ``RandomFlip(["lat", "lon"])``
    """

    axes: Any
    p: float = 0.5


@dataclass(frozen=True)
class RandomRot90(ArrayTransform):
    """Turn by 90 degrees or a multiple, from the first of two axes towards the second, as ``numpy.rot90`` does.

    Args:
        axes: Two axes of one length, named as in ``RandomFlip``.
        p: The probability of a turn.
        max_k: Turns are 1 to ``max_k`` times 90 degrees, each as likely.

    Example:
        ``RandomRot90((-2, -1))``
    """

    axes: Any = (-2, -1)
    p: float = 0.5
    max_k: int = 3


@dataclass(frozen=True)
class RandomSpatialCrop(ArrayTransform):
    """Take a part of a size at a random place.

    Args:
        size: The elements along each of ``axes``.
        axes: As many axes, named as in ``RandomFlip``; None means the last axes.

    Example:
        ``RandomSpatialCrop((64, 64, 64))``
    """

    size: Any
    axes: Any = None


@dataclass(frozen=True)
class CenterSpatialCrop(RandomSpatialCrop):
    """Take the part of a size in the middle, which begins at ``(n - size) // 2``.

    Args:
        size: The elements along each of ``axes``.
        axes: As many axes, named as in ``RandomFlip``; None means the last axes.

    Example:
        ``CenterSpatialCrop((64, 64))``
    """


@dataclass(frozen=True)
class RandomNoise(ArrayTransform):
    """Add normally distributed numbers.

    Args:
        std: Their standard deviation.
        mean: Their mean.

    Example:
        ``RandomNoise(0.01)``
    """

    std: float
    mean: float = 0.0


class BatchTransform(Transform):
    """An operation on a batch: its float32 images, and its labels.

    ``field`` and ``labels`` name the two fields; None means the only such field. Labels become float32 of shape (num_classes,):
    the share of each class.
    """


@dataclass(frozen=True)
class MixUp(BatchTransform):
    """Blend each record with the record before it in the batch (Zhang et al.

    2017), and its labels. Each rank mixes the records of its own batch, by numbers of its own: the result depends on the number of ranks.

    Args:
        alpha: Parameter of the Beta distribution.
        num_classes: Number of classes; None takes the class names of the dataset.
        field: The field of float32 images; None is the only one.
        labels: The field of labels; None is the only one. It becomes float32 (num_classes,).

    Example:
        ``MixUp(0.2, num_classes=10)``
    """

    alpha: float = 1.0
    num_classes: int | None = None
    field: str | None = None
    labels: str | None = None


@dataclass(frozen=True)
class CutMix(BatchTransform):
    """Replace a rectangle by the same rectangle of the record before it in the batch (Yun et al.

    2019), and mix the labels by area. Each rank mixes the records of its own batch, as MixUp does.

    Args:
        alpha: Parameter of the Beta distribution.
        num_classes: Number of classes; None takes the class names of the dataset.
        field: The field of float32 images; None is the only one.
        labels: The field of labels; None is the only one. It becomes float32 (num_classes,).

    Example:
        ``CutMix(num_classes=10)``
    """

    alpha: float = 1.0
    num_classes: int | None = None
    field: str | None = None
    labels: str | None = None


@dataclass(frozen=True)
class LabelSmoothing(BatchTransform):
    """Make labels ``(1 - smoothing) * y + smoothing / num_classes``, as CrossEntropyLoss's ``label_smoothing`` does.

    Args:
        smoothing: Share that is spread over all classes, from 0 to 1.
        num_classes: Number of classes; None takes the class names of the dataset.
        labels: The field of labels; None is the only one. It becomes float32 (num_classes,).

    Example:
        ``LabelSmoothing(0.1, num_classes=10)``
    """

    smoothing: float = 0.1
    num_classes: int | None = None
    labels: str | None = None


@dataclass(frozen=True)
class PadToLargest(BatchTransform):
    """Pads images of several sizes at the right and at the bottom to the largest of their batch, and the masks on them.

    It is for transforms that do not make one size: RandomShortestSize, ScaleJitter, Resize to a shorter side. A field
    ``images_sizes`` has height and width of each image before. Boxes and keypoints stay where they are.

    Args:
        multiple_of: Height and width of a batch are multiples of it, such as 32 for feature pyramids.
        fill: The value of images there, after all transforms.
        mask_fill: That of masks: 255 is the class that losses ignore. Masks of instances have 0.
        field: The images; None means all that have transforms.

    Example:
        ``PadToLargest(multiple_of=32)``
    """

    multiple_of: int = 1
    fill: float = 0
    mask_fill: int = 255
    field: str | None = None

    def to_json(self) -> list[dict[str, Any]]:
        return [{"op": "PadToLargest", **{name: v for name, v in vars(self).items() if v is not None}}]


@dataclass(frozen=True)
class RandomChoice(BatchTransform):
    """One of several batch transforms, drawn for each batch.

    Args:
        transforms: A list of batch transforms of this module.
        p: Their weights, as many as transforms; None makes them equal.

    Example:
        ``RandomChoice([MixUp(num_classes=10), CutMix(num_classes=10)])``
    """

    transforms: Sequence[Any]
    p: Sequence[float] | None = None

    def to_json(self) -> list[dict[str, Any]]:
        choices = [_one(self, t) for t in self.transforms]
        p = [1.0] * len(choices) if self.p is None else [float(x) for x in self.p]
        if len(p) != len(choices) or not choices:
            raise ValueError(f"RandomChoice: {len(p)} probabilities of {len(choices)} transforms")
        return [{"op": "RandomChoice", "transforms": choices, "p": p}]


def _one(choice: RandomChoice, t: Any) -> dict[str, Any]:
    entries = translate(t, BATCH)
    if len(entries) != 1:
        raise UnsupportedError(f"RandomChoice: {t!r} is {len(entries)} operations; each choice is one")
    return entries[0]


_NO_OPERATION = {"Identity", "ToPureTensor"}
BATCH = {c.__name__: c for c in (MixUp, CutMix, LabelSmoothing, PadToLargest, RandomChoice)}
_RECORD: dict[str, type[Transform]] = {
    c.__name__: c
    for c in globals().values()
    if isinstance(c, type) and issubclass(c, Transform) and not issubclass(c, BatchTransform) and c not in (Transform, ArrayTransform, Compose)
}
#: Kinds of images between the transforms of a pipeline of torchvision, each with the types that are keys of its dicts.
_KINDS: dict[str, tuple[str, ...]] = {
    "PIL images": ("PIL.Image.Image",),
    "Image": ("torchvision.tv_tensors._image.Image",),
    "Tensor": ("torch.Tensor",),
    "tensors": ("torchvision.tv_tensors._image.Image", "torch.Tensor"),
    "images": ("PIL.Image.Image", "torchvision.tv_tensors._image.Image", "torch.Tensor"),
}
_TO_KIND = {"ToImage": "Image", "PILToTensor": "Tensor", "ToTensor": "Tensor"}
_OF_TENSORS = {"ToDtype", "ConvertImageDtype", "Normalize", "LinearTransformation", "RandomErasing"}
#: Operations that the engine does on floats, too, and operations that do not change images.
_OF_FLOATS = (
    {"CenterCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "Normalize", "LinearTransformation", "RandomErasing"} | _NO_OPERATION | set(_TO_KIND)
)


def translate(t: Any, known: Mapping[str, type[Transform]] = _RECORD) -> list[dict[str, Any]]:
    """Return the JSON of a transform: of this module, of torchvision (v1 or v2), or JSON already.

    A Compose, an nn.Sequential, a list or a tuple is its transforms one after the other. Those of
    torchvision change PIL images up to ToImage, PILToTensor or ToTensor, and tensors after it. The
    results are torchvision's, but for these: GaussianBlur, and RandomAffine, RandomPerspective and
    ElasticTransform with a filter, differ by one level in a few values; of tensors, Resize and
    RandomResizedCrop by up to two levels, contrast by two for factors up to 3, Grayscale, saturation,
    sharpness and autocontrast by one; float16 and bfloat16 are rounded once, at the end. AutoAugment,
    RandAugment and TrivialAugmentWide of tensors, and AugMix, have Pillow's pixels, and all of them
    v1's thresholds of Solarize. A transform that would differ by more is refused.

    Raise UnsupportedError, which names the operation and says what to do, for a transform that is refused or does not exist
    here.
    """
    steps = [step for step, _ in steps_of(t)]
    kinds = Kinds(steps, known)
    entries = kinds.first() + _of_masks(steps)
    for step in steps:
        entries += kinds.entries(step)
        kinds.after(step)
    return entries


def _of_masks(steps: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the JSON of the value that fills masks where images are filled, if a step sets it: fill={"mask": 255}, or by
    torchvision's types.
    """
    fills = set()
    for step in steps:
        fill = getattr(step, "fill", None)
        if isinstance(fill, Mapping):
            fills |= {0 if v is None else v for k, v in fill.items() if k == "mask" or getattr(k, "__name__", "") == "Mask"}
    if len(fills) > 1 or any(isinstance(v, bool) or v != int(v) for v in fills):
        raise UnsupportedError(f"fill: masks have {sorted(fills)}; give all transforms one whole number for masks")
    return [] if fills <= {0} else LabelOptions(mask_fill=int(fills.pop())).to_json()


class Kinds:
    """The kind of images at each step of a pipeline of torchvision: the next step changes ``kind``."""

    def __init__(self, steps: Sequence[Any], known: Mapping[str, type[Transform]] | None = None) -> None:
        names = {_name(step) for step in steps}
        self._known = _RECORD if known is None else known
        self._tensors = False
        self._floats = False  # after a step that converts bytes to floats
        if not _TO_KIND.keys().isdisjoint(names):
            self.kind = "PIL images"
        elif _OF_TENSORS.isdisjoint(names):
            self.kind = "images"
        else:
            self.kind = "tensors"
            self._tensors = any(type(step).__module__.startswith("torchvision.transforms") for step in steps)

    def first(self) -> list[dict[str, Any]]:
        """Return the JSON of the transforms that come before all steps: tensors are (C, H, W)."""
        return [{"op": "ToImage"}] if self._tensors else []

    def entries(self, step: Any) -> list[dict[str, Any]]:
        """Return the JSON of the next step."""
        if self._floats and type(step).__module__.startswith("torchvision.transforms") and not _works_on_floats(step):
            raise UnsupportedError(f"{_name(step)} works on uint8 images, and a step before it makes floats; put it before that step")
        entries = _entries(step, self._known, self.kind)
        self._floats = self._floats or any(map(_makes_floats, entries))
        return entries

    def after(self, step: Any) -> str:
        """Go on to the kind after a step, and return it."""
        name = _name(step)
        if name == "ToPureTensor" and self.kind != "PIL images":
            self.kind = "Tensor"
        self.kind = _TO_KIND.get(name, self.kind)
        return self.kind


def _makes_floats(entry: Mapping[str, Any]) -> bool:
    op = entry["op"]
    return op == "ToTensor" or (op in ("ToDtype", "ConvertImageDtype") and entry.get("dtype") != "uint8")


def _works_on_floats(step: Any) -> bool:
    """Return whether the engine has an operation for images of floats, too: moving, erasing and normalizing pixels."""
    if _name(step) == "RandomCrop":
        return step.padding is None and not step.pad_if_needed
    return _name(step) in _OF_FLOATS


def _name(step: Any) -> str:
    """Return the name of an operation."""
    return str(step["op"]) if isinstance(step, Mapping) and "op" in step else type(step).__name__


def steps_of(t: Any, inside: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield the transforms of which a transform is made, and whether each is in a Compose of torchvision."""
    name, module = type(t).__name__, type(t).__module__
    if name == "Compose" and (isinstance(t, Compose) or module.startswith("torchvision.transforms")):
        inside = inside or not isinstance(t, Compose)
        t = t.transforms
    elif not isinstance(t, (list, tuple)) and not (name == "Sequential" and module.startswith("torch.nn")):
        yield t, inside
        return
    for each in t:
        yield from steps_of(each, inside)


def _entries(t: Any, known: Mapping[str, type[Transform]], kind: str) -> list[dict[str, Any]]:
    """Return the JSON of a transform, which is of that kind of images if it is torchvision's."""
    name, module = type(t).__name__, type(t).__module__
    if isinstance(t, Transform):
        if name not in known:
            other = "transforms=" if known is BATCH else "batch_transforms="
            raise UnsupportedError(f"{name} works on {'single records' if name in _RECORD else 'batches'}: give it to {other}")
        return t.to_json()
    if isinstance(t, Mapping):
        return [dict(t)]
    if module.startswith("torchvision.transforms"):
        if name in _NO_OPERATION:
            return []
        if name in known:
            return _of_torchvision(known[name], t, kind).to_json()
    if isinstance(t, type):
        raise UnsupportedError(f"{t.__name__} is a class; write {t.__name__}(...)")
    if known is _RECORD and not module.startswith("torchvision."):
        raise UnsupportedError(f"{t!r:.60} is neither a transform nor a function")
    there = ", ".join(sorted(known))
    raise UnsupportedError(
        f"{module}.{name} cannot run in the feeding process, which has {there}; leave it out here, and apply it "
        "in Python to the batches that the DataLoader yields"
    )


def _of_torchvision(c: type[Transform], t: Any, kind: str) -> Transform:
    """Return a transform of torchvision, which changes that kind of images, as a transform of this module."""
    values, name = _parameters(c, t), c.__name__
    if name in _OF_TENSORS and kind == "PIL images":
        raise UnsupportedError(f"{name} is for tensors, and here the images are PIL images: move it after ToImage, PILToTensor or ToTensor")
    v2 = type(t).__module__.startswith("torchvision.transforms.v2")
    if c is RandomCrop and values["padding"] is not None and v2:
        left, right, top, bottom = values["padding"]  # v2 keeps the values that torch.nn.functional.pad takes
        values["padding"] = [left, top, right, bottom]
    if "fill" in values:
        values["fill"] = _of_kind(c, "fill", values["fill"], kind)
    if c is ToDtype:
        values["dtype"] = _of_kind(c, "dtype", values["dtype"], kind) or "uint8"
    if "interpolation" in values:
        values["interpolation"] = _interpolation(c, values, kind)
    if c in _RESIZES:
        values["pass_order"] = _pass_order(kind)
    tensor = kind not in ("PIL images", "images")
    if tensor and (c is RandomPerspective or (c is ColorJitter and _plain(values["hue"]) not in (None, [0.0, 0.0]))):
        raise UnsupportedError(f"{name}{': hue' if c is ColorJitter else ''} {_BEFORE}")
    if tensor and c in (RandomRotation, RandomAffine) and values["degrees"][0] == values["degrees"][1] != 0:
        raise UnsupportedError(f"{name}: a fixed angle {_BEFORE}")  # pixels between two are rounded to either
    if tensor and c is RandomRotation and values["expand"]:
        raise UnsupportedError(f"{name}: expand {_BEFORE}")  # of another size by a pixel
    if tensor and c in (RandomRotation, RandomAffine) and values["center"] is not None:
        raise UnsupportedError(f"{name}: center {_BEFORE}")
    if tensor and c is Grayscale and values["num_output_channels"] == 3 and not v2:
        return RandomGrayscale(1.0)  # v1 leaves a tensor of one channel as it is
    return c(**values)


def _pass_order(kind: str) -> str:
    """Return the order in which torchvision resizes such images, by the Pillow that is installed."""
    try:
        from PIL import __version__ as version
    except ImportError:
        return "auto"
    newest = int(version.partition(".")[0]) >= 13
    return "auto" if newest and kind in ("PIL images", "images") else "horizontal"


_BEFORE = (
    "makes other pixels of a tensor than of a PIL image, which are those that the feeding process has; "
    "move it before ToImage, PILToTensor or ToTensor, so that it changes PIL images in torchvision too"
)


def _parameters(c: type[Transform], t: Any) -> dict[str, Any]:
    """Return the parameters of a transform of torchvision, each of which c must have."""
    values, known = {}, {f.name for f in fields(c)}  # type: ignore[arg-type]
    for p in inspect.signature(type(t).__init__).parameters.values():
        if p.name == "self" or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if p.name == "labels_getter":
            if getattr(t, "labels_getter", "") is not None and "default" not in getattr(t._labels_getter, "__name__", ""):
                raise UnsupportedError(f"{c.__name__}: labels_getter: batches are fields here; write penstock.transforms.{c.__name__}(labels=...)")
            continue
        if not hasattr(t, p.name):
            raise UnsupportedError(f"{c.__name__}: this torchvision does not say what {p.name} is; take penstock.transforms.{c.__name__}")
        value = getattr(t, p.name)
        if p.name in known:
            values[p.name] = value
        elif value is not p.default and value != p.default:
            raise UnsupportedError(f"{c.__name__}: {p.name}={value!r}: penstock has no such parameter; leave it out")
    return values


def _of_kind(c: type[Transform], name: str, value: Any, kind: str) -> Any:
    """Return what a parameter is for images of a kind, where v2 may have a dict by types of inputs."""
    if not isinstance(value, Mapping):
        return value
    named = {k if isinstance(k, str) else f"{k.__module__}.{k.__qualname__}": v for k, v in value.items()}
    types = _KINDS[kind] if kind != "PIL images" else ("PIL.Image.Image", "others")  # images of files have types of their own
    given = [named[k] if k in named else named["others"] for k in types if k in named or "others" in named]
    if len(given) < len(types) or any(v != given[0] for v in given):
        raise UnsupportedError(f"{c.__name__}: {name}={value} has not one value for {kind}; give one {name}, and no dict")
    return given[0]


def _interpolation(c: type[Transform], values: Mapping[str, Any], kind: str) -> str:
    """Return the filter of a transform of torchvision, and refuse one whose pixels are not Pillow's."""
    name, given = c.__name__, _plain(values["interpolation"])
    resizes, tensor = c in _RESIZES, kind not in ("PIL images", "images")
    if resizes and kind == "images" and given in ("nearest", 0):
        raise UnsupportedError(
            f"{name}: interpolation=NEAREST takes other pixels of a tensor than of a PIL image, which are those that the "
            "feeding process has; write InterpolationMode.NEAREST_EXACT, or put ToImage after it"
        )
    exact = _filter(name, given)
    if tensor and exact not in _TENSOR_FILTERS.get(name, ("nearest",)):
        raise UnsupportedError(f"{name}: interpolation={exact} {_BEFORE}")
    if tensor and resizes and values["antialias"] is not True:
        raise UnsupportedError(f"{name}: antialias={values['antialias']}: filters always widen when they reduce an image; write antialias=True")
    return exact


_RESIZES = (Resize, RandomResizedCrop, ScaleJitter, RandomShortestSize, RandomResize)

#: Filters that take the same pixels of a tensor, or nearly, as of a PIL image; of transforms that are not here, nearest.
_TENSOR_FILTERS = {
    **{c.__name__: ("bilinear",) for c in _RESIZES},
    "ElasticTransform": ("nearest", "bilinear"),
    "AugMix": ("nearest", "bilinear"),
}

#: Filters by Pillow's numbers, which torchvision takes too.
_PILLOW = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")


def _filter(op: str, given: Any) -> str:
    """Return the name of a filter of Pillow."""
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(_PILLOW):
        return _PILLOW[given]
    name = "nearest" if given == "nearest-exact" else given
    if name not in _PILLOW:
        raise UnsupportedError(f"{op}: interpolation={given!r}: there are {', '.join(_PILLOW)}")
    return name


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "tolist"):  # of NumPy and torch
        return value.tolist()
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Iterable):
        return [_plain(v) for v in value]
    return str(value).rpartition(".")[2]  # torch.float32


def _fill(op: str, fill: Any) -> list[int]:
    """Return a color as the pipeline has it: whole numbers, as pixels are."""
    if isinstance(fill, dict):
        values = [v for k, v in fill.items() if k != "mask"] or [0]
        if not values or any(v != values[0] for v in values):
            raise UnsupportedError(f"{op}: fill={fill}: give one color")
        fill = 0 if values[0] is None else values[0]
    numbers = fill if isinstance(fill, list) else [fill]
    if any(n != int(n) for n in numbers):
        raise UnsupportedError(f"{op}: fill={fill}: images are bytes here; give whole numbers from 0 to 255")
    return [int(n) for n in numbers]
