"""The flat format: a folder of .npy files and a manifest. See docs/format.md."""

from __future__ import annotations

import base64
import os
import re
import reprlib
import zlib
from typing import Any

import numpy as np

from .._base.errors import CorruptError, Error, UnsupportedError
from .._base.expected import WHOLE, checked, parse
from .._base.files import read_in
from . import crc32c, generations
from .column import HEADER_BYTES, Extent, explained
from .field import Field, from_json
from .layout import Layout, blocks, column_names

FORMAT_VERSION = 5

#: As many records a dataset has at most.
MAX_RECORDS = 1 << 46

_FILE = {"field": str, "name": str, "rows?": WHOLE, "bytes": WHOLE, "crc32c": str}

#: The keys of a manifest that this package reads; fields and splits are checked where they are read.
_MANIFEST = {
    "generation?": WHOLE, "id?": str, "records": range(1, MAX_RECORDS + 1), "fields": [object], "splits?": [object],
    "shards?": [{"first?": WHOLE, "count": range(1, MAX_RECORDS + 1), "files": [_FILE]}],
    "deleted?": {"records": WHOLE, "bits": str}, "arrays?": {...: str}, "metadata?": {...: str},
}  # fmt: skip

_MAX_MANIFEST = 1 << 30
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)*\.npy\Z")
_SEAL = re.compile(rb'"crc32c": "([0-9a-f]{8})"\n}\n\Z')


def locate(path: str, generation: int | str | None = None) -> Layout:
    """Read the manifest of a generation in a folder, by default of the newest, and check it against the sizes of the files."""
    return _layout(path, generations.read(path, generation, read_manifest))


def find(path: str, known: str) -> int | None:
    """Return the newest generation of a folder that has this id; None if it keeps none, or has only ever had one."""
    if not os.path.isdir(os.path.join(path, generations.FOLDER)):
        return None
    newest = generations.read(path, None, read_manifest)["generation"]
    for number in reversed(generations.numbers(path, newest)):
        try:
            if generations.read(path, number, read_manifest).get("id") == known:
                return number
        except (CorruptError, UnsupportedError):
            continue
    return None


def read_manifest(path: str, name: str) -> dict[str, Any]:
    """Read the manifest that has this name in a folder."""
    file = os.path.join(path, name)
    try:
        data = read_in(path, file, _MAX_MANIFEST)
    except FileNotFoundError as e:
        raise Error(f"{path}: no {name}: this is not a penstock dataset; to convert a folder of images, run: penstock preprocess {path} OUT") from e
    except OSError as e:
        raise explained(file, e) from e
    return decode_manifest(data, file)


def decode_manifest(data: bytes, where: str) -> dict[str, Any]:
    """Parse a manifest, and refuse what is newer than this reader."""
    manifest: dict[str, Any] = parse(data, {"format?": object, "version?": object}, where, "a manifest")
    if manifest.get("format") != "penstock":
        raise UnsupportedError(f'{where}: "format" is not "penstock"')
    version = manifest.get("version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise UnsupportedError(f"{where}: format version {reprlib.repr(version)}; this package reads 1 to {FORMAT_VERSION}: upgrade it")
    checked(manifest, _MANIFEST, where)
    seal = _SEAL.search(data)
    if seal is None or crc32c.of_bytes(data[: seal.start(1)]) != int(seal[1], 16):
        raise CorruptError(f"{where}: its checksum is missing or wrong: it was corrupted or edited")
    return manifest


def deleted(manifest: dict[str, Any], where: str) -> np.ndarray | None:
    """Return which stored records a manifest leaves out, as an array of 0 and 1; None if it leaves none out."""
    entry = manifest.get("deleted")
    if entry is None:
        return None
    records = manifest["records"]
    try:
        packed = zlib.decompressobj().decompress(base64.b64decode(entry["bits"], validate=True), records // 8 + 2)
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        if len(packed) != -(-records // 8) or bits[records:].any() or int(bits.sum(dtype=np.int64)) != entry["records"]:
            raise ValueError("not one bit for each record")
    except (ValueError, zlib.error) as e:
        raise CorruptError(f'{where}: "deleted": {e}') from e
    return bits[:records]


def fields_of(manifest: dict[str, Any], where: str) -> dict[str, Field]:
    """Return the fields of a manifest, in order."""
    try:
        fields = [from_json(entry) for entry in manifest["fields"]]
    except CorruptError as e:
        raise CorruptError(f"{where}: {e}") from e
    by_name = {f.name: f for f in fields}
    if not fields or len(by_name) != len(fields):
        raise CorruptError(f"{where}: no fields, or two of one name")
    return by_name


def _layout(path: str, manifest: dict[str, Any]) -> Layout:
    where = os.path.join(path, "manifest.json")
    fields = fields_of(manifest, where)
    columns: dict[str, list[Extent]] = {name: [] for f in fields.values() for name in column_names(f)}
    counts, first = [], 0
    names = [name for f in fields.values() for name in column_names(f)]
    for number, shard in enumerate(manifest.get("shards") or ()):
        if (shard.get("first") or 0) != first:
            raise CorruptError(f"{where}: shard {number}: records [{shard.get('first')}, +{shard['count']}) do not follow record {first}")
        if len(shard["files"]) != 2 * len(names):
            raise CorruptError(f"{where}: shard {number} has {len(shard['files'])} files for {len(names)} columns")
        pairs = dict(zip(names, zip(shard["files"][::2], shard["files"][1::2])))
        for f in fields.values():
            for name in column_names(f):
                columns[name].append(_extent(path, f, name, shard["count"], pairs[name]))
        counts.append(shard["count"])
        first += shard["count"]
    if first != manifest["records"]:
        raise CorruptError(f'{where}: shards hold {first} records, "records" says {manifest["records"]}')
    return Layout(path, "flat", first, fields, columns, counts, manifest)


def _extent(path: str, f: Field, column: str, count: int, files: tuple[dict[str, Any], dict[str, Any]]) -> Extent:
    """Return where a shard of a column is, once the sizes of its files are right."""
    payload, sums = files
    for entry in files:
        if entry["field"] != f.name or not _NAME.match(entry["name"]):
            raise CorruptError(f"{path}: manifest.json: {entry['name']!r:.100} is not a file of column {column}")
    row = 8 if column.endswith(".offsets") and f.ragged else f.row_bytes
    rows = count
    if f.ragged:
        rows = rows + 1 if column.endswith(".offsets") else payload.get("rows") or 0
    size = HEADER_BYTES + max(rows * row, 1 if f.ragged else 0)
    _check_size(path, payload, size)
    _check_size(path, sums, HEADER_BYTES + max(4 * blocks(rows, row), 1 if f.ragged else 0))
    return Extent(os.path.join(path, payload["name"]), HEADER_BYTES, rows, folder=path, npy=True)


def _check_size(path: str, entry: dict[str, Any], want: int) -> None:
    name = entry["name"]
    if entry["bytes"] != want:
        raise CorruptError(f"{path}: manifest.json: {name} is said to have {entry['bytes']} bytes; the fields need {want}")
    try:
        size = os.stat(os.path.join(path, name)).st_size
    except OSError as e:
        raise CorruptError(f"{path}: {name}: {e.strerror}: a file of the dataset is missing") from e
    if size != want:
        raise CorruptError(f"{path}: {name} has {size} bytes, not {want}: it was cut short or changed; make the dataset again")
