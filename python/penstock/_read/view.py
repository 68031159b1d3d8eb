"""Views: datasets that refer to the records of other datasets. See docs/format.md for their JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Union, overload

import numpy as np

from .._base import files, urls
from .._base.errors import Error, MissingError
from .._base.forks import finalize
from .._base.options import Pad, count, finite
from .._base.values import full, kind_of
from .._engine.batch import Batch
from ..samplers import MAX_SEED
from .fetched import Fetched, Numbers, fetched, is_fetched
from .field import Field, chosen, from_json, listed, shown
from .flat import MAX_RECORDS
from .found import Matches, found, is_temporary, joined, of_table
from .ragged import DerivedRagged, Ragged, RaggedRecords, batch_of
from .reader import Opened, shared
from .records import Derived, Piece, Places, Records
from .windows import Windows, described, whole

if TYPE_CHECKING:
    from .assembled import Assembled
    from .statistics import Statistics

#: How the name of a file ends that is a view.
SUFFIX = ".view.json"

#: The keys of the root of a file.
_HEAD = {"penstock": "view", "version": 1}

#: More record numbers than this are in a .npy file of their own.
_MOST_INLINE = 1 << 16

#: How many records a run must have on average to be a range.
_SHORT_RUN = 4

#: The limits of views, as in docs/format.md and in package loader/views: how deep views are nested, and the datasets,
#: each as often as it is named.
MAX_DEPTH, MAX_DATASETS = 32, 1 << 14

#: Opens a dataset: path, fields, split.
Opener = Callable[..., Any]

Chosen = Union[slice, range, Sequence[int], np.ndarray]


def is_view(path: str) -> bool:
    """Report whether a path names a view, by its suffix."""
    return path.endswith(SUFFIX)


def absolute(path: str) -> str:
    """Return the absolute path of a dataset, or its URL."""
    return path if "://" in path else os.path.abspath(path)


class Source:
    """Records with fields: a Dataset or a View.

    It has ``fields`` and, in ``_records``, the values of each; ``_places`` numbers the records.
    """

    depth, size = 0, 1  # how deep views are nested, and the datasets that they are of
    fields: dict[str, Field]
    path: str
    _records: Mapping[str, Records | RaggedRecords]
    _places: Places

    def classes(self, field: str = "labels") -> tuple[str, ...]:
        """Return the names of the values 0, 1, ... of a label field."""
        return self.fields[field].classes

    def __len__(self) -> int:
        return self._places.count

    @overload
    def __getitem__(self, key: str) -> Records: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, np.ndarray]: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | np.ndarray) -> Batch[np.ndarray]: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._field(key)
        if isinstance(key, (int, np.integer)) or (hasattr(key, "__index__") and np.ndim(key) == 0):  # also a tensor
            return self._one(self._places.index(key))
        return self._range(key) if isinstance(key, slice) else self.__getitems__(key)

    def _one(self, record: int) -> dict[str, Any]:
        return {name: self._records[name][record] for name in self.fields}

    def _range(self, key: slice) -> Batch[Any]:
        count = len(range(*key.indices(len(self))))
        return Batch({name: self._records[name][key] for name in self.fields}, count)

    def __getitems__(self, indices: Any) -> Batch[Any]:
        """Return the records of those numbers, in memory of their own."""
        return self._many(self.indices(indices))

    def _many(self, records: np.ndarray) -> Batch[Any]:
        return Batch({name: self._records[name].take(records) for name in self.fields}, len(records))

    def _read_together(self, opened: Opened, numbers: Numbers) -> None:
        """Have the fields of records that are read be one request."""
        together = Fetched(opened, self._records, list(self.fields), self._places, numbers)
        self._one, self._many, self._range = together.one, together.many, together.range  # type: ignore[method-assign]

    def indices(self, key: Any) -> np.ndarray:
        """Return the record numbers, from 0 on, that a list, an array or a mask chooses. Raise IndexError if there is one that does not exist."""
        return self._places.indices(key)

    def source_name(self, record: int) -> str:
        """Return what the source called a record; "" if that is not known."""
        raise NotImplementedError

    def check_place(self) -> None:
        """Raise Error if another dataset has taken the place of one of these at its path."""
        raise NotImplementedError

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        """Return the source as JSON, with its paths as ``path`` writes them.

        With ``found``, the records of filters are numbers, so that no program finds them again.
        """
        raise NotImplementedError

    def select(self, records: Chosen | None = None, *, fields: Iterable[str] | None = None, rename: Mapping[str, str] | None = None) -> View:
        """Return a view of some records and fields.

        Args:
            records: A slice, or a list or an array of record numbers, in any order, each as often as it shall come, or a
                mask. None means all.
            fields: The names of the fields, in that order; None means all.
            rename: New names of fields, by the name that they have here.
        """
        return _Select.of(self, records, chosen(fields), rename)

    def filter(self, where: str) -> View:
        """Return a view of the records for which an expression holds: ``ds.filter("label = 'cat' and len(boxes) > 0")``.

        The language is the same as in ``penstock inspect filter`` and in Go: see docs/views.md. Raise Error, which shows the place
        in the expression, if it is not one, does not fit the fields, or has no value for a record.
        """
        return _Select.where(self, where)

    def join(
        self,
        other: Any,
        on: str,
        *,
        right_on: str | None = None,
        how: Literal["inner", "left"] = "inner",
        many: bool = False,
        fill: Mapping[str, Any] | None = None,
    ) -> View:
        """Return a view of the fields of two datasets side by side, of the records that have the same key, in the order of this one.

        ``view.unmatched`` has the numbers of the records of both sides without a match.

        Args:
            other: A dataset or its path, or a table: a dict of columns, or one of pandas, polars or Arrow, which is written to a temporary dataset.
            on: The field with the key, one whole number, label or text a record, or "source_name", the name of a record's source. The other
                side may have a key once.
            right_on: The field of the other side; None means the same. A key of the same name is left out there.
            how: "inner" leaves records without a match out; "left" keeps them, with the values of ``fill``.
            many: Several records of this side may have the same key, as pandas' validate="m:1" lets them. Otherwise that is an error.
            fill: With "left", a value for each field of the other side: a number for all elements, the name of a class, a text, or []
                for a field of variable length.
        """
        return _Join.of_key(self, other, {"on": on, "right_on": right_on, "how": how, "many": many, "fill": fill})

    def derive(self, **expressions: str) -> View:
        """Return a view with more fields, which expressions compute from these: ``ds.derive(ndvi="(nir - red) / (nir + red)")``.

        Expressions have the operators of ``filter`` and NumPy's ``sqrt``, ``exp``, ``log``, ``log1p``, ``abs``, ``minimum``, ``maximum``,
        ``where`` and ``clip``. Shapes of records are broadcast as in NumPy. All is computed in float32 if each field is float32
        or has fewer than 32 bits, and else in float64; a comparison has results of bool. Datasets that were opened with mode="c" are
        refused: what was written to their arrays is in the memory of this process, and the program reads the files.

        Args:
            **expressions: For each new field its expression. A name that exists is refused: ``select(fields=)`` leaves a field out.
        """
        return _Derive.of(self, [{"name": name, "expression": text} for name, text in expressions.items()])

    def zip(self, *others: Source) -> View:
        """Return a view of the fields of several datasets side by side: record i has what record i of each has.

        All must have the same number of records, and fields of different names: ``other.select(rename={"x": "y"})``.
        """
        return _Zip.of([self, *others])

    def concat(self, *others: Source, fill: Mapping[str, Any] | None = None) -> View:
        """Return a view of the records of several datasets, one after the other. A field of several must be the same in each.

        Args:
            others: The datasets and views that follow.
            fill: A value for each field that some of them lack, as in ``join``. Without it, all must have the same fields.
        """
        return _Concat.of([self, *others], fill)

    def windows(
        self,
        sizes: Mapping[Any, int],
        *,
        stride: int | Mapping[Any, int] | None = None,
        dilation: int | Mapping[Any, int] | None = None,
        offset: int | Mapping[Any, int] | None = None,
        pad: Pad | Mapping[Any, Pad] | None = None,
        fill: float = 0,
        keep: Literal["full", "partial"] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        group: Any = None,
        ranges: Iterable[tuple[int, int]] | None = None,
        origins: Any = None,
        outputs: Mapping[str, Mapping[str, Any]] | None = None,
        others: Sequence[Source] = (),
        coords: bool | Iterable[str] = False,
    ) -> Windowed:
        """Return a view whose records are windows of the arrays that the fields are. The first axis of an array is the axis of the records.

        Args:
            sizes: The elements of a window, by axis: a name that the file has for it, or ``dims``, or a number. Axes that are not
                named stay whole.
            stride: The distance from one window to the next, by axis or of all; 1 by default.
            dilation: The distance from one element to the next, by axis or of all; 1 by default.
            offset: How far after the first possible window the first one is, by axis or of all.
            pad: Elements beyond the edges, by axis or of all: "constant" (``fill``), "reflect" or "wrap". None refuses them.
            keep: "full" leaves out windows that reach beyond an edge, which nothing does with "wrap". "partial" has one for every element;
                it is the default with ``pad``.
            dims: The names of the axes of fields, in place of the file's names: ``{"t2m": ["time", "lat", "lon"]}``.
            group: A field, or an array with a value for each record: windows never cross from one value to another.
            ranges: Ranges [first, end) of records that windows never leave.
            origins: The positions of windows in place of a grid: an array with one row each, and one column for each axis of ``sizes``, in the
                order in which the first field has them, which is the order of ``axes``.
            outputs: The fields of the records, by name: ``of``, the field, and ``sizes``, ``dilation`` and ``lead`` by axis, in place of
                the values of the windows. ``lead`` is how far the first element is from the origin. None means every field that has an axis
                of ``sizes``.
            others: More datasets with fields, which may have other numbers of records.
            coords: The axes whose coordinates each record has as a field with the name of the axis: True is all of ``sizes`` that have
                coordinates in the file.
        """
        parameters = [("stride", stride), ("dilation", dilation), ("offset", offset), ("pad", pad), ("fill", fill or None), ("keep", keep),
                      ("dims", dims), ("origins", origins)]  # fmt: skip
        by = described(sizes, parameters, group, len(self), ranges, outputs)
        added = self._coordinates(by, coords, [f for part in (self, *others) for f in part.fields])
        try:
            view = Windowed.of([self, *others, *added], by)
        except BaseException:
            for ds in added:
                ds.close()
            raise
        view._owned = list(added)
        return view

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates that the files have of axes: functions that open a dataset of them, by the name of the axis."""
        return {}

    def _coordinates(self, by: dict[str, Any], coords: bool | Iterable[str], fields: Sequence[str]) -> list[Any]:
        """Open the coordinates of axes that windows have, but for those that are fields already, and add them to the outputs."""
        if coords is False:
            return []
        known = self.coordinates()
        names = list(by["sizes"]) if coords is True else list(coords)
        if isinstance(coords, str):
            raise TypeError(f"coords is {coords!r}; it is a list of names: [{coords!r}]")
        for name in names:
            if name not in by["sizes"] or (coords is not True and name not in known and name not in fields):
                raise Error(
                    f"window: coords: axis {name!r} is not one of sizes with coordinates in the file; there are: {', '.join(known) or 'none'}"
                )
        have = [n for n in names if n in known or n in fields]
        if by.get("outputs") is not None:
            by["outputs"] += [{"name": n} for n in have if n not in [o["name"] for o in by["outputs"]]]
        return [known[n]() for n in have if n not in fields]

    def statistics(
        self,
        field: str,
        *,
        keep: Any = (),
        group: Any = None,
        ranges: Iterable[tuple[int, int]] | None = None,
        workers: int | None = None,
    ) -> Statistics:
        """Return mean, std, min and max of a field in one pass, without NaN and infinities, which are counted.

        ``ds.statistics("z", keep=["level"]).standardize()`` is the transform of each level to mean 0 and std 1.

        Args:
            field: The name of a field of numbers of one shape.
            keep: The axes of a record that have statistics of their own: names, or numbers such as -1 for the last. Nothing is one
                number for all, and all axes are one number for each element.
            group: A field, or an array with a value for each record, such as its month: each value has statistics of its own, along a first
                axis more, in the order of ``Statistics.groups``.
            ranges: Ranges [first, end) of records, such as the training set; None means all.
            workers: The number of threads; None means one per core, up to 8.
        """
        from .statistics import statistics

        values = self._field(field)
        if isinstance(values, RaggedRecords):
            raise Error(f"statistics: records of {field!r} have lengths of their own")
        groups = np.asarray(self._field(group) if isinstance(group, str) else group) if group is not None else None
        return statistics(values, self.fields[field].dims, keep, groups, ranges, workers)

    def to_arrow(self, fields: Iterable[str] | None = None) -> Any:
        """Return small fields of all records as a ``pyarrow.Table``, in memory.

        A label with classes is a dictionary, a field of variable length a list, and one with axes a list of fixed size.

        Args:
            fields: The names of fields; None is all, which must have at most 4 KiB a record and no image files.

        Raises:
            Error: A field is large and not named, or there is no pyarrow.
        """
        from .frames import to_arrow

        return to_arrow(self, fields)

    def to_pandas(self, fields: Iterable[str] | None = None) -> Any:
        """Return small fields of all records as a ``pandas.DataFrame``: ``to_arrow(fields).to_pandas()``."""
        return self.to_arrow(fields).to_pandas()

    def _field(self, name: str) -> Records | RaggedRecords:
        if name not in self.fields:
            raise MissingError(f"{urls.redacted(self.path)}: no field {name!r:.100}; there are: {listed(self.fields)}")
        return self._records[name]


#: The methods of a Dataset that change it.
_CHANGES = ("add_column", "set_column", "drop_columns", "rename_column", "delete", "restore_records", "restore")


class View(Source):
    """Records and fields of other datasets: what ``select``, ``zip`` and ``concat`` return, and ``penstock.open`` of a .view.json file.

    It is used like a Dataset, and holds no data: a slice of consecutive records is a view of the files. ``penstock.DataLoader``
    takes it. Closing a view closes no dataset, unless ``penstock.open`` opened them for it.
    """

    mode = "r"
    split = None
    _chosen = None

    def __init__(self, parts: Sequence[Source], fields: dict[str, Field], records: Mapping[str, Records | RaggedRecords], count: int) -> None:
        if count > MAX_RECORDS:
            raise Error(f"a view of {count} records; at most {MAX_RECORDS} are possible")
        self.depth, self.size = 1 + max(part.depth for part in parts), sum(part.size for part in parts)
        if self.depth > MAX_DEPTH:
            raise Error(f"views are nested deeper than {MAX_DEPTH}; write one into a dataset: penstock preprocess VIEW DEST")
        if self.size > MAX_DATASETS:
            raise Error(f"a view of {self.size} datasets, each as often as it is named; at most {MAX_DATASETS} are possible")
        self.parts_of, self.fields, self._records = list(parts), fields, records
        self._places = Places([Piece(0, 0, count)])
        self._file = ""
        self._owned: list[Any] = []
        self._samples = ""  # the raw samples that it is the cache of

    if not TYPE_CHECKING:  # where a View has no such methods

        def __getattr__(self, name: str) -> Any:
            """Return the method of a Dataset that changes it, of raw samples that are opened through a view: it says what to do."""
            samples = self.__dict__.get("_samples")
            if not samples or name not in _CHANGES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            from .._write.changing import refuse_cached  # which starts programs, as few views do

            return lambda *_, **__: refuse_cached(samples)

    @property
    def path(self) -> str:  # type: ignore[override]
        """The file of the view: that which ``penstock.open`` read, or a temporary one, for the process that reads the records of a DataLoader."""
        if not self._file:
            _check_shared(self)
            folder = files.temporary("view-")
            finalize(self, files.remove, folder)
            file = os.path.join(folder, f"view{SUFFIX}")
            hidden: list[str] = []
            self._write(file, lambda p: urls.hold(p, hidden) if "://" in p else os.path.abspath(p))
            finalize(self, urls.release, hidden)
            self._file = file
        return self._file

    def datasets(self) -> list[Any]:
        """Return the datasets that the view is of."""
        return [d for part in self.parts_of for d in (part.datasets() if isinstance(part, View) else [part])]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the view to a file whose name ends with .view.json. Paths of datasets are relative to its folder.

        ``penstock.open`` and the commands take the file as a dataset. Many record numbers are in a .npy file next to it.
        """
        path = os.fsdecode(path)
        if not is_view(path):
            raise ValueError(f"{urls.redacted(path)}: the name of a view ends with {SUFFIX}")
        folder = os.path.dirname(os.path.abspath(path))
        kept: dict[str, str] = {}

        def relative(p: str) -> str:
            if p in kept or is_temporary(p):  # a table, which is kept next to the view
                name = kept.setdefault(p, f"{path[: -len(SUFFIX)]}.table-{len(kept)}")
                if p != os.path.abspath(name):
                    files.copy_folder(p, name)
                p = name
            if "://" not in p:
                return os.path.relpath(os.path.abspath(p), folder)
            if urls.redacted(p) != p:
                raise Error(
                    f"{path}: the file would have the login or the options of {urls.redacted(p)}: keep a login in ~/.netrc or the environment, or "
                    "copy the dataset to a folder, and make the view of that"
                )
            return p

        self._write(path, relative)

    def _write(self, file: str, path: Callable[[str], str]) -> None:
        """Write the view, and in files next to it what is large, under another name until it is complete."""
        node = {**_HEAD, **self.to_json(path)}
        for k, part in enumerate(list(nodes(node))):
            if isinstance(part.get("records"), np.ndarray):
                numbers = part["records"]
                part["records"] = numbers.tolist()
                if len(numbers) > _MOST_INLINE:
                    name = f"{file[: -len(SUFFIX)]}.records-{k}.npy"
                    with files.replacing(name) as f:
                        np.save(f, numbers)
                    part["records"] = os.path.basename(name)
        with files.replacing(file, "w", encoding="utf-8") as f:
            json.dump(node, f, ensure_ascii=False)
            f.write("\n")

    @property
    def id(self) -> str:
        """It is "": a view has the identity of its datasets, records and fields, which the loader computes."""
        return ""

    def check_place(self) -> None:
        """Raise Error if another dataset has taken the place of one of these at its path."""
        for d in self.datasets():
            d.check_place()

    def source_name(self, record: int) -> str:
        """Return what the source called a record; "" if no dataset of the view knows it."""
        return self._source_name(self._places.index(record))

    def _source_name(self, record: int) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<penstock view: {len(self)} records of {shown(self.fields.values())}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.to_json(absolute), self.datasets()[0].opener, list(_computed(self)))

    def close(self) -> None:
        """Close the datasets that were opened for the view."""
        for d in self._owned:
            d.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Select(View):
    """Some records and fields."""

    @classmethod
    def of(cls, base: Source, numbers: Chosen | Runs | None, fields: Sequence[str] | None, rename: Mapping[str, str] | None) -> _Select:
        rows = _rows(base, numbers)
        names = list(base.fields) if fields is None else list(fields)
        new = dict(rename or {})
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
        records = {to: _picked(base._records[name], f, rows) for (to, f), name in zip(known.items(), names)}
        view = cls([base], known, records, _count(rows))
        view._rows, view._names, view._new = rows, fields, new
        return view

    @classmethod
    def where(cls, base: Source, where: str, records: np.ndarray | None = None) -> View:
        """Return the records for which an expression holds; those are they, if they are known."""
        _check(base)
        if not isinstance(where, str):
            raise TypeError(f"filter({where!r:.60}): the expression is a str, such as \"label = 'cat'\"")
        view = cls.of(base, found(_asked(base), len(base), where) if records is None else records, None, None)
        view._where = where
        return view

    _rows: Rows
    _names: Sequence[str] | None
    _new: dict[str, str]
    _where = ""

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        base = self.parts_of[0]
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

    def _source_name(self, record: int) -> str:
        return self.parts_of[0].source_name(int(_at(self._rows, np.array([record]))[0]))


class _Zip(View):
    """Fields side by side."""

    @classmethod
    def of(cls, parts: Sequence[Source]) -> View:
        fields: dict[str, Field] = {}
        records: dict[str, Records | RaggedRecords] = {}
        for i, part in enumerate(parts):
            _check(part)
            if len(part) != len(parts[0]):
                raise Error(f"part {i} has {len(part)} records, and the first one has {len(parts[0])}")
            for name, f in part.fields.items():
                if name in fields:
                    raise Error(f"part {i}: two fields have the name {name!r}; rename one of them: ds.select(rename={{{name!r}: ...}})")
                fields[name], records[name] = f, part._records[name]
        return cls(parts, fields, records, len(parts[0]))

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        return {"zip": [part.to_json(path, found) for part in self.parts_of]}

    def _source_name(self, record: int) -> str:
        return next(filter(None, (part.source_name(record) for part in self.parts_of)), "")


class _Derive(View):
    """Fields, and those that the program computes from them."""

    @classmethod
    def of(cls, base: Source, expressions: Sequence[Mapping[str, str]]) -> View:
        _check(base)
        if not expressions:
            raise Error("derive: no expressions; give a name and an expression for each field: ds.derive(ndvi='(nir - red) / (nir + red)')")
        for e in expressions:
            if not isinstance(e["name"], str) or not e["name"]:
                raise Error(f"derive: the name of a field is {e['name']!r}; it is a str, such as 'ndvi'")
            if not isinstance(e["expression"], str):
                raise Error(f"derive: {e['name']!r} is {e['expression']!r:.60}; it is an expression, such as '(nir - red) / (nir + red)'")
        opened = Opened(shared(), {"view": {"derive": _asked(base), "expressions": list(expressions)}})
        fields, records, places = dict(base.fields), dict(base._records), Places([Piece(0, 0, len(base))])
        for f in map(from_json, opened.found["fields"]):
            fields.setdefault(f.name, f)
            if is_fetched(records.get(f.name)):  # one request has all that are read
                records[f.name] = fetched(opened, f, places, _same)
        view = cls([base], fields, records, len(base))
        view._expressions = [dict(e) for e in expressions]
        view._read_together(opened, _same)
        return view

    _expressions: list[dict[str, str]]

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        return {"derive": self.parts_of[0].to_json(path, found), "expressions": self._expressions}

    def _source_name(self, record: int) -> str:
        return self.parts_of[0].source_name(record)


class _Join(View):
    """Fields side by side, of the records with the same key."""

    @classmethod
    def of_key(cls, left: Source, other: Any, match: Mapping[str, Any], matches: Matches | None = None) -> View:
        _check(left)
        right = other if isinstance(other, Source) else of_table(other, left)
        match = {name: value for name, value in match.items() if value}
        if "fill" in match:
            match["fill"] = _plain(match["fill"], right.fields)
        found = matches or joined([_asked(left), _asked(right)], match)
        key = match.get("right_on", match["on"])
        names = [name for name in right.fields if name != key or key != match["on"]]
        rows = np.arange(len(left))
        if match.get("how") != "left":
            rows = np.delete(rows, found.left)
        fields: dict[str, Field] = {}
        records: dict[str, Records | RaggedRecords] = {}
        for name, f in left.fields.items():
            fields[name], records[name] = f, _picked(left._records[name], f, _rows(left, rows))
        for name in names:
            f = right.fields[name]
            base, of = right._records[name], found.of
            if match.get("how") == "left":
                base, of = (
                    _joined([base, _filled(f, base.dtype, match["fill"][name])], f, np.array([len(right), len(right) + 1])),
                    np.where(of < 0, len(right), of),
                )
            fields[name], records[name] = f, _picked(base, f, of)
        view = cls([left, right], fields, records, len(found.of))
        view._match, view._matches, view._left = match, found, rows
        return view

    _match: dict[str, Any]
    _matches: Matches
    _left: np.ndarray

    @property
    def unmatched(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the records of the left side, and of the right side, without a match."""
        return self._matches.left, self._matches.right

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        return {"join": [part.to_json(path, found) for part in self.parts_of], "match": self._match}

    def _source_name(self, record: int) -> str:
        return self.parts_of[0].source_name(int(self._left[record]))


class _Concat(View):
    """Records one after the other."""

    @classmethod
    def of(cls, parts: Sequence[Source], fill: Mapping[str, Any] | None = None, known: bool = False) -> View:
        for part in parts:
            _check(part)
        return cls._alike(parts) if fill is None else cls._filled_up(parts, fill, known)

    @classmethod
    def _filled_up(cls, parts: Sequence[Source], fill: Mapping[str, Any], known: bool) -> View:
        """Return the view whose parts have values of fill in fields that they lack. Values that are known were checked before."""
        first: dict[str, Source] = {}
        for part in parts:
            for name in part.fields:
                first.setdefault(name, part)
        fill = _plain(fill, {name: part.fields[name] for name, part in first.items()})
        if not known:
            _check_fill(parts, fill)
        view = cls._alike([part if list(part.fields) == list(first) else _FilledUp.of_part(part, first, fill) for part in parts])
        view.parts_of, view._fill = list(parts), fill
        return view

    @classmethod
    def _alike(cls, parts: Sequence[Source]) -> _Concat:
        first = parts[0]
        for i, part in enumerate(parts):
            if list(part.fields) != list(first.fields):
                names, of_first = ", ".join(part.fields), ", ".join(first.fields)
                raise Error(
                    f"part {i} has the fields {names}, and the first one has {of_first}; choose some: ds.select(fields=[...]), or give fill, "
                    "values for the fields that a part lacks"
                )
            for name, f in part.fields.items():
                g = first.fields[name]
                if replace(f, normalization=None, dims=()) != replace(g, normalization=None, dims=()) or _applied(f) != _applied(g):
                    raise Error(f"part {i}: field {name!r} has {_difference(f, g)}")
        fields = {
            name: f if all(p.fields[name].normalization == f.normalization for p in parts) else replace(f, normalization=None)
            for name, f in first.fields.items()
        }
        ends = np.cumsum([len(p) for p in parts])
        records = {name: _joined([p._records[name] for p in parts], f, ends) for name, f in fields.items()}
        view = cls(parts, fields, records, int(ends[-1]))
        view._ends, view._fill = ends, None
        return view

    _ends: np.ndarray
    _fill: dict[str, Any] | None

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        node: dict[str, Any] = {"concat": [part.to_json(path, found) for part in self.parts_of]}
        return node if self._fill is None else node | {"fill": self._fill}

    def _source_name(self, record: int) -> str:
        k = int(np.searchsorted(self._ends, record, side="right"))
        return self.parts_of[k].source_name(record - int(self._ends[k]) + len(self.parts_of[k]))


class _FilledUp(View):
    """A part of a concat, and fields that other parts have."""

    @classmethod
    def of_part(cls, part: Source, first: Mapping[str, Source], fill: Mapping[str, Any]) -> View:
        fields: dict[str, Field] = {}
        records: dict[str, Records | RaggedRecords] = {}
        for name, of in first.items():
            fields[name] = part.fields.get(name, of.fields[name])
            has = part._records.get(name)
            records[name] = _filled(fields[name], of._records[name].dtype, fill[name], len(part)) if has is None else has
        return cls([part], fields, records, len(part))


class Windowed(View):
    """Windows of arrays: what ``windows`` returns."""

    @classmethod
    def of(cls, parts: Sequence[Source], by: dict[str, Any], placed: dict[str, Any] | None = None) -> Windowed:
        """Return the windows that are described; ``placed`` is what the program says of them, if it did."""
        bases: dict[str, Any] = {}
        for part in parts:
            _check(part)
            bases.update(part._records)
        if placed is None:
            placed = _placed(parts, by)
        fields = [from_json(f) for f in placed["fields"]]
        windows = Windows(placed["windows"], fields, placed["records"], by)
        records = {o.field.name: _Pieces(windows, o, bases[o.of]) for o in windows.outputs}
        view = cls(parts, {f.name: f for f in fields}, records, windows.count)
        view._windows, view._by, view._placed, view._read = windows, by, placed, {}
        return view

    _windows: Windows
    _read: dict[str, np.ndarray | None]
    _by: dict[str, Any]
    _placed: dict[str, Any]

    @property
    def axes(self) -> list[str]:
        """The names of the axes on which windows have an origin."""
        return [a.name for a in self._windows.axes]

    def origins(self, records: Any) -> np.ndarray:
        """Return where windows are: one row each, with the position of the origin on each of ``axes``.

        Args:
            records: Record numbers, such as the ``indices`` of a batch.
        """
        return self._windows.origins(self.indices(records))

    def partition(
        self,
        shares: Mapping[str, Any],
        *,
        along: str | None = None,
        group: str | None = None,
        block: int | None = None,
        gap: int = 0,
        seed: int | None = None,
    ) -> dict[str, Windowed]:
        """Return views of parts of the windows, such as a training and a validation set, that have no element in common.

        A window that has elements of two parts is in neither.

        Args:
            shares: For each name its share of the axis, or its ranges: ``{"train": 0.8, "val": 0.2}``,
                ``{"train": [(0, 700)], "val": [(700, 900)]}``.
            along: The axis that is divided; None is the axis of the records.
            group: A field of the records: all with one value are in one part, which is drawn by seed.
            block: The axis is cut into blocks of N elements, and each belongs to one part, which is drawn by seed.
            gap: Elements that are left out where one part ends and another begins.
            seed: Draws blocks and groups; None is 0.
        """
        for key in ("within", "origins"):
            if self._by.get(key) is not None:
                raise Error(f"partition: these windows have {'ranges' if key == 'within' else key} already; partition windows without")
        names = list(self.axes)
        known = self._windows.axes
        axis = next((a for a in known if a.name == along), None) if along else next((a for a in known if a.records), None)
        if axis is None:
            raise Error(
                f"partition: {'no axis of records has windows; name one with along' if along is None else f'there is no axis {along!r}'}: "
                f"{', '.join(names)}"
            )
        if group is not None and (not axis.records or axis.length != len(self.parts_of[0])):
            raise Error(f"partition: groups are of the records, and {axis.name!r} is not their axis; leave group out, or along")
        ranges = self._parts(shares, axis.length, group, block, gap, seed)
        out = {}
        for name, of_name in zip(shares, ranges):
            by = {**self._by, "within": [list(r) for r in of_name], **({"along": along} if along else {})}
            try:
                out[name] = Windowed.of(self.parts_of, by)
            except Error as e:
                raise Error(f"partition: {name!r} has the ranges {of_name!r:.200}: {e}") from e
        return out

    def _parts(
        self, shares: Mapping[str, Any], length: int, group: str | None, block: int | None, gap: int, seed: int | None
    ) -> list[list[tuple[int, int]]]:
        if not isinstance(shares, Mapping):
            raise TypeError(f"shares is {shares!r}; it is a dict with a share or ranges for each name: {{'train': 0.8, 'val': 0.2}}")
        numbers = [isinstance(share, Real) for share in shares.values()]
        gap, block = whole("gap", gap), None if block is None else whole("block", block)
        if gap < 0 or (block is not None and block < 1) or (group is not None and (block is not None or gap)):
            raise ValueError(f"gap is {gap} and block {block}; they must be at least 0 and 1, and are not for groups")
        if seed is not None and block is None and group is None:
            raise ValueError(f"seed is {seed!r}, and nothing is drawn: parts follow each other; give block or group, or leave seed out")
        if all(numbers):
            seed = 0 if seed is None else count("seed", seed, 0, MAX_SEED)
            asked = {"shares": [finite("a share", share) for share in shares.values()], "gap": gap, "block": block, "seed": seed, "length": length}
            if group is not None:
                asked |= {"view": _asked(self.parts_of[0]), "group": group}
            return [of_name or [] for of_name in shared().ask({"split": asked})["ranges"]]
        if any(numbers) or group is not None or block is not None or gap:
            raise ValueError("shares are all numbers or all ranges; group, block and gap are for numbers")
        ranges = [[(int(a), int(b)) for a, b in of_name] for of_name in shares.values()]
        every = sorted(r for of_name in ranges for r in of_name)
        for (_, end), (first, last) in zip(every, every[1:]):
            if first < end:
                raise ValueError(f"range [{first}, {last}) overlaps the one that ends at {end}; elements would be in two parts")
        return [sorted(of_name) for of_name in ranges]

    def coords(self, records: Any, field: str | None = None) -> dict[str, np.ndarray]:
        """Return the coordinates of the elements of windows, by axis: an array with one row for each record.

        They come from the file or, for an axis without coordinates, are the positions of the elements; -1 is beyond an edge.

        Args:
            records: Record numbers, such as the ``indices`` of a batch.
            field: The field whose windows are meant, if fields have windows of their own; None is the first one.
        """
        out = self._windows.outputs[0] if field is None else next((o for o in self._windows.outputs if o.field.name == field), None)
        if out is None:
            raise MissingError(f"{urls.redacted(self.path)}: no field {field!r:.100}; there are: {listed(self.fields)}")
        origins, found = self.origins(records), {}
        for k, cut in enumerate(out.cuts):
            if cut.axis is not None:
                axis = self._windows.axes[cut.axis].name
                places = self._windows.elements(out, k, origins)
                values = self._values_of(axis)
                found[axis] = places if values is None or len(values) != cut.length else _at_places(values, places)
        return found

    def _values_of(self, axis: str) -> np.ndarray | None:
        """Return the coordinates of an axis, None if the files have none."""
        if axis not in self._read:
            self._read[axis] = None
            for part in self.parts_of:
                if axis in part.coordinates():
                    with part.coordinates()[axis]() as ds:
                        self._read[axis] = np.array(next(iter(ds._records.values())))
                    break
        return self._read[axis]

    def assemble(self, field: str | None = None, *, weights: Any = None, fill: float = np.nan) -> Assembled:
        """Return an array that results for windows are added to: ``add(batch.indices, predictions)``, and then ``numpy()``.

        Args:
            field: The field whose windows the results have; None is the first one.
            weights: Weights of the elements of a window, an array or a dict of lists by axis, such as
                ``{"lat": np.hanning(130)[1:-1]}``; None weighs all alike. If windows overlap, the result is the weighted mean.
            fill: The value of elements that no window has.
        """
        from .assembled import Assembled

        return Assembled(self, field, weights, fill)

    def to_xarray(self, records: Any) -> Any:
        """Return windows as an xarray.Dataset with their coordinates.

        One window has the axes of the arrays. Several have an axis "record" first, and coordinates of two axes: ``time`` is over
        ("record", "time_step").

        Args:
            records: A record number, a list of them, a slice, or a batch of a ``penstock.DataLoader`` over this view.
        """
        from .windows_xarray import of_windows

        return of_windows(self, records)

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        parts = [part.to_json(path, found) for part in self.parts_of]
        return {"window": parts[0] if len(parts) == 1 else parts, "by": self._by}

    def _source_name(self, record: int) -> str:
        return ""


class _Picked(Derived):
    """Some of the records of a field."""

    def __init__(self, base: Records, field: Field, rows: Rows) -> None:
        super().__init__(field, base.dtype, base.shape[1:], _count(rows))
        self._base, self._rows, self.mapped = base, rows, base.mapped

    def region(self, box: tuple[slice, ...]) -> np.ndarray:
        """Return a box of the array: a slice with a start and an end for each axis."""
        if isinstance(self._rows, range):
            return self._base.region((slice(self._rows.start + box[0].start, self._rows.start + box[0].stop), *box[1:]))
        return super().region(box)

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        self._base.take(_at(self._rows, records), out)

    def _range(self, start: int, stop: int) -> np.ndarray:
        if isinstance(self._rows, range):
            rows: np.ndarray = self._base[self._rows.start + start : self._rows.start + stop]
            return rows
        return self._base.take(_at(self._rows, np.arange(start, stop)))


class _Joined(Derived):
    """The records of several fields, one after the other."""

    def __init__(self, parts: Sequence[Records], field: Field, ends: np.ndarray) -> None:
        super().__init__(field, parts[0].dtype, parts[0].shape[1:], int(ends[-1]))
        self._bases, self._ends = parts, ends

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        for k, here, local in _by_part(records, self._ends):
            out[here] = self._bases[k].take(local)

    def _range(self, start: int, stop: int) -> np.ndarray:
        pieces = [self._bases[k][a:b] for k, a, b in _spans(start, stop, self._ends)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.empty((0, *self.shape[1:]), self.dtype)


class _Pieces(Derived):
    """Windows of a field."""

    def __init__(self, windows: Windows, out: Any, base: Records) -> None:
        super().__init__(out.field, base.dtype, out.field.shape, windows.count)
        self._windows, self._out, self._base = windows, out, base

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        self._windows.take(self._out, self._base, records, out)

    def _range(self, start: int, stop: int) -> np.ndarray:
        seen = self._windows.run(self._out, self._base, start, stop)
        return self.take(np.arange(start, stop, dtype=np.int64)) if seen is None else seen


class _PickedRagged(DerivedRagged):
    """Some of the records of a field of variable length."""

    def __init__(self, base: RaggedRecords, field: Field, rows: Rows) -> None:
        super().__init__(field, base.dtype, _count(rows))
        self._base, self._chosen = base, rows

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        lengths: np.ndarray = self._base.lengths
        if isinstance(self._chosen, range):
            return lengths[self._chosen.start : self._chosen.stop]
        found: np.ndarray = lengths[_at(self._chosen, np.arange(_count(self._chosen)))]
        return found

    def _of(self, records: np.ndarray) -> Ragged:
        return self._base.take(_at(self._chosen, records))

    def _between_records(self, start: int, stop: int) -> Ragged:
        if isinstance(self._chosen, range):
            out: Ragged = self._base[self._chosen.start + start : self._chosen.start + max(start, stop)]
            return out
        return super()._between_records(start, stop)


class _JoinedRagged(DerivedRagged):
    """The records of several fields of variable length, one after the other."""

    def __init__(self, parts: Sequence[RaggedRecords], field: Field, ends: np.ndarray) -> None:
        super().__init__(field, parts[0].dtype, int(ends[-1]))
        self._bases, self._ends = parts, ends

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        return np.concatenate([b.lengths for b in self._bases])

    def _of(self, records: np.ndarray) -> Ragged:
        rows: list[np.ndarray] = [np.empty((0, *self.field.shape), self.dtype)] * len(records)
        for k, here, local in _by_part(records, self._ends):
            some = self._bases[k].take(local)
            for i, at in enumerate(here.tolist()):
                rows[at] = some.values[some.offsets[i] : some.offsets[i + 1]]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(r) for r in rows], out=offsets[1:])
        values = np.concatenate(rows) if rows else np.empty((0, *self.field.shape), self.dtype)
        return batch_of(self.field, values, offsets)

    def _between_records(self, start: int, stop: int) -> Ragged:
        spans = _spans(start, stop, self._ends)
        if len(spans) == 1:
            k, a, b = spans[0]
            out: Ragged = self._bases[k][a:b]
            return out
        return super()._between_records(start, stop)


def _same(records: np.ndarray) -> np.ndarray:
    return records


def _check_shared(base: Source) -> None:
    """Raise Error if a dataset may have been written to in the memory of this process, which no other one reads."""
    parts: list[Any] = base.datasets() if isinstance(base, View) else [base]
    for part in parts:
        if part.mode == "c":
            raise Error(f"{part.path} was opened with mode='c'; a view that another process reads needs datasets with mode='r'")


def _asked(base: Source, reads: bool = True) -> dict[str, Any]:
    """Return a dataset or a view as the program is asked for it, which reads its records or only says where they are."""
    if reads:
        _check_shared(base)
    base.check_place()
    return base.to_json(absolute, found=True)


def _placed(parts: Sequence[Source], by: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the program says of windows."""
    reads = bool(by.get("group"))
    opened = Opened(shared(), {"view": {"window": [_asked(part, reads) for part in parts], "by": by}})
    opened.close()
    return opened.found


def _at_places(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return values at places; beyond an edge NaN, of integers -1."""
    out: np.ndarray = values.take(np.maximum(places, 0))
    if (places < 0).any():
        out[places < 0] = np.nan if out.dtype.kind == "f" else -1
    return out


def _picked(base: Records | RaggedRecords, field: Field, rows: Rows) -> Records | RaggedRecords:
    return _PickedRagged(base, field, rows) if isinstance(base, RaggedRecords) else _Picked(base, field, rows)


def _joined(parts: Sequence[Any], field: Field, ends: np.ndarray) -> Records | RaggedRecords:
    return _JoinedRagged(parts, field, ends) if field.ragged else _Joined(parts, field, ends)


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


def _check_fill(parts: Sequence[Source], fill: Mapping[str, Any]) -> None:
    """Raise Error for values that the fields of a concat cannot have: the program knows."""
    Opened(shared(), {"view": {"concat": list(map(_asked, parts)), "fill": fill}}).close()


def _filled(field: Field, dtype: np.dtype, value: Any, count: int = 1) -> Records | RaggedRecords:
    """Return a field whose records all have one value."""
    if field.ragged:
        values = np.frombuffer(value.encode(), np.uint8) if isinstance(value, str) else np.empty((0, *field.shape), dtype)
        return _EqualRagged(field, values, count)
    if isinstance(value, str) and value in field.classes:
        value = field.classes.index(value)
    return _Equal(field, full(field.shape, float(value) if isinstance(value, str) else value, dtype), count)


class _Equal(Derived):
    """A field of records that are all equal."""

    def __init__(self, field: Field, value: np.ndarray, count: int) -> None:
        super().__init__(field, value.dtype, value.shape, count)
        self._value = value

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        out[...] = self._value

    def _range(self, start: int, stop: int) -> np.ndarray:
        return np.broadcast_to(self._value, (stop - start, *self._value.shape))


class _EqualRagged(DerivedRagged):
    """A field of variable length of records that are all equal."""

    def __init__(self, field: Field, values: np.ndarray, count: int) -> None:
        super().__init__(field, values.dtype, count)
        self._only = values

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        return np.full(len(self), len(self._only), np.int64)

    def _of(self, records: np.ndarray) -> Ragged:
        n = len(records)
        return batch_of(self.field, np.concatenate([self._only] * n) if n else self._only[:0], np.arange(n + 1, dtype=np.int64) * len(self._only))


class Runs:
    """Runs of records, one after the other: they take memory for each run, and not for each record."""

    __slots__ = ("ends", "firsts", "shifts")

    def __init__(self, ranges: np.ndarray) -> None:
        """Take ranges [first, end), as an array of two columns of int64."""
        ranges = ranges[ranges[:, 0] < ranges[:, 1]]
        self.firsts, lengths = ranges[:, 0], ranges[:, 1] - ranges[:, 0]
        self.ends = np.cumsum(lengths)
        self.shifts = self.firsts - (self.ends - lengths)  # from a record of the view to that there

    def at(self, records: np.ndarray) -> np.ndarray:
        """Return the numbers of records there."""
        found: np.ndarray = records + self.shifts[np.searchsorted(self.ends, records, side="right")]
        return found

    def ranges(self) -> list[list[int]]:
        """Return the ranges [first, end)."""
        found: list[list[int]] = np.stack([self.firsts, self.firsts + np.diff(self.ends, prepend=0)], 1).tolist()
        return found


#: The records of a view by their numbers in another one.
Rows = Union[range, Runs, np.ndarray]


def _at(rows: Rows, records: np.ndarray) -> np.ndarray:
    if isinstance(rows, Runs):
        return rows.at(records)
    return records + rows.start if isinstance(rows, range) else rows[records]


def _count(rows: Rows) -> int:
    if isinstance(rows, Runs):
        return int(rows.ends[-1]) if len(rows.ends) else 0
    return len(rows)


def _by_part(records: np.ndarray, ends: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the parts that some of the records are of: its number, the places of its records, and their numbers there."""
    parts = np.searchsorted(ends, records, side="right")
    order = np.argsort(parts, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1) if len(order) else ():
        k = int(parts[here[0]])
        yield k, here, records[here] - (ends[k - 1] if k else 0)


def _spans(start: int, stop: int, ends: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the ranges that consecutive records are: part, first, end."""
    spans = []
    k = int(np.searchsorted(ends, start, side="right"))
    while start < stop:
        first, end = int(ends[k - 1]) if k else 0, int(ends[k])
        if start < end:
            spans.append((k, start - first, min(stop, end) - first))
        start, k = max(start, end), k + 1
    return spans


def _rows(base: Source, numbers: Chosen | Runs | None) -> Rows:
    """Return the numbers of the records that are chosen, as a range where they follow each other."""
    _check(base)
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


def _check(part: Any) -> None:
    if not isinstance(part, Source):
        raise TypeError(f"{urls.redacted(repr(part))[:60]} is not a dataset; give penstock.open(path), or a view of such")


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
    names = [n for n in ("dtype", "shape", "ragged", "content", "layout", "image", "instances") if getattr(f, n) != getattr(first, n)]
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


def nodes(node: Any) -> Iterable[dict[str, Any]]:
    """Yield all parts of a view."""
    yield node
    windowed = node.get("window") or []
    for inner in [
        node.get("select"),
        node.get("derive"),
        *(node.get("zip") or []),
        *(node.get("concat") or []),
        *(node.get("join") or []),
        *(windowed if isinstance(windowed, list) else [windowed]),
    ]:
        if inner is not None:
            yield from nodes(inner)


#: The kinds of views that are of other views.
_KINDS = ("select", "zip", "concat", "window", "join", "derive")


def _parts(node: Mapping[str, Any]) -> list[Any]:
    """Return the views that a view in a file is of."""
    of: Any = next((node[kind] for kind in _KINDS if kind in node), [])
    return of if isinstance(of, list) else [of]


def read(path: str, fields: Sequence[str] | None, opener: Opener) -> View:
    """Open the view in a file. Its datasets are closed with it."""
    node = shared().ask({"view": os.path.abspath(path)})["view"]
    try:
        view = _Reader(opener).view(node, fields)
    except Error as e:
        raise type(e)(f"view {path}: {e}") from e
    view._file = path
    return view


def _again(node: dict[str, Any], opener: Opener, computed: Iterable[Any]) -> View:
    """Make a view that was pickled, with what programs have computed for it."""
    return _Reader(opener, iter(computed)).view(node, None)


def _computed(view: View) -> Iterable[Any]:
    """Yield what programs have computed for a view and its parts, in the order in which a _Reader needs it."""
    for part in view.parts_of:
        if isinstance(part, View):
            yield from _computed(part)
    if isinstance(view, _Select) and view._where:
        yield view._rows
    if isinstance(view, _Join):
        yield view._matches
    if isinstance(view, Windowed):
        yield view._placed


class _Reader:
    """Builds views from JSON."""

    def __init__(self, opener: Opener, computed: Iterator[Any] | None = None) -> None:
        self._open, self._computed = opener, computed
        self._opened: list[Any] = []

    def view(self, node: dict[str, Any], fields: Sequence[str] | None) -> View:
        try:
            source = self._source(node)
            if fields is not None or not isinstance(source, View):
                source = source.select(fields=fields)
        except BaseException:
            for d in self._opened:
                d.close()
            raise
        assert isinstance(source, View)
        source._owned = self._opened
        return source

    def _source(self, node: dict[str, Any]) -> Source:
        if "dataset" in node:
            return self._dataset(node)
        if "select" in node:
            return self._select(node)
        parts = [self._source(part) for part in _parts(node)]
        if "window" in node:
            return Windowed.of(parts, node["by"], next(self._computed) if self._computed else None)
        if "derive" in node:
            return _Derive.of(parts[0], node["expressions"])
        if "join" in node:
            return _Join.of_key(parts[0], parts[1], node["match"], next(self._computed) if self._computed else None)
        return _Zip.of(parts) if "zip" in node else _Concat.of(parts, node.get("fill"), known=self._computed is not None)

    def _dataset(self, node: dict[str, Any]) -> Source:
        path = urls.value(node["dataset"])
        ds: Source = self._open(path, node.get("fields"), node.get("split"))
        self._opened.append(ds)
        known = getattr(ds, "state_id", "")
        if node.get("id") and known and known != node["id"]:
            if getattr(ds, "format", "") in ("npy", "hdf5"):
                raise Error(f"{path} was replaced or changed after the view was made; make the view again")
            raise Error(
                f"{path} has the id {known!r}, and had {node['id']!r} when the view was made; name the generation that it was made of, "
                f'as "dataset": "{node["dataset"]}@1" (penstock log lists them), or make the view again'
            )
        return ds

    def _select(self, node: dict[str, Any]) -> View:
        base, where, numbers = self._source(node["select"]), node.get("where"), node.get("records")
        fields, rename = node.get("fields"), node.get("rename")
        if where:
            view = _Select.where(base, where, next(self._computed) if self._computed else None)
            return view if fields is None and not rename else view.select(fields=fields, rename=rename)
        if isinstance(numbers, str):
            from .containers import numbers as positions

            numbers = positions(numbers)
        ranges = node.get("ranges")
        if ranges is not None:
            pairs = np.array(ranges, np.int64).reshape(-1, 2)
            wrong = np.flatnonzero((pairs[:, 0] > pairs[:, 1]) | (pairs[:, 1] > len(base)))
            if len(wrong):
                raise Error("records [{}, {}) of {} do not exist".format(*ranges[wrong[0]], len(base)))
            if float((pairs[:, 1] - pairs[:, 0]).sum(dtype=np.float64)) > MAX_RECORDS:
                raise Error(f"ranges of more than {MAX_RECORDS} records")
            numbers = range(*ranges[0]) if len(ranges) == 1 else Runs(pairs)
        elif numbers is not None:
            numbers = numbers if isinstance(numbers, np.ndarray) else np.array(numbers, np.int64)
            low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, -1)
            if low < 0 or high >= len(base):
                raise Error(f"record {low if low < 0 else high} is out of range: there are {len(base)}")
        return _Select.of(base, numbers, fields, rename)
