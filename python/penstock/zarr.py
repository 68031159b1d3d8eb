"""Zarr that preprocess wrote: a folder of arrays, in shards whose rows are back to back. See docs/format.md."""

from __future__ import annotations

import os
import re
from typing import Any

from . import crc32c, generations
from ._expected import checked, parse
from .column import HEADER_BYTES, Extent
from .errors import CorruptError, UnsupportedError
from .field import Field
from .flat import fields_of, read_manifest
from .layout import ZARR_MANIFEST, Layout, blocks, column_names


def locate(path: str, generation: int | str | None = None) -> Layout:
    """Find the shards of the arrays of a generation, by default of the newest."""
    file = os.path.join(path, ZARR_MANIFEST)
    manifest = generations.read(path, generation, read_manifest)
    return _layout(path, manifest, fields_of(manifest, file))


def _layout(path: str, manifest: dict[str, Any], fields: dict[str, Field]) -> Layout:
    records = manifest["records"]
    arrays = {name: _Array(path, manifest, f, name) for f in fields.values() for name in column_names(f)}
    shards = {a.shard for f in fields.values() if not f.ragged for a in [arrays[f.name]] if a.shard < records}
    if len(shards) > 1:
        raise CorruptError(f"{path}: shards of {sorted(shards)} records")
    step = shards.pop() if shards else records
    starts = range(0, records, step)
    counts = [min(step, records - first) for first in starts]
    columns: dict[str, list[Extent]] = {}
    for f in fields.values():
        for name in column_names(f):
            if not f.ragged:
                columns[name] = [arrays[name].extent(k, 0, count, step) for k, count in enumerate(counts)]
            elif name.endswith(".offsets"):  # they count the rows of the whole column
                columns[name] = [arrays[name].extent(0, first, (count if k else records) + 1) for k, (first, count) in enumerate(zip(starts, counts))]
            else:
                columns[name] = [arrays[name].extent(0, 0, arrays[name].rows, again=k > 0) for k in range(len(counts))]
    return Layout(path, "zarr", records, fields, columns, counts, manifest)


_STORED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

#: The most bytes of a zarr.json of an array.
_MAX_METADATA = 1 << 24

_LENGTHS = [range(1 << 47)]
_ARRAY = {"shape": _LENGTHS, "chunk_grid": {"configuration": {"chunk_shape": [range(1, 1 << 47)]}}, "codecs": [object]}
_SHARDING = {"configuration": {"codecs": [object], "chunk_shape": [range(1, 1 << 47)]}}


class _Array:
    """An array: its metadata."""

    def __init__(self, path: str, manifest: dict[str, Any], f: Field, name: str) -> None:
        offsets = f.ragged and name.endswith(".offsets")
        stored = (manifest.get("arrays") or {}).get(f.name, f.name)
        if not _STORED.fullmatch(stored):
            raise CorruptError(f"{path}: field {f.name!r} cannot have the array {stored[:100]!r}")
        part = name[len(f.name) :]
        node = stored + part.replace(".", "/")
        file = os.path.join(path, node, "zarr.json")
        try:
            with open(file, "rb") as at:
                text = at.read(_MAX_METADATA)
        except OSError as e:
            raise CorruptError(f"{file}: {e.strerror}: a file of the dataset is missing") from e
        if f"{crc32c.of_bytes(text):08x}" != (manifest.get("metadata") or {}).get(f"{node}/zarr.json"):
            raise CorruptError(f"{file}: it is not what was written")
        meta = parse(text, _ARRAY, file, "the metadata of an array")
        if not meta["codecs"]:
            raise CorruptError(f"{file}: it has no codecs")
        sharding = checked(meta["codecs"][0], _SHARDING, f"{file}: 'codecs'")["configuration"]
        if len(sharding["codecs"]) > 1:
            raise UnsupportedError(
                f"{path}: array {node} is compressed, so it cannot be mapped: "
                f"use penstock.DataLoader, or convert it: penstock preprocess {path} FOLDER"
            )
        self.path, self.file, self.sums = os.path.join(path, node), file, os.path.join(path, "penstock", "crc", stored + part, "c.0")
        self.row_bytes = 8 if offsets else f.row_bytes
        if not len(meta["shape"]) == len(meta["chunk_grid"]["configuration"]["chunk_shape"]) == len(sharding["chunk_shape"]) > 0:
            raise CorruptError(f"{file}: its shape, shards and chunks have different numbers of axes")
        self.axes = len(meta["shape"]) - 1
        self.rows: int = meta["shape"][0]
        self.shard: int = meta["chunk_grid"]["configuration"]["chunk_shape"][0]
        index = 16 * (self.shard // sharding["chunk_shape"][0]) + 4
        self.head = -(-index // HEADER_BYTES) * HEADER_BYTES
        if (f.ragged and self.shard < self.rows) or (not f.ragged and self.rows != manifest["records"]):
            raise CorruptError(f"{file}: {self.rows} rows in shards of {self.shard}")

    def extent(self, shard: int, first: int, count: int, step: int = 0, again: bool = False) -> Extent:
        """Return rows of a shard, from number first on. Their checksums are those of all rows of the shard."""
        if self.rows == 0:
            return Extent(self.file, 0, 0, 0)
        return Extent(
            path=os.path.join(self.path, f"c.{shard}" + ".0" * self.axes),
            offset=self.head + first * self.row_bytes,
            first=shard * step + first,
            count=count,
            sums=None if first or again else (self.sums, 4 * shard * blocks(step, self.row_bytes)),
        )
