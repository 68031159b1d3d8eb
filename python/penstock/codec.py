"""Records as the bytes that preprocess reads: see docs/producer.md."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from .errors import Error
from .field import Field

Buffer = Union[bytes, np.ndarray]

#: Returns the bytes of a value, and whether they are the path of a file that holds them.
_Encoder = Callable[[Any], "tuple[Buffer, bool]"]

_SIZE = struct.Struct("<Q")
_MESSAGE = struct.Struct("<cQ")
_IS_PATH = 1 << 63
_LONGEST_REASON = 60 << 10

#: How files of images begin.
_IMAGES = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"P4", b"P5", b"P6")


def message(kind: bytes, body: bytes) -> bytes:
    """Return a message that is not a record."""
    return _MESSAGE.pack(kind, len(body)) + body


def refusal(reason: str) -> bytes:
    """Return the message that stands for a sample that could not be made."""
    return message(b"X", reason.encode("utf-8", "replace")[:_LONGEST_REASON])


class Codec:
    """Makes the messages of records that have certain fields."""

    def __init__(self, fields: Sequence[Field], splits: Sequence[str] = ()) -> None:
        self.fields = list(fields)
        self._names = {f.name for f in fields}
        self._splits = {name: bytes([i + 1]) for i, name in enumerate(splits)}
        self._encoders = [(f.name, f.ragged, _encoder(f)) for f in fields]

    def encode(self, record: Mapping[str, Any], split: str | None = None) -> list[Buffer]:
        """Return the parts of the message of a record: its values are not copied where they are arrays of the right type."""
        if not isinstance(record, Mapping):
            raise Error(f"a record is a dict of its fields, and not {_called(record)}")
        head, values = [b"R", self._split(split)], []
        for name, ragged, encode in self._encoders:
            if name not in record:
                raise Error(f"the record has no field {name!r}, only {', '.join(map(repr, record))}; each must have {', '.join(sorted(self._names))}")
            try:
                value, path = encode(record[name])
            except (Error, TypeError, ValueError, OverflowError) as e:
                raise Error(f"field {name!r}: {e}") from None
            values.append(value)
            if ragged:
                size = len(value) if isinstance(value, bytes) else value.nbytes
                head.append(_SIZE.pack(size | _IS_PATH if path else size))
        if len(record) > len(self._encoders):
            extra = ", ".join(repr(n) for n in record if n not in self._names)
            raise Error(f"there are fields that the first record, or the schema, does not have: {extra}")
        return [b"".join(head), *values]

    def _split(self, split: str | None) -> bytes:
        if split is None and not self._splits:
            return b"\0"
        if split not in self._splits:
            raise Error(f"split {split!r} is none of splits={list(self._splits)!r}")
        return self._splits[split]


def to_json(f: Field) -> dict[str, Any]:
    """Return a field as the message of fields has it."""
    entry = {
        "name": f.name,
        "dtype": f.dtype,
        "shape": list(f.shape),
        "ragged": f.ragged,
        "content": f.content,
        "layout": f.layout,
        "classes": list(f.classes),
    }
    return {key: value for key, value in entry.items() if value or key == "shape"}


def of_json(entry: Mapping[str, Any]) -> Field:
    """Return the field of which to_json made the entry."""
    return Field(
        entry["name"], entry["dtype"], tuple(entry["shape"]), entry.get("layout", ""), tuple(entry.get("classes") or ()),
        ragged=entry.get("ragged", False), content=entry.get("content", ""),
    )  # fmt: skip


def check(schema: Sequence[Field]) -> list[Field]:
    """Return a schema that a user gives, with what can be left out."""
    fields = []
    for f in schema:
        if not isinstance(f, Field):
            raise TypeError(f"schema has {_called(f)}; it is a list of penstock.Field")
        if f.content:  # text and images are ragged bytes, also where the field does not say so
            f = Field(f.name, "uint8", (), "", (), ragged=True, content=f.content)
        fields.append(f)
    return fields


def infer(record: Mapping[str, Any]) -> list[Field]:
    """Return the fields that a record has.

    A path is a file of an image; bytes are one if they begin like it; a str is text. A PIL image or
    an array of uint8 with 3 axes, the last of 1 or 3, is pixels. An array has its type and shape, a
    number is one of int64, float64 or bool, and a list any number of rows of the type of its elements.
    """
    if not isinstance(record, Mapping):
        raise Error(f"a record is a dict of its fields, and not {_called(record)}")
    if not record:
        raise Error("the record has no fields")
    for name in record:
        if not isinstance(name, str):
            raise Error(f"field {name!r}: names of fields are of type str")
    return [_infer(name, value) for name, value in record.items()]


def _infer(name: str, value: Any) -> Field:
    if isinstance(value, os.PathLike):
        return Field(name, "uint8", ragged=True, content="image")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Field(name, "uint8", ragged=True, content="image" if _is_image(bytes(value[:16])) else "")
    if isinstance(value, str):
        return Field(name, "uint8", ragged=True, content="utf-8")
    a, dtype = _array(value)
    ragged = isinstance(value, (list, tuple))
    if dtype == "" or (ragged and a.size == 0):
        raise Error(f"field {name!r}: the type of {_called(value)} cannot be inferred; say it: schema=[penstock.Field({name!r}, ...), ...]")
    shape = a.shape[1:] if ragged else a.shape
    layout = "HWC" if dtype == "uint8" and len(shape) == 3 and shape[2] in (1, 3) else ""
    return Field(name, dtype, tuple(shape), layout, ragged=ragged)


def _is_image(head: bytes) -> bool:
    return head.startswith(_IMAGES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _array(value: Any) -> tuple[np.ndarray, str]:
    """Return a value as an array, and the name of its type; "" for none that a dataset has."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor of torch
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            import torch

            return value.contiguous().view(torch.int16).numpy().view(np.uint16), "bfloat16"
        value = value.numpy()
    a = np.asarray(value)
    name = a.dtype.name
    if name == "bfloat16":  # of ml_dtypes
        return a.view(np.uint16), name
    if a.dtype.kind not in "biuf" or a.dtype.itemsize > 8:
        return a, ""
    return a, name


def _encoder(f: Field) -> _Encoder:
    """Return what makes the bytes of a field's values."""
    if f.content == "utf-8":
        return _text
    if f.content:
        return _file
    if f.classes and not f.shape and not f.ragged:
        return _label(f)
    return _numbers(f)


def _text(value: Any) -> tuple[Buffer, bool]:
    if isinstance(value, str):
        return value.encode(), False
    if isinstance(value, bytes):
        return value, False
    raise TypeError(f"{_called(value)} is not text")


def _file(value: Any) -> tuple[Buffer, bool]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), False
    if isinstance(value, (str, os.PathLike)):
        path = os.fsencode(value)
        if not path:
            raise ValueError("an empty path")
        return path, True
    raise TypeError(f"{_called(value)} is not a file of an image: give its path or its bytes; pixels are a field of their own")


def _label(f: Field) -> _Encoder:
    numbers = {name: i for i, name in enumerate(f.classes)}

    def encode(value: Any) -> tuple[Buffer, bool]:
        if isinstance(value, str) and value not in numbers:
            raise ValueError(f"{value!r} is not one of its classes")
        n = int(numbers[value] if isinstance(value, str) else value)
        if not 0 <= n < len(f.classes):
            raise ValueError(f"class {n} of {len(f.classes)}")
        return np.array(n, f.storage).tobytes(), False

    return encode


def _numbers(f: Field) -> _Encoder:
    storage, shape, axes = f.storage, f.shape, len(f.shape) + f.ragged
    kind, raw = f.dtype, f.ragged and f.dtype == "uint8" and not f.shape
    number = struct.Struct("<q" if kind == "int64" else "<d")
    exact = {"int64": int, "float64": float}.get(kind) if axes == 0 else None

    def encode(value: Any) -> tuple[Buffer, bool]:
        if type(value) is exact:  # without an array: a tenth of the time
            try:
                return number.pack(value), False
            except struct.error:
                raise OverflowError(f"{_called(value)} does not fit {kind}") from None
        if raw and isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value), False
        if type(value) is not np.ndarray or value.dtype != storage or kind == "bfloat16":
            value = _convert(value, kind, storage)
        if f.ragged and value.size == 0:
            return b"", False
        if value.ndim != axes or value.shape[f.ragged :] != shape:
            raise ValueError(_misshapen(f, value.shape))
        return np.ascontiguousarray(value), False

    return encode


def _misshapen(f: Field, shape: tuple[int, ...]) -> str:
    want = f"any number of rows of shape {f.shape}" if f.ragged else f"{f.shape}"
    advice = (
        "" if f.ragged else f"; where shapes differ, give lists, or schema=[penstock.Field({f.name!r}, {f.dtype!r}, {f.shape[1:]}, ragged=True), ...]"
    )
    return f"shape {shape} instead of {want}{advice}"


def _convert(value: Any, dtype: str, storage: np.dtype) -> np.ndarray:
    """Return a value as an array of a type. Numbers may not change by that, but Python's floats are rounded."""
    a, found = _array(value)
    if found == dtype or (dtype == "bfloat16" and found == "uint16"):
        return a.astype(storage, copy=False)
    if a.size == 0 and not isinstance(value, np.ndarray):
        return np.empty(a.shape, storage)
    if found == "" or dtype == "bfloat16":
        raise TypeError(f"{_called(value)} is not {dtype}")
    if np.can_cast(a.dtype, storage, "safe"):
        return a.astype(storage)
    free = not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "detach")
    if free and a.dtype.kind == "f" and storage.kind == "f":
        return a.astype(storage)
    if free and a.dtype.kind in "biu" and storage.kind in "iuf":
        out = a.astype(storage)
        if (out == a).all():
            return out
        raise OverflowError(f"{_called(value)} does not fit {dtype}")
    raise TypeError(f"{_called(value)} of {found} is not {dtype}; convert it first: .astype({dtype!r})")


def _called(value: Any) -> str:
    """Describe a value in a few words."""
    text = repr(value) if isinstance(value, (int, float, str, bytes, bool, type(None))) else ""
    name: str | None = type(value).__name__
    return text if text and len(text) < 60 else f"a value of type {name}"
