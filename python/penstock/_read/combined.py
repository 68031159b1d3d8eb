"""The kinds of views that are made of records as they are: selected, side by side, joined by a key, or one after the other.

A View has one of them, or windows. Fields that are mapped stay mapped: records.py and ragged.py have their values. What has to be
computed or filled in, the program reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._base.errors import Error, MissingError
from .._base.values import kind_of
from .fetched import FetchedRagged, FetchedRecords, is_fetched
from .field import Field, from_json
from .found import Matches, found, joined, of_table
from .ragged import ConcatenatedRagged, RaggedRecords, SelectedRagged
from .reader import OpenedDataset, shared
from .records import Concatenated, Piece, Places, Records, Rows, Runs, Selected, as_they_are, numbers_of
from .source import Chosen, Source, asked, check_source

#: How many records a run must have on average to be a range.
_SHORT_RUN = 4


class Kind:
    """What a view is: its parts, the fields and records that it makes of them, and their number.

    ``opened`` is the view as the program has it open, if the program reads some of the fields. ``computed`` is the result that
    a program has computed for the view, which a copy does not ask for again; None without such a result.
    """

    opened: OpenedDataset | None = None
    computed: Any = None

    def __init__(self, parts: Sequence[Source], fields: dict[str, Field], records: Mapping[str, Records | RaggedRecords], count: int) -> None:
        self.parts, self.fields, self.records, self.count = list(parts), fields, records, count

    def to_json(self, path: Callable[[str], str], found: bool) -> dict[str, Any]:
        """Return the view as JSON: see Source.to_json."""
        raise NotImplementedError

    def source_name(self, record: int) -> str:
        """Return what the source called a record; "" if that is not known."""
        return self.parts[0].source_name(record)


class Select(Kind):
    """Some records and fields."""

    def __init__(
        self, base: Source, numbers: Chosen | Runs | None, fields: Sequence[str] | None, rename: Mapping[str, str] | None, where: str = ""
    ) -> None:
        rows, names, new = rows_of(base, numbers), list(base.fields) if fields is None else list(fields), dict(rename or {})
        known: dict[str, Field] = {}
        for name in names:
            base._field(name)
            to = new.get(name, name)
            if to in known:
                raise Error(f"two fields have the name {to!r}; rename one of them")
            known[to] = replace(base.fields[name], name=to)
        known = {to: replace(f, image=new.get(f.image, f.image)) for to, f in known.items()}
        for old in new:
            if old not in names:
                raise MissingError(f"rename has the field {old!r}, which is not chosen; there are: {', '.join(names)}")
        records = {to: _selected(base._records[name], f, rows) for (to, f), name in zip(known.items(), names)}
        super().__init__([base], known, records, len(rows))
        self._rows, self._names, self._new, self._where = rows, fields, new, where
        self.computed = rows if where else None

    @classmethod
    def where(cls, base: Source, where: str, records: np.ndarray | None = None) -> Select:
        """Return the records for which an expression holds; ``records`` are these records, if they were found before."""
        check_source(base)
        if not isinstance(where, str):
            raise TypeError(f"filter({where!r:.60}): the expression is a str, such as \"label = 'cat'\"")
        return cls(base, found(asked(base), len(base), where) if records is None else records, None, None, where)

    def to_json(self, path: Callable[[str], str], found: bool) -> dict[str, Any]:
        base = self.parts[0]
        node: dict[str, Any] = {"select": base.to_json(path, found)}
        if self._where and not found:
            node["where"] = self._where
        elif isinstance(self._rows, Runs):
            node["ranges"] = self._rows.ranges()
        elif isinstance(self._rows, range):
            if self._rows != range(len(base)):
                node.update({"ranges": [[self._rows.start, self._rows.stop]]} if self._rows else {"records": []})
        else:
            node.update(_numbers_json(self._rows))
        if self._names is not None:
            node["fields"] = list(self._names)
        if self._new:
            node["rename"] = self._new
        return node

    def source_name(self, record: int) -> str:
        return self.parts[0].source_name(int(numbers_of(self._rows, np.array([record]))[0]))


class Zip(Kind):
    """Fields side by side."""

    def __init__(self, parts: Sequence[Source]) -> None:
        fields: dict[str, Field] = {}
        records: dict[str, Records | RaggedRecords] = {}
        for i, part in enumerate(parts):
            check_source(part)
            if len(part) != len(parts[0]):
                raise Error(f"part {i} has {len(part)} records, and the first one has {len(parts[0])}")
            for name, f in part.fields.items():
                if name in fields:
                    raise Error(f"part {i}: two fields have the name {name!r}; rename one of them: ds.select(rename={{{name!r}: ...}})")
                fields[name], records[name] = f, part._records[name]
        super().__init__(parts, fields, records, len(parts[0]))

    def to_json(self, path: Callable[[str], str], found: bool) -> dict[str, Any]:
        return {"zip": [part.to_json(path, found) for part in self.parts]}

    def source_name(self, record: int) -> str:
        return next(filter(None, (part.source_name(record) for part in self.parts)), "")


class Derive(Kind):
    """The fields of a view, and the fields that the program computes from them."""

    def __init__(self, base: Source, expressions: Sequence[Mapping[str, str]]) -> None:
        check_source(base)
        if not expressions:
            raise Error("derive: no expressions; give a name and an expression for each field: ds.derive(ndvi='(nir - red) / (nir + red)')")
        for e in expressions:
            if not isinstance(e["name"], str) or not e["name"]:
                raise Error(f"derive: the name of a field is {e['name']!r}; it is a str, such as 'ndvi'")
            if not isinstance(e["expression"], str):
                raise Error(f"derive: {e['name']!r} is {e['expression']!r:.60}; it is an expression, such as '(nir - red) / (nir + red)'")
        fields, records = dict(base.fields), dict(base._records)
        self.opened = _read_rest({"derive": asked(base), "expressions": list(expressions)}, fields, records, len(base))
        super().__init__([base], fields, records, len(base))
        self._expressions = [dict(e) for e in expressions]

    def to_json(self, path: Callable[[str], str], found: bool) -> dict[str, Any]:
        return {"derive": self.parts[0].to_json(path, found), "expressions": self._expressions}


class Join(Kind):
    """Fields side by side, of the records with the same key."""

    def __init__(self, left: Source, other: Any, match: Mapping[str, Any], matches: Matches | None = None) -> None:
        check_source(left)
        right = other if isinstance(other, Source) else of_table(other, left)
        self._match = {name: value for name, value in match.items() if value}
        if "fill" in self._match:
            self._match["fill"] = _plain(self._match["fill"], right.fields)
        keeps, key = self._match.get("how") == "left", self._match.get("right_on", self._match["on"])
        parts = [asked(left), asked(right)] if keeps or matches is None else []
        matches = self.computed = matches or joined(parts, self._match)
        rows = self._left = rows_of(left, None if keeps else np.delete(np.arange(len(left)), matches.left))
        fields = dict(left.fields)
        records = {name: _selected(left._records[name], f, rows) for name, f in fields.items()}
        for name, f in {} if keeps else right.fields.items():
            if name != key or key != self._match["on"]:
                fields[name], records[name] = f, _selected(right._records[name], f, matches.of)
        if keeps:
            self.opened = _read_rest({"join": parts, "match": self._match}, fields, records, len(rows))
        super().__init__([left, right], fields, records, len(rows))

    def to_json(self, path: Callable[[str], str], found: bool) -> dict[str, Any]:
        return {"join": [part.to_json(path, found) for part in self.parts], "match": self._match}

    def source_name(self, record: int) -> str:
        return self.parts[0].source_name(int(numbers_of(self._left, np.array([record]))[0]))


class Concat(Kind):
    """Records one after the other. With ``fill``, the program reads the fields that a part lacks."""

    def __init__(self, parts: Sequence[Source], fill: Mapping[str, Any] | None = None) -> None:
        for part in parts:
            check_source(part)
        self._ends = np.cumsum([len(p) for p in parts])
        count = int(self._ends[-1])
        if fill is None:
            fields = _common(parts)
            if sum(part.format in ("hdf5", "zarr") and not part.manifest for whole in parts for part in whole.datasets()) > 1:
                # The program knows the units and coordinates of files of other programs, and refuses to join fields in which
                # they differ.
                OpenedDataset(shared(), {"view": {"concat": [asked(part, reads=False) for part in parts]}}).close()
            records = self._in_all(parts, fields)
        else:
            every = {name: f for part in reversed(parts) for name, f in part.fields.items()}
            fill, fields = _plain(fill, every), {}
            records = self._in_all(parts, {name: f for name, f in every.items() if all(name in part.fields for part in parts)})
            self.opened = _read_rest({"concat": list(map(asked, parts)), "fill": fill}, fields, records, count)
        super().__init__(parts, fields, records, count)
        self._fill = fill

    def _in_all(self, parts: Sequence[Source], fields: Mapping[str, Field]) -> dict[str, Any]:
        """Return the records of fields that all parts have."""
        kinds: dict[str, Any] = {name: ConcatenatedRagged if f.ragged else Concatenated for name, f in fields.items()}
        return {name: kinds[name]([p._records[name] for p in parts], f, self._ends) for name, f in fields.items()}

    def to_json(self, path: Callable[[str], str], found: bool) -> dict[str, Any]:
        node: dict[str, Any] = {"concat": [part.to_json(path, found) for part in self.parts]}
        return node if self._fill is None else node | {"fill": self._fill}

    def source_name(self, record: int) -> str:
        k = int(np.searchsorted(self._ends, record, side="right"))
        return self.parts[k].source_name(record - int(self._ends[k]) + len(self.parts[k]))


def _selected(base: Records | RaggedRecords, field: Field, rows: Rows) -> Records | RaggedRecords:
    return SelectedRagged(base, field, rows) if isinstance(base, RaggedRecords) else Selected(base, field, rows)


def _read_rest(view: Mapping[str, Any], fields: dict[str, Field], records: dict[str, Any], count: int) -> OpenedDataset:
    """Open a view in the program, and add its fields to some; the program reads the fields that are not mapped here."""
    opened, places = OpenedDataset(shared(), {"view": view}), Places([Piece(0, 0, count)])
    for f in map(from_json, opened.found["fields"]):
        fields.setdefault(f.name, f)
        if is_fetched(records.get(f.name)):  # one request has all that are read
            records[f.name] = (FetchedRagged if f.ragged else FetchedRecords)(opened, f, places, as_they_are)
    return opened


def rows_of(base: Source, numbers: Chosen | Runs | None) -> Rows:
    """Return the numbers of the records that are chosen, as a range where they follow each other."""
    check_source(base)
    if numbers is None:
        return range(len(base))
    if isinstance(numbers, Runs):
        return numbers
    if isinstance(numbers, slice):
        numbers = range(*numbers.indices(len(base)))
    if isinstance(numbers, range):
        if numbers.step == 1 and numbers.start >= 0 and numbers.stop <= len(base):
            return range(numbers.start, max(numbers.start, numbers.stop))
        numbers = np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)
    return np.array(base.indices(numbers), np.int64)


def _common(parts: Sequence[Source]) -> dict[str, Field]:
    """Return the fields of datasets, or raise Error if they differ between the datasets."""
    first = parts[0]
    for i, part in enumerate(parts):
        if list(part.fields) != list(first.fields):
            names, of_first = ", ".join(part.fields), ", ".join(first.fields)
            both = json.dumps([name for name in first.fields if name in part.fields], ensure_ascii=False)
            raise Error(
                f"part {i} has the fields {names}, and the first one has {of_first}; choose some: ds.select(fields={both}), or give fill, "
                "values for the fields that a part lacks"
            )
        for name, f in part.fields.items():
            g = first.fields[name]
            if replace(f, normalization=None, dims=()) != replace(g, normalization=None, dims=()) or _applied(f) != _applied(g):
                raise Error(f"part {i}: field {name!r} has {_difference(f, g)}")
    return {
        name: f if all(p.fields[name].normalization == f.normalization for p in parts) else replace(f, normalization=None)
        for name, f in first.fields.items()
    }


def _applied(f: Field) -> Any:
    """Return the normalization that the values went through."""
    return f.normalization if f.normalization is not None and f.normalization.applied else None


def _difference(f: Field, first: Field) -> str:
    """Return how a field differs from the first part's field, and what to do."""
    if f.classes != first.classes:
        was, now = (", ".join(map(repr, g.classes[:20])) or "none" for g in (first, f))
        return (
            f"the classes {now}, and in the first part {was}, so that a number is not the same class; append one dataset to the other, "
            "as penstock preprocess --append and Writer(append=True) give labels their numbers"
        )
    if f.features != first.features:
        return (
            "other names of its columns, such as genes, than in the first part, so that a column is not the same one; join the files by "
            'these names: penstock.open([...], align="intersection") or align="union"'
        )
    names = [n for n in ("dtype", "shape", "width", "ragged", "content", "layout", "image", "instances") if getattr(f, n) != getattr(first, n)]
    if not names:
        return "another normalization than in the first part; preprocess both alike"
    there, here = (", ".join(f"{n} {getattr(g, n)!r}" for n in names) for g in (first, f))
    return f"{here}, and in the first part {there}; preprocess both alike, or leave it out: ds.select(fields=[...])"


def _numbers_json(numbers: np.ndarray) -> dict[str, Any]:
    """Return record numbers as ranges, if these are shorter, or as they are."""
    if not len(numbers):
        return {"records": []}
    borders = np.flatnonzero(np.diff(numbers) != 1) + 1
    if len(borders) + 1 > len(numbers) // _SHORT_RUN:
        return {"records": numbers}
    firsts = numbers[np.concatenate([[0], borders])]
    ends = numbers[np.concatenate([borders - 1, [len(numbers) - 1]])] + 1
    return {"ranges": np.stack([firsts, ends], 1).tolist()}


def _plain(fill: Any, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return values of fill for JSON: NumPy's numbers as Python's, and NaN and infinities as strings."""
    if not isinstance(fill, Mapping):
        raise TypeError(f"fill is {fill!r:.60}; it is a dict of values by field, such as {{'label': -1}}")
    return {name: _plain_value(name, value, fields.get(name)) for name, value in fill.items()}


def _plain_value(name: str, value: Any, field: Field | None) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        if field is None or kind_of(field.numpy) != "f" or field.ragged:
            raise Error(f"fill: field {name!r}: {value} is for fields of floats")
        return str(value)
    if isinstance(value, str) and value != value.encode("utf-8", "replace").decode():
        raise Error(f"fill: field {name!r}: {value!r:.60} has characters that UTF-8 has not")
    if value is None or isinstance(value, (bool, int, float, str)) or (isinstance(value, (list, tuple)) and not value):
        return value
    raise TypeError(f"fill: field {name!r}: {value!r:.60} is not a value; give a number, a text, the name of a class, or [] for no rows")
