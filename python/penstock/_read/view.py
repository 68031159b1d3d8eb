"""Views, and the methods that make them; a view has one of the kinds of combined.py or windows.py.

Viewable has the methods that a Dataset and a View share, View is saved to files and has a temporary one for programs, and ``read`` makes
views of files: docs/format.md has their JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base import files, urls
from .._base.errors import Error, MissingError
from .._base.forks import finalize
from .._base.options import Pad
from .combined import Concat, Derive, Join, Kind, Select, Zip
from .field import chosen, listed, shown
from .flat import MAX_RECORDS
from .found import is_temporary
from .reader import MOST_INLINE, shared
from .records import Piece, Places, Runs, as_they_are
from .source import Chosen, Source, absolute, check_shared
from .windows import Output, Window, described, divided, table_of

if TYPE_CHECKING:
    from .assembled import Assembled

#: How the name of a file ends that is a view.
SUFFIX = ".view.json"

#: The keys of the root of a file.
_HEAD = {"penstock": "view", "version": 1}

#: The limits of views, as in docs/format.md and in package loader/views: how deep views are nested, and the datasets,
#: each as often as it is named.
MAX_DEPTH, MAX_DATASETS = 32, 1 << 14

#: Opens a dataset: path, fields, split.
Opener = Callable[..., Any]


def is_view(path: str) -> bool:
    """Report whether a path names a view, by its suffix."""
    return path.endswith(SUFFIX)


class Viewable(Source):
    """A Source, such as a Dataset or a View, with the methods that make views of it."""

    def select(self, records: Chosen | None = None, *, fields: Iterable[str] | None = None, rename: Mapping[str, str] | None = None) -> View:
        """Return a view of some records and fields.

        Args:
            records: A slice, or a list or an array of record numbers, in any order, each as often as it shall come, or a
                mask. None means all.
            fields: The names of the fields, in that order; None means all.
            rename: New names of fields, by the name that they have here.
        """
        return View(Select(self, records, chosen(fields), rename))

    def filter(self, where: str) -> View:
        """Return a view of the records for which an expression holds: ``ds.filter("label = 'cat' and len(boxes) > 0")``.

        The language is the same as in ``penstock inspect filter`` and in Go: see docs/views.md. Raise Error, which shows the place
        in the expression, if it is not one, does not fit the fields, or has no value for a record.
        """
        return View(Select.where(self, where))

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
        return Joined(Join(self, other, {"on": on, "right_on": right_on, "how": how, "many": many, "fill": fill}))

    def derive(self, **expressions: str) -> View:
        """Return a view with more fields, which expressions compute from these: ``ds.derive(ndvi="(nir - red) / (nir + red)")``.

        Expressions have the operators of ``filter`` and NumPy's ``sqrt``, ``exp``, ``log``, ``log1p``, ``abs``, ``minimum``, ``maximum``,
        ``where`` and ``clip``. Shapes of records are broadcast as in NumPy. All is computed in float32 if each field is float32
        or has fewer than 32 bits, and else in float64; a comparison has results of bool. Datasets that were opened with mode="c" are
        refused: what was written to their arrays is in the memory of this process, and the program reads the files.

        Args:
            **expressions: For each new field its expression. A name that exists is refused: ``select(fields=)`` leaves a field out.
        """
        return View(Derive(self, [{"name": name, "expression": text} for name, text in expressions.items()]))

    def zip(self, *others: Source) -> View:
        """Return a view of the fields of several datasets side by side: record i has the values of record i of each dataset.

        All must have the same number of records, and fields of different names: ``other.select(rename={"x": "y"})``.
        """
        return View(Zip([self, *others]))

    def concat(self, *others: Source, fill: Mapping[str, Any] | None = None) -> View:
        """Return a view of the records of several datasets, one after the other. A field of several must be the same in each.

        Args:
            others: The datasets and views that follow.
            fill: A value for each field that is missing in some of them, as in ``join``. Without it, all must have the same
                fields.
        """
        return View(Concat([self, *others], fill))

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
            pad: Elements beyond the edges, by axis or of all: "constant" (``fill``), "edge", "reflect" or "wrap". None refuses them.
            keep: "full" leaves out windows that reach beyond an edge, which nothing does with "wrap". "partial" has one for every element;
                it is the default with ``pad``.
            dims: The names of the axes of fields, in place of the file's names: ``{"t2m": ["time", "lat", "lon"]}``.
            group: A field, or an array with a value for each record: windows never cross from one value to another. With a
                field, they do not cross from one dataset of ``concat`` to the next either, as episodes count from 0 in each.
            ranges: Ranges [first, end) of records that windows never leave.
            origins: The positions of windows in place of a grid: an array with one row each, and one column for each axis of ``sizes``, in the
                order in which the first field has them, which is the order of ``axes``.
            outputs: The fields of the records, by name: ``of``, the field, and ``sizes``, ``dilation`` and ``lead`` by axis, in place of
                the values of the windows. ``lead`` is how far the first element is from the origin. None means every field that has an axis
                of ``sizes``. A window of a field of image files has content "images"; other fields of variable length cannot be cut.
            others: More datasets with fields, which may have other numbers of records.
            coords: The axes whose coordinates each record has as a field with the name of the axis: True is all of ``sizes`` that have
                coordinates in the file.
        """
        parameters = [("stride", stride), ("dilation", dilation), ("offset", offset), ("pad", pad), ("fill", fill or None), ("keep", keep),
                      ("dims", dims)]  # fmt: skip
        by, table = described(sizes, parameters, group, len(self), ranges, outputs), table_of(origins)
        added = self._coordinates(by, coords, [f for part in (self, *others) for f in part.fields])
        try:
            view = Windowed(Window([self, *others, *added], by, table))
        except BaseException:
            for ds in added:
                ds.close()
            raise
        view._owned = list(added)
        return view

    def _coordinates(self, by: dict[str, Any], coords: bool | Iterable[str], fields: Sequence[str]) -> list[Any]:
        """Open the coordinates of axes that windows have, except coordinates that are fields already, and add them to the
        outputs.
        """
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


#: The methods of a Dataset that change it.
_CHANGES = ("add_column", "set_column", "drop_columns", "rename_column", "delete", "restore_records", "restore")


class View(Viewable):
    """Records and fields of other datasets: what ``select``, ``zip`` and ``concat`` return, and ``penstock.open`` of a .view.json file.

    It is used like a Dataset, and holds no data: a slice of consecutive records is a view of the files. ``penstock.DataLoader``
    takes it. Closing a view closes no dataset, unless ``penstock.open`` opened them for it.
    """

    mode = "r"
    split = None
    _chosen = None

    def __init__(self, kind: Kind) -> None:
        parts, count = kind.parts, kind.count
        if count > MAX_RECORDS:
            raise Error(f"a view of {count} records; at most {MAX_RECORDS} are possible")
        self.depth, self.size = 1 + max(part.depth for part in parts), sum(part.size for part in parts)
        if self.depth > MAX_DEPTH:
            raise Error(f"views are nested deeper than {MAX_DEPTH}; write one into a dataset: penstock preprocess VIEW DEST")
        if self.size > MAX_DATASETS:
            raise Error(f"a view of {self.size} datasets, each as often as it is named; at most {MAX_DATASETS} are possible")
        self._kind, self.parts_of, self.fields, self._records = kind, parts, kind.fields, kind.records
        self._places = Places([Piece(0, 0, count)])
        self._read_together(kind.opened, as_they_are)
        self._file = ""
        self._owned: list[Any] = []
        self._samples = ""  # the raw samples that it is the cache of

    if not TYPE_CHECKING:  # where a View has no such methods

        def __getattr__(self, name: str) -> Any:
            """Return the method of a Dataset that changes it, of raw samples that are opened through a view: it says what to do."""
            samples = self.__dict__.get("_samples")
            if not samples or name not in _CHANGES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            from .._write.changing import refuse_cached  # which starts programs, as few views do

            return lambda *_, **__: refuse_cached(samples)

    @property
    def path(self) -> str:  # type: ignore[override]
        """The file of the view: that which ``penstock.open`` read, or a temporary one, for the process that reads the records of a DataLoader."""
        if not self._file:
            check_shared(self)
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
        return [d for part in self.parts_of for d in part.datasets()]

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
        for k, part in enumerate(list(_nodes(node))):
            for key in ("records", "origins"):
                if isinstance(part.get(key), np.ndarray) and len(part[key]) > MOST_INLINE:
                    name = f"{file[: -len(SUFFIX)]}.{key}-{k}.npy"
                    with files.replacing(name) as f:
                        np.save(f, part[key])
                    part[key] = os.path.basename(name)
        with files.replacing(file, "w", encoding="utf-8") as f:
            json.dump(node, f, ensure_ascii=False, default=np.ndarray.tolist)
            f.write("\n")

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        """Return the view as JSON, with its paths as ``path`` writes them: see Source."""
        return self._kind.to_json(path, found)

    @property
    def id(self) -> str:
        """It is "": a view has the identity of its datasets, records and fields, which the loader computes."""
        return ""

    def check_place(self) -> None:
        """Raise Error if another dataset has taken the place of a dataset of the view at its path."""
        for d in self.datasets():
            d.check_place()

    def source_name(self, record: int) -> str:
        """Return what the source called a record; "" if no dataset of the view knows it."""
        return self._kind.source_name(self._places.index(record))

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


class Joined(View):
    """Fields of two datasets: what ``join`` returns."""

    @property
    def unmatched(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the records of the left side, and of the right side, without a match."""
        return self._kind.computed.left, self._kind.computed.right


class Windowed(View):
    """Windows of arrays: what ``windows`` returns."""

    def __init__(self, kind: Window) -> None:
        super().__init__(kind)
        self._window, self._windows = kind, kind.windows
        self._coordinates_of: dict[str, np.ndarray | None] = {}  # by axis, once they are read

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
        for name, given in (("ranges", self._window.by.get("within")), ("origins", self._windows.table)):
            if given is not None:
                raise Error(f"partition: these windows have {name} already; partition windows without")
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
        ranges = divided(self.parts_of[0], shares, axis.length, group, block, gap, seed)
        out = {}
        for name, of_name in zip(shares, ranges):
            by = {**self._window.by, "within": [list(r) for r in of_name], **({"along": along} if along else {})}
            try:
                out[name] = Windowed(Window(self.parts_of, by))
            except Error as e:
                raise Error(f"partition: {name!r} has the ranges {of_name!r:.200}: {e}") from e
        return out

    def coords(self, records: Any, field: str | None = None) -> dict[str, np.ndarray]:
        """Return the coordinates of the elements of windows, by axis: an array with one row for each record.

        They come from the file or, for an axis without coordinates, are the positions of the elements; -1 is beyond an edge.

        Args:
            records: Record numbers, such as the ``indices`` of a batch.
            field: The field whose windows are meant, if fields have windows of their own; None is the first of these fields.
        """
        out, origins, found = self.output(field), self.origins(records), {}
        for k, cut in enumerate(out.cuts):
            if cut.axis is not None:
                axis = self._windows.axes[cut.axis].name
                places = self._windows.elements(out, k, origins)
                values = self._values_of(axis)
                found[axis] = places if values is None or len(values) != cut.length else _at_places(values, places)
        return found

    def output(self, field: str | None) -> Output:
        """Return a field of the windows; None is the first field."""
        outputs = self._windows.outputs
        out = outputs[0] if field is None else next((o for o in outputs if o.field.name == field), None)
        if out is None:
            raise MissingError(f"{urls.redacted(self.path)}: no field {field!r:.100}; there are: {listed(self.fields)}")
        return out

    def _values_of(self, axis: str) -> np.ndarray | None:
        """Return the coordinates of an axis, None if the files have no coordinates."""
        if axis not in self._coordinates_of:
            self._coordinates_of[axis] = None
            for part in self.parts_of:
                if axis in part.coordinates():
                    with part.coordinates()[axis]() as ds:
                        self._coordinates_of[axis] = np.array(next(iter(ds._records.values())))
                    break
        return self._coordinates_of[axis]

    def assemble(self, field: str | None = None, *, weights: Any = None, fill: float = np.nan) -> Assembled:
        """Return an array that results for windows are added to: ``add(batch.indices, predictions)``, and then ``numpy()``.

        Args:
            field: The field whose windows the results have; None is the first field.
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


def _at_places(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return values at places; beyond an edge NaN, of integers -1."""
    out: np.ndarray = values.take(np.maximum(places, 0))
    if (places < 0).any():
        out[places < 0] = np.nan if out.dtype.kind == "f" else -1
    return out


#: The kinds of views that are of other views.
_KINDS = ("select", "zip", "concat", "window", "join", "derive")


def parts_of(node: Mapping[str, Any]) -> list[Any]:
    """Return the views that a view in JSON is of."""
    of: Any = next((node[kind] for kind in _KINDS if kind in node), [])
    return of if isinstance(of, list) else [of]


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a view in JSON, and all views that it is of."""
    yield node
    for part in parts_of(node):
        yield from _nodes(part)


def read(path: str, fields: Sequence[str] | None, opener: Opener) -> View:
    """Open the view in a file. Its datasets are closed with it."""
    node = shared().ask({"view": os.path.abspath(path)})["view"]
    try:
        view = _ViewReader(opener).view(node, fields)
    except Error as e:
        raise type(e)(f"view {path}: {e}") from e
    view._file = path
    return view


def _again(node: dict[str, Any], opener: Opener, computed: Iterable[Any]) -> View:
    """Make a view that was pickled, with what programs have computed for it."""
    return _ViewReader(opener, iter(computed)).view(node, None)


def _computed(view: View) -> Iterator[Any]:
    """Yield what programs have computed for a view and its parts, in the order in which a _ViewReader needs it."""
    for part in view.parts_of:
        if isinstance(part, View):
            yield from _computed(part)
    if view._kind.computed is not None:
        yield view._kind.computed


def _numbers(of: Any) -> np.ndarray:
    """Return the numbers of a view in JSON: a list, an array, or the path of one."""
    if isinstance(of, str):
        from .containers import numbers

        return numbers(of)
    return of if isinstance(of, np.ndarray) else np.array(of, np.int64)


class _ViewReader:
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

    def _source(self, node: dict[str, Any]) -> Viewable:
        if "dataset" in node:
            return self._dataset(node)
        if "select" in node:
            return self._select(node)
        parts = [self._source(part) for part in parts_of(node)]
        if "window" in node:
            table = _numbers(node["origins"]) if "origins" in node else None
            return Windowed(Window(parts, node["by"], table, next(self._computed) if self._computed else None))
        if "derive" in node:
            return View(Derive(parts[0], node["expressions"]))
        if "join" in node:
            return Joined(Join(parts[0], parts[1], node["match"], next(self._computed) if self._computed else None))
        return View(Zip(parts) if "zip" in node else Concat(parts, node.get("fill")))

    def _dataset(self, node: dict[str, Any]) -> Viewable:
        path = urls.value(node["dataset"])
        ds: Viewable = self._open(path, node.get("fields"), node.get("split"))
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
            view = View(Select.where(base, where, next(self._computed) if self._computed else None))
            return view if fields is None and not rename else view.select(fields=fields, rename=rename)
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
            numbers = _numbers(numbers)
            low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, -1)
            if low < 0 or high >= len(base):
                raise Error(f"record {low if low < 0 else high} is out of range: there are {len(base)}")
        return View(Select(base, numbers, fields, rename))
