"""Fields: the parts of a dataset's record.

A Field is the type, the shape and the meaning of one part, such as images or their labels. ``from_json`` makes it of
an entry of a manifest or of a message, which a stranger may have written: all of it is checked there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import bfloat16
from .._base.dataclass import dataclass
from .._base.errors import CorruptError
from .._base.expected import checked
from .._base.urls import line

#: The NumPy type in which each element type is stored in files: bfloat16 as its 16 bits. See numpy_type.
STORAGE: dict[str, str] = {
    "bool": "|b1", "uint8": "|u1", "int8": "|i1",
    "uint16": "<u2", "int16": "<i2", "uint32": "<u4", "int32": "<i4", "uint64": "<u8", "int64": "<i8",
    "float16": "<f2", "bfloat16": "<u2", "float32": "<f4", "float64": "<f8",
}  # fmt: skip

#: The content of a field that says what the source called each record.
SOURCE_NAME = "source-name"

#: The content of a field of rows that are mostly zero.
SPARSE = "sparse"

#: The content of a field of any number of image files, each after its length: see ``penstock.Ragged``.
IMAGES = "images"

#: The contents of fields whose rows are bytes, and not numbers.
_BYTES = ("utf-8", "image", IMAGES, SOURCE_NAME)

#: The most values of a record, or of a row: none with more could be mapped.
_MAX_NAME = 4096  # of an array in groups
_MAX_VALUES = 1 << 44


@dataclass(frozen=True)
class Normalization:
    """``(x/scale - mean[c]) / std[c]`` for channel c of an image.

    Args:
        applied: The stored values went through it already; otherwise the reader has to do it: see ``Field.float32``.
        scale: The divisor of stored values, 255 for bytes.
        mean: One number for each channel.
        std: One number for each channel.
    """

    applied: bool
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]


def _short(value: Any) -> str:
    """Return a value for people: of a long tuple the first ones, and how many there are."""
    most = 8
    return repr(value) if not isinstance(value, tuple) or len(value) <= most else f"({', '.join(map(repr, value[:most]))}, ... {len(value)} in all)"


@dataclass(frozen=True)
class Field:
    """One field of a dataset.

    Args:
        name: Its name, the key in a record.
        dtype: The type of its elements, such as "uint8", "int64", "float32" or "bfloat16".
        shape: Shape of one record or, if ``ragged``, of one of its rows.
        layout: "CHW" or "HWC" for images, else "".
        classes: Names of the values 0, 1, ... of a label.
        normalization: The mean and std of an image field, or None.
        ragged: A record has any number of rows.
        content: "utf-8" for text, "image" for encoded image files, "images" for any number of image files, "source-name" for
            the record's name in the source, all of them ragged uint8; "mask", "boxes" or "keypoints", see below; "sparse" for
            rows that are mostly zero.
        image: The field of images that it lies on; "" if there is one only.
        instances: Fields with the same name here have the same number of rows in each record.
        dims: The names of the axes, if they are known: the axis of the records, and then the axes of ``shape``; "" for an axis without a name.
        width: The number of columns of a "sparse" field; 0 for others. Its rows have shape (2,): a column and the value in it.
        features: The names of these columns, or of the values of a record of one axis, if they are known.

    Example:
        ``Field("tokens", "int32", ragged=True)``

    Fields that lie on an image have a ``content``, too, and move with its pixels: "mask" for integers of shape (h, w),
    "boxes" for float32 rows of left, top, right and bottom in pixels, "keypoints" for float32 rows of x, y and
    visibility. ``image`` is the field that they lie on, which may be left out where there is one of images. Fields of
    the same ``instances``, such as boxes and their labels, have one number of rows in each record. Masks of instances
    that are image files have the masks of a record one below the other, each as high as the image.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    layout: str = ""
    classes: tuple[str, ...] = ()
    normalization: Normalization | None = None
    ragged: bool = False
    content: str = ""
    image: str = ""
    instances: str = ""
    dims: tuple[str, ...] = ()
    width: int = 0
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name is {self.name!r:.60}; it must be a str")
        if self.dtype not in STORAGE:
            import difflib

            near = difflib.get_close_matches(str(self.dtype), STORAGE, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"field {self.name!r}: dtype is {self.dtype!r:.60}; it must be one of {', '.join(STORAGE)}{hint}")
        if self.dims and (self.ragged or len(self.dims) != len(self.shape) + 1):
            raise ValueError(
                f"field {self.name!r}: dims are {self.dims}; they must name the axis of records and the {len(self.shape)} axes of shape {self.shape}"
            )

    def __repr__(self) -> str:
        """Return the arguments that differ from their defaults, and of many names the first ones."""
        given = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default)
        return f"Field({', '.join(f'{name}={_short(value)}' for name, value in given)})"

    @property
    def numpy(self) -> np.dtype:
        """The NumPy type of values; for bfloat16 it is ``penstock.bfloat16.dtype()``."""
        return numpy_type(self.dtype)

    @property
    def storage(self) -> np.dtype:
        """The NumPy type of the bytes on disk; uint16 for bfloat16."""
        return np.dtype(STORAGE[self.dtype])

    @property
    def row_bytes(self) -> int:
        """Bytes of one record, or of one row if ragged."""
        return self.storage.itemsize * int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_image(self) -> bool:
        """Whether records are images of uint8 values, which can be normalized when they are read."""
        return self.layout != "" and self.dtype == "uint8" and len(self.shape) == 3 and not self.ragged

    @property
    def is_bytes(self) -> bool:
        """Whether records are bytes that are not numbers: text, or an image file, which a mask can be as well."""
        return self.content in _BYTES or (self.content == "mask" and self.ragged and self.dtype == "uint8" and self.shape == ())

    @property
    def pending(self) -> bool:
        """Whether there is a normalization that the reader has to apply."""
        return self.normalization is not None and not self.normalization.applied

    def float32(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return stored values as float32, in a new array or in out.

        bfloat16 is decoded. Bytes that the dataset has a normalization for, not applied yet,
        are normalized: ``values`` is then one record or a batch of them. The results are the results of torchvision and of
        penstock's own transforms, bit for bit.
        """
        if out is None:
            out = np.empty(np.shape(values), np.float32)
        n = self.normalization
        if n is None or n.applied:
            out[...] = bfloat16.to_float32(values) if bfloat16.is_bfloat16(values.dtype) else values
            return out
        np.divide(values, np.float32(n.scale), out=out, dtype=np.float32)
        return standardized(out, n.mean, n.std, self.layout)


def numpy_type(dtype: str) -> np.dtype:
    """Return the NumPy type of values of an element type."""
    return bfloat16.dtype() if dtype == "bfloat16" else np.dtype(STORAGE[dtype])


def listed(words: Iterable[str], most: int = 24) -> str:
    """Return the first words with commas between them, and how many more there are."""
    words = list(words)
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def shown(fields: Iterable[Field]) -> str:
    """Return names, types and shapes of fields for people."""
    return listed(f"{line(f.name)} {f.dtype}{list(f.shape)}{'*' if f.ragged else ''}" for f in fields)


def standardized(x: np.ndarray, mean: Iterable[float], std: Iterable[float], layout: str) -> np.ndarray:
    """Subtract the mean of each channel from an image of float32, and divide by its std, in place."""
    shape = (-1, 1, 1) if layout == "CHW" else (-1,)
    x -= np.array(mean, np.float32).reshape(shape)
    x /= np.array(std, np.float32).reshape(shape)
    return x


def chosen(fields: Iterable[str] | None, option: str = "fields") -> tuple[str, ...] | None:
    """Return the names of the fields that were asked for; None is all."""
    if isinstance(fields, str):
        raise TypeError(f"{option} is {fields!r}; it is a list of names: {fields.split(',')}")
    return None if fields is None else tuple(fields)


#: An entry of a manifest.
FIELD = {
    "name": str, "dtype": str, "storage": str, "shape": [range(1, _MAX_VALUES + 1)], "layout?": str,
    "content?": str, "image?": str, "instances?": str, "classes?": [str], "dims?": [str], "ragged?": bool,
    "width?": range(1, 1 << 40), "features?": [str],
    "normalization?": {"applied": bool, "scale": float, "mean": [float], "std": [float]},
}  # fmt: skip


def from_json(entry: Any) -> Field:
    """Return the field that an entry of a manifest, or of a feeding process, describes."""
    checked(entry, FIELD, "a field")
    name, dtype = entry["name"], entry["dtype"]
    if not 0 < len(name) <= _MAX_NAME or {"", ".", ".."} & set(name.split("/")):
        raise CorruptError(f"field {name!r:.80}: a name is text of 1 to {_MAX_NAME} characters, with parts that name an array and its groups")
    if STORAGE.get(dtype) != entry["storage"]:
        raise CorruptError(f"field {name!r}: unknown dtype {dtype[:80]!r} with storage {entry['storage'][:80]!r}")
    shape = shape_of(entry["shape"], name)
    classes, dims = entry.get("classes") or [], entry.get("dims") or []
    words = {key: entry.get(key) or "" for key in ("layout", "content", "image", "instances")}
    ragged = bool(entry.get("ragged"))
    if dims and (ragged or len(dims) != len(shape) + 1):
        raise CorruptError(f"field {name!r}: dims {dims} do not name the axis of records and the axes of shape {shape}")
    if (words["content"] == SPARSE) != bool(entry.get("width")) or (words["content"] == SPARSE and not (ragged and shape == (2,))):
        raise CorruptError(f"field {name!r}: {words['content']} rows of shape {shape} and width {entry.get('width')}")
    return Field(
        name=name,
        dtype=dtype,
        shape=shape,
        classes=tuple(classes),
        normalization=normalization_of(entry.get("normalization")),
        ragged=ragged,
        dims=tuple(dims),
        width=entry.get("width") or 0,
        features=tuple(entry.get("features") or []),
        **words,
    )


def shape_of(shape: Any, name: str) -> tuple[int, ...]:
    """Return the shape in an entry or a message; refuse a value that is no shape."""
    if not isinstance(shape, list) or len(shape) > 7 or not all(type(n) is int and n > 0 for n in shape) or math.prod(shape) > _MAX_VALUES:
        raise CorruptError(f"field {name!r}: {shape!r:.200} is no shape")
    return tuple(shape)


def normalization_of(entry: Any) -> Normalization | None:
    """Return the normalization that an entry of a manifest describes; None for none."""
    if entry is None:
        return None
    checked(entry, FIELD["normalization?"], "normalization")
    mean, std = (tuple(map(float, entry[name])) for name in ("mean", "std"))
    return Normalization(entry["applied"], float(entry["scale"]), mean, std)
