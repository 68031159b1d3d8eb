"""Records as the bytes that preprocess reads: see docs/producer.md."""

from __future__ import annotations

import json
import operator
import os
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Union

import numpy as np

from .._base import values as values
from .._base.errors import Error
from .._base.values import called as _called
from .._read.field import Field, normalization_of

Buffer = Union[bytes, np.ndarray]

#: Returns the bytes of a value, and whether the name of the file that had them is in front.
_Encoder = Callable[[Any], "tuple[Buffer, bool]"]

_SIZE = struct.Struct("<Q")
_MESSAGE = struct.Struct("<cQ")
_IS_NAMED = 1 << 63
_LONGEST_REASON, _LONGEST_NAME = 56 << 10, 4 << 10

#: The most bytes of a file.
_MAX_FILE = 1 << 32

#: How files of images begin.
_IMAGES = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"P4", b"P5", b"P6")


def message(kind: bytes, body: bytes) -> bytes:
    """Return a message that is not a record."""
    return _MESSAGE.pack(kind, len(body)) + body


class Unreadable(Error):
    """A file that a record names cannot be read."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def refusal(e: Exception | str) -> bytes:
    """Return the message that stands for a sample that could not be made."""
    name, reason = (e.name, e.reason) if isinstance(e, Unreadable) else ("", e if isinstance(e, str) else f"{type(e).__name__}: {e}")
    body = os.fsencode(name)[:_LONGEST_NAME] + b"\0" if name else b""
    return message(b"X", body + reason.replace("\0", " ").encode("utf-8", "replace")[:_LONGEST_REASON])


class Codec:
    """Makes the messages of records that have certain fields."""

    def __init__(self, fields: Sequence[Field], splits: Sequence[str] = ()) -> None:
        self.fields = list(fields)
        self._names = {f.name for f in fields}
        self._splits = {name: bytes([i + 1]) for i, name in enumerate(splits)}
        self._encoders = [(f.name, f.ragged, encoder(f)) for f in fields]

    def encode(self, record: Mapping[str, Any], split: str | None = None) -> list[Buffer]:
        """Return the parts of the message of a record: its values are not copied where they are arrays of the right type."""
        if not isinstance(record, Mapping):
            raise Error(f"a record is a dict of its fields, and not {_called(record)}")
        head, parts = [b"R", self._split(split)], []
        for name, ragged, encode in self._encoders:
            if name not in record:
                raise Error(f"the record has no field {name!r}, only {', '.join(map(repr, record))}; each must have {', '.join(sorted(self._names))}")
            try:
                value, named = encode(record[name])
            except Unreadable as e:
                raise Unreadable(e.name, f"field {name!r}: {e.reason}") from None
            except (Error, TypeError, ValueError, OverflowError, RuntimeError) as e:  # torch raises the last of these
                raise Error(f"field {name!r}: {e}") from None
            parts.append(value)
            if ragged:
                size = len(value) if isinstance(value, bytes) else value.nbytes
                head.append(_SIZE.pack(size | _IS_NAMED if named else size))
        if len(record) > len(self._encoders):
            extra = ", ".join(repr(n) for n in record if n not in self._names)
            raise Error(f"there are fields that the first record, or the schema, does not have: {extra}")
        return [b"".join(head), *parts]

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
        "image": f.image,
        "instances": f.instances,
        "dims": list(f.dims),
        "classes": list(f.classes),
    }
    return {key: value for key, value in entry.items() if value or key == "shape"}


def of_json(entry: Mapping[str, Any]) -> Field:
    """Return the field that to_json, or a summary of preprocess, describes."""
    return Field(
        entry["name"], entry["dtype"], tuple(entry["shape"]), entry.get("layout", ""), tuple(entry.get("classes") or ()),
        ragged=entry.get("ragged", False), content=entry.get("content", ""),
        image=entry.get("image", ""), instances=entry.get("instances", ""), dims=tuple(entry.get("dims") or ()),
        normalization=normalization_of(entry.get("normalization")),
    )  # fmt: skip


def check(schema: Sequence[Field]) -> list[Field]:
    """Return the schema that a user gives, completed by the members that can be left out."""
    fields = []
    for f in schema:
        if not isinstance(f, Field):
            raise TypeError(f"schema has {_called(f)}; it is a list of penstock.Field")
        if f.content in ("utf-8", "image", "images"):  # ragged bytes, also where the field does not say so
            f = Field(f.name, "uint8", (), "", (), ragged=True, content=f.content)
        if f.content in ("boxes", "keypoints") and f.shape == ():  # any number of them
            f = replace(f, shape=(4,) if f.content == "boxes" else (3,), ragged=True)
        if f.classes and (f.numpy.kind not in "biu" or len(f.classes) - 1 > (1 if f.dtype == "bool" else np.iinfo(f.storage).max)):
            raise ValueError(
                f"field {f.name!r}: its {len(f.classes)} classes need integers that reach {len(f.classes) - 1}, such as int64, not {f.dtype}"
            )
        if twice := sorted({name for name in f.classes if f.classes.count(name) > 1}):
            raise ValueError(
                f"field {f.name!r}: the classes have {twice[0]!r:.60} twice, so that the name would be two labels; give each class a name of its own"
            )
        fields.append(f)
    return fields


def infer(record: Mapping[str, Any], dataset: Sequence[Field] = ()) -> list[Field]:
    """Return the fields that a record has.

    A path is a file of an image; bytes are an image file if they begin like one; a str is text. A PIL image or an array of
    uint8 with 3 axes, the last of 1 or 3, is pixels. An array has its type and shape, a number is one of int64, float64 or
    bool, and a list any number of rows of the type of its elements. A record that is appended to a dataset takes the dataset's
    fields, in its order, except for images and masks: the dataset may have them decoded, and the record as files.
    """
    if not isinstance(record, Mapping):
        raise Error(f"a record is a dict of its fields, and not {_called(record)}")
    if not record:
        raise Error("the record has no fields")
    for name in record:
        if not isinstance(name, str):
            raise Error(f"field {name!r}: names of fields are of type str")
    if dataset:
        _check_names(record, [f.name for f in dataset])
    known = {f.name: f for f in dataset if not f.layout and f.content not in ("image", "mask")}
    return ordered([known[name] if name in known else _inferred(name, value) for name, value in record.items()], dataset)


def _check_names(record: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse a record that has other fields than the dataset that it is appended to."""
    missing, unknown = [n for n in names if n not in record], [n for n in record if n not in names]
    for whose, which in (("they do not have its", missing), ("it does not have their", unknown)):
        if which:
            lists = [json.dumps(fields, ensure_ascii=False) for fields in (which, names)]
            raise Error(f"these records cannot be appended to it: {whose} fields {lists[0]}; it has {lists[1]}")


def ordered(fields: Sequence[Field], dataset: Sequence[Field]) -> list[Field]:
    """Return fields in the order of the dataset that records are appended to. If the names differ, the program says how."""
    by_name = {f.name: f for f in fields}
    return [by_name[f.name] for f in dataset] if by_name.keys() == {f.name for f in dataset} else list(fields)


def _inferred(name: str, value: Any) -> Field:
    try:
        return _infer(name, value)
    except Error:
        raise
    except (TypeError, ValueError, OverflowError, RuntimeError) as e:
        raise Error(f"field {name!r}: {e}") from None


def _infer(name: str, value: Any) -> Field:
    if isinstance(value, os.PathLike):
        return Field(name, "uint8", ragged=True, content="image")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Field(name, "uint8", ragged=True, content="image" if _is_image(bytes(value[:16])) else "")
    if isinstance(value, str) or values.is_texts(value):
        return Field(name, "uint8", ragged=True, content="utf-8")
    if isinstance(value, (list, tuple)) and value and all(_is_file(x) for x in value):
        return Field(name, "uint8", ragged=True, content="images")
    a = values.array(value)
    dtype = values.element_type(a.dtype)
    ragged = isinstance(value, (list, tuple))
    if isinstance(value, Mapping):
        raise Error(f"field {name!r}: a dict cannot be stored; make a field of each of its values, or text of it by json.dumps")
    if isinstance(value, (list, tuple)) and not value:
        raise Error(
            f"field {name!r}: an empty list has no type; name it: schema=[penstock.Field({name!r}, 'int64', ragged=True), ...], "
            "or of lists of image files 'uint8' and content='images'"
        )
    if dtype == "" and values.is_typed(value):
        raise Error(f"field {name!r}: {_called(value)} is of {a.dtype}, which no field has; {values.instead_of(a.dtype)}")
    if dtype == "" or a.size == 0:
        raise Error(f"field {name!r}: the type of {_called(value)} cannot be inferred; name it: schema=[penstock.Field({name!r}, ...), ...]")
    shape = a.shape[1:] if ragged else a.shape
    layout = "HWC" if dtype == "uint8" and len(shape) == 3 and shape[2] in (1, 3) else ""
    return Field(name, dtype, tuple(shape), layout, ragged=ragged)


def _is_file(value: Any) -> bool:
    """Return whether a value is an image file: a path, or bytes that begin like one."""
    return isinstance(value, os.PathLike) or (isinstance(value, (bytes, bytearray)) and _is_image(bytes(value[:16])))


def _is_image(head: bytes) -> bool:
    return head.startswith(_IMAGES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def encoder(f: Field) -> _Encoder:
    """Return what makes the bytes of a field's values."""
    if f.content == "utf-8":
        return _text
    if f.content == "images":
        return _files
    if f.is_bytes:
        return _file
    if f.classes and not f.shape and not f.ragged:
        return _label(f)
    return _numbers(f)


def _text(value: Any) -> tuple[Buffer, bool]:
    if isinstance(value, str):
        return value.encode(), False
    if values.is_texts(value) or (isinstance(value, (list, tuple)) and not value):
        return values.text_of(value).encode(), False
    if isinstance(value, bytes):
        value.decode()  # bytes that are not UTF-8 would be read as other bytes
        return value, False
    raise TypeError(f"{_called(value)} is not text")


def _file(value: Any) -> tuple[Buffer, bool]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes(value), False
    if isinstance(value, (str, os.PathLike)):
        return _read(os.fspath(value)), True
    raise TypeError(f"{_called(value)} is not a file of an image: give its path or its bytes; pixels are a field of their own")


def _files(value: Any) -> tuple[Buffer, bool]:
    """Return image files one after the other, each after its length."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{_called(value)} is not a list of image files: give a list of their paths or their bytes")
    record = b""
    for item in value:
        data, named = _file(bytes(item) if isinstance(item, np.ndarray) and item.dtype == np.uint8 and item.ndim == 1 else item)
        file = bytes(data).partition(b"\0")[2] if named else bytes(data)
        record += len(file).to_bytes(4, "little") + file
    return record, False


def _bytes(value: Any) -> bytes:
    if isinstance(value, memoryview) and value.itemsize != 1:
        raise TypeError(f"a memoryview of {value.format!r} is not bytes; give its .tobytes(), or numpy.asarray of it")
    return bytes(value)


def _read(path: Any) -> bytes:
    """Return the name of a file, a zero byte, and its content now: another file may have the name later."""
    name = os.fsencode(path)
    if not name or b"\0" in name or len(name) > _LONGEST_NAME:
        raise ValueError(f"{path!r:.80} is not the path of a file")
    try:
        # Without O_NONBLOCK, a named pipe would wait for a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as f:
            status = os.fstat(f.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(os.fsdecode(path), "is not a file")
            if status.st_size > _MAX_FILE:
                raise Unreadable(os.fsdecode(path), f"is larger than {_MAX_FILE} bytes")
            return name + b"\0" + f.read()
    except OSError as e:
        raise Unreadable(os.fsdecode(path), (e.strerror or str(e)).lower()) from None


def _label(f: Field) -> _Encoder:
    numbers = {name: i for i, name in enumerate(f.classes)}
    most = min(len(f.classes) - 1, 1 if f.storage.kind == "b" else int(np.iinfo(f.storage).max))

    def encode(value: Any) -> tuple[Buffer, bool]:
        if isinstance(value, str) and value not in numbers:
            raise ValueError(f"{value!r} is not one of its classes")
        n = numbers[value] if isinstance(value, str) else _integer(value)
        if not 0 <= n <= most:
            raise ValueError(f"class {n} of {len(f.classes)}: give a number from 0 to {most}, or a name")
        return n.to_bytes(f.storage.itemsize, "little"), False

    return encode


def _integer(value: Any) -> int:
    try:
        return int(value) if isinstance(value, np.bool_) else operator.index(value)
    except TypeError:
        raise TypeError(f"{_called(value)} is not the number of a class, nor its name; if it is a whole number, give int(...) of it") from None


def _numbers(f: Field) -> _Encoder:
    dtype, shape, axes = f.numpy, f.shape, len(f.shape) + f.ragged
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
            data = _bytes(value)
            _check_classes(f, np.frombuffer(data, np.uint8))
            return data, False
        if type(value) is not np.ndarray or value.dtype != dtype:
            value = _convert(value, f)
        if f.ragged and value.shape == (0,):  # no rows: an empty list has no shape
            return b"", False
        if value.ndim != axes or value.shape[f.ragged :] != shape:
            raise ValueError(_misshapen(f, value.shape))
        _check_classes(f, value)
        return values.stored(value), False

    return encode


def _check_classes(f: Field, a: np.ndarray) -> None:
    """Refuse numbers that are not classes of a field that has classes."""
    if f.classes and a.size and not (a.min() >= 0 and a.max() < len(f.classes)):
        wrong = a.min() if a.min() < 0 else a.max()
        raise ValueError(f"class {wrong} of {len(f.classes)}: give numbers from 0 to {len(f.classes) - 1}")


def _misshapen(f: Field, shape: tuple[int, ...]) -> str:
    want = f"any number of rows of shape {f.shape}" if f.ragged else f"{f.shape}"
    advice = (
        "" if f.ragged else f"; where shapes differ, give lists, or schema=[penstock.Field({f.name!r}, {f.dtype!r}, {f.shape[1:]}, ragged=True), ...]"
    )
    return f"shape {shape} instead of {want}{advice}"


def _convert(value: Any, f: Field) -> np.ndarray:
    """Return a value as an array of a field's type, or say how records can have it."""
    try:
        return values.fitted(value, f.dtype)
    except TypeError as e:
        a = values.array(value)
        found = values.element_type(a.dtype)
        if not found or found == "uint16":
            raise
        raise TypeError(f"{e}; {_advice(f, a.dtype, found)}") from None


def _advice(f: Field, dtype: np.dtype, found: str) -> str:
    rest = f", {f.shape}" * bool(f.shape) + ", ragged=True" * f.ragged
    declared = f"schema=[penstock.Field({f.name!r}, {found!r}{rest}), ...]"
    if values.kind_of(dtype) == "f":
        return f"where records have fractions, say so: {declared}; otherwise round them first"
    return f"give values of {f.dtype}, or the type of these: {declared}"
