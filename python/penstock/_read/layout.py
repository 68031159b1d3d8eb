"""The parts of a dataset on disk, in any format.

flat.py and containers.py find out where the rows of arrays lie, and say it as a Layout, which a Dataset maps.
"""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any

from .._base.dataclass import dataclass
from .._base.errors import CorruptError, Error, MissingError
from .._base.urls import redacted
from .column import Extent
from .field import Field


@dataclass
class Layout:
    """Fields, and where the rows of their arrays are.

    ``columns`` are by name: the name of the field or, for a ragged field, NAME.values and
    NAME.offsets. A field that cannot be mapped has no columns. ``counts`` are the records of every shard. ``manifest`` is empty
    for an HDF5 file that penstock did not write.
    """

    path: str
    format: str
    records: int
    fields: dict[str, Field]
    columns: dict[str, list[Extent]]
    counts: list[int]
    manifest: dict[str, Any] = field(default_factory=dict)
    digest: str = ""  # of samples of the bytes of a .npy file, which has no manifest with an id
    coordinates: dict[str, dict[str, str]] = field(default_factory=dict)  # the arrays that are coordinates, by the name of the axis
    found_splits: Any = None  # the splits of a file without a manifest
    broken_splits: Any = ()  # lists that name units which the file does not have, or none: dicts of "name" and "missing"
    opened: Any = None  # of the columns that are not mapped: the dataset that the program has open, a reader.OpenedDataset

    def __post_init__(self) -> None:
        #: Ranges [first, end) of records, by name.
        self.splits = _splits(self.path, self.records, self.manifest.get("splits") or self.found_splits)


def _splits(path: str, records: int, entries: Any) -> dict[str, list[tuple[int, int]]]:
    """Return the splits of a manifest: each a name, and ranges of records."""
    splits: dict[str, list[tuple[int, int]]] = {}
    for entry in _list(path, entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or entry["name"] in splits:
            raise CorruptError(f"{path}: the manifest has a split {entry!r:.100} that is not a name of its own and ranges; make the dataset again")
        name = entry["name"]
        for r in (ranges := _list(path, entry.get("ranges"))):
            if not isinstance(r, list) or len(r) != 2 or not all(type(n) is int for n in r) or not 0 <= r[0] < r[1] <= records:
                raise CorruptError(f"{path}: split {name!r:.100} with records {r!r:.100} of {records}; make the dataset again")
        splits[name] = [(a, b) for a, b in ranges]
    return splits


def _list(path: str, value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise CorruptError(f"{path}: the manifest has splits that are {value!r:.100} and not a list; make the dataset again")
    return value


#: The file that makes a folder of Zarr a dataset.
ZARR_MANIFEST = os.path.join("penstock", "manifest", "c.0")


def column_names(f: Field) -> tuple[str, ...]:
    """Return the names of the arrays that a field is kept in."""
    return (f"{f.name}.values", f"{f.name}.offsets") if f.ragged else (f.name,)


def blocks(count: int, row_bytes: int) -> int:
    """Return how many checksums that many rows have: one covers a large row, or about 64 KiB of small ones."""
    return -(-count // (1 if row_bytes >= 4096 else 65536 // row_bytes))


def select(name: str, layout: Layout, split: str | None) -> list[tuple[int, int]]:
    """Return the ranges of a split's records; of all records if split is None."""
    splits = layout.splits
    if split is None:
        return [(0, layout.records)]
    if split not in splits:
        for broken in layout.broken_splits:
            if broken["name"] == split:
                missing = ", ".join(map(repr, broken["missing"] or ()))
                if not missing:
                    raise MissingError(f"{redacted(name)}: split {split!r} is an empty list: it names nothing that has records")
                raise MissingError(f"{redacted(name)}: split {split!r} names {missing:.300}, which the file does not have; correct the list")
        known = ", ".join(splits) or "none"
        raise MissingError(f"{redacted(name)}: no split {split!r:.100}; there are: {known}")
    if not splits[split]:
        raise Error(f"{name}: split {split!r} has no records")
    return splits[split]
