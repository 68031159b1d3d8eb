"""Windows of arrays: which there are, and their values. package loader/combine has the same in Go."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from .._base.dataclass import dataclass
from .._base.errors import Error
from .._base.options import Pad
from .._base.values import floats, full
from ..order import shuffle
from .field import Field, numpy_type
from .groups import are_missing, borders

PADS = get_args(Pad)


@dataclass
class Cut:
    """How a field is cut along an axis; ``axis`` is None where it stays whole."""

    axis: int | None
    length: int
    size: int
    dilation: int = 1
    lead: int = 0

    @property
    def span(self) -> int:
        """How far the last element of a window is after its first one."""
        return (self.size - 1) * self.dilation

    def start(self, origins: Any) -> Any:
        """Return the first elements of the windows with some origins."""
        return origins + self.lead


@dataclass
class Axis:
    """An axis on which windows have an origin. ``least`` and ``most`` are where the first and the last element of any field are from there."""

    name: str
    length: int
    stride: int = 1
    offset: int = 0
    pad: str = ""
    least: int = 0
    most: int = 0
    first: int = 0
    count: int = 0
    records: bool = False  # whether it is the first axis of a field

    def grid(self, run: tuple[int, int]) -> tuple[int, int]:
        """Return the first origin of a run, and how many there are."""
        first, end = run
        if not self.pad:
            first, end = first - min(0, self.least), end - max(0, self.most)
        first += self.offset
        return first, max(0, -(-(end - first) // self.stride))

    def add(self, cut: Cut) -> None:
        """Add the cut of a field."""
        if cut.length != self.length:
            raise Error(f"window: axis {self.name!r} has {cut.length} elements, and {self.length} in another field")
        self.least, self.most = min(self.least, cut.lead), max(self.most, cut.lead + cut.span)


@dataclass
class Output:
    """A field of the records, and the field that it is taken from."""

    field: Field
    of: str
    cuts: list[Cut] = dataclasses.field(default_factory=list)
    fill: Any = 0  # as it is stored


class Windows:
    """The windows that a description, as it is in a view, has over arrays with these shapes, records first."""

    def __init__(
        self, by: Mapping[str, Any], fields: Mapping[str, Field], shapes: Mapping[str, tuple[int, ...]], group: np.ndarray | None, records: int
    ) -> None:
        self.fill = _fill(by.get("fill", 0))
        self.axes: list[Axis] = []
        self.outputs: list[Output] = []
        sizes = by.get("sizes") or {}
        if not sizes:
            raise Error("window: no axis has a size")
        dims = {name: (by.get("dims") or {}).get(name) or _axes_of(f.dims, len(shapes[name]), sizes) for name, f in fields.items()}
        for name in by.get("dims") or {}:
            if name not in fields:
                raise Error(f"window: dims has the field {name!r}, which there is not; there are: {', '.join(fields)}")
        for name, names in dims.items():
            if len(names) != len(shapes[name]):
                raise Error(f"window: field {name!r} has {len(shapes[name])} axes, and dims names {len(names)}: {names}")
        self._dims, self._shapes = dims, shapes
        outputs = by.get("outputs") or [{"name": n} for n, f in fields.items() if not f.ragged and any(d in sizes for d in dims[n])]
        if not outputs:
            raise Error(
                f"window: no field has an axis of sizes ({', '.join(sizes)}); the axes are {_axes_in(dims)}; "
                "give sizes by these, or name axes in dims"
            )
        for out in outputs:
            self._add(by, out, fields, shapes, dims)
        for what in ("sizes", "stride", "dilation", "offset", "pad"):
            for name in by.get(what) or {}:
                if name not in [a.name for a in self.axes]:
                    raise Error(f"window: {what} has the axis {name!r}, which no field of the records has with a size; the axes are {_axes_in(dims)}")
        self._set_origins(by, group, records)

    def _add(self, by: Mapping[str, Any], out: Mapping[str, Any], fields: Mapping[str, Field], shapes: Any, dims: Any) -> None:
        name, of = out["name"], out.get("of") or out["name"]
        if of not in fields:
            raise Error(f"window: field {name!r}: there is no field {of!r} to take it from; there are: {', '.join(fields)}")
        f = fields[of]
        if f.ragged:
            raise Error(f"window: records of {of!r} have lengths of their own, and no axes to cut")
        cuts = []
        for key in ("sizes", "dilation", "lead"):
            for axis in out.get(key) or {}:
                if axis not in dims[of] or axis not in by["sizes"]:
                    raise Error(f"window: field {name!r}: axis {axis!r} is not one of {of!r} that sizes cuts: {dims[of]}")
        for dim, length in zip(dims[of], shapes[of]):
            if dim not in by["sizes"]:
                cuts.append(Cut(None, length, length))
                continue

            cut = self._cut(by, out, dim, length)
            self.axes[cut.axis].add(cut)  # type: ignore[index]
            cuts.append(cut)
        if any(c.axis is not None and self.axes[c.axis].pad == "constant" for c in cuts) and not _holds(f.dtype, self.fill):
            raise Error(
                f"window: field {name!r}: fill is {by['fill']}, and {of!r} has {f.dtype}; "
                "choose one that it can have, or leave the field out of outputs"
            )
        fill = full((), self.fill, f.numpy)[()] if f.dtype == "bfloat16" else self.fill
        self.outputs.append(Output(Field(name, f.dtype, tuple(c.size for c in cuts), classes=f.classes, dims=_dims_of(dims[of])), of, cuts, fill))

    def _cut(self, by: Mapping[str, Any], out: Mapping[str, Any], dim: str, length: int) -> Cut:
        def own(key: str, default: int) -> int:
            return int((out.get(key) or {}).get(dim, default))

        cut = Cut(None, length, own("sizes", by["sizes"][dim]), own("dilation", (by.get("dilation") or {}).get(dim, 1)), own("lead", 0))
        if cut.size < 1 or cut.dilation < 1:
            raise Error(f"window: axis {dim!r}: a size of {cut.size} and a dilation of {cut.dilation}; both must be at least 1")
        cut.axis = next((i for i, a in enumerate(self.axes) if a.name == dim), None)
        if cut.axis is None:
            cut.axis = len(self.axes)
            self.axes.append(self._axis(by, dim, cut))
        return cut

    def _axis(self, by: Mapping[str, Any], name: str, cut: Cut) -> Axis:
        of = next(f for f, dims in self._dims.items() if name in dims)
        place = self._dims[of].index(name)
        stride, offset, pad = ((by.get(key) or {}).get(name, default) for key, default in (("stride", 1), ("offset", 0), ("pad", "")))
        if stride < 1 or offset < 0:
            raise Error(f"window: axis {name!r}: a stride of {stride} and an offset of {offset}; they must be at least 1 and 0")
        if pad not in ("", *PADS):
            raise Error(f"window: axis {name!r}: pad is {pad!r}; it must be one of {', '.join(PADS)}")
        return Axis(name, self._shapes[of][place], stride, offset, pad, cut.lead, cut.lead + cut.span, records=place == 0)

    def _set_origins(self, by: Mapping[str, Any], group: np.ndarray | None, records: int) -> None:
        keep = by.get("keep") or ""
        if keep not in ("", "full", "partial"):
            raise Error(f"window: keep is {keep!r}; it must be full or partial")
        for a in self.axes:
            if keep == "partial" and not a.pad:
                raise Error(f"window: keep is partial, and pad does not say what is beyond the edges of axis {a.name!r}; choose {', '.join(PADS)}")
            if keep == "full" and a.pad not in ("", "wrap"):
                raise Error(f"window: keep is full, so that nothing of axis {a.name!r} is padded; leave its pad out")
        self.run_axis: int | None = None
        self.firsts: np.ndarray  # of runs: the first origin, and the number of windows up to the end
        self.ends: np.ndarray
        if by.get("within") is None and by.get("along"):
            raise Error("window: along is the axis of ranges, which are missing")
        if group is not None or by.get("within") is not None:
            self._set_runs(by, group, records)
        table = by.get("origins")
        if isinstance(table, list) and len({len(origin) for origin in table}) > 1:
            raise Error(f"window: origins have different numbers of axes: {', '.join(map(str, sorted({len(origin) for origin in table})[:5]))}")
        self.table: np.ndarray | None = (
            None if table is None else np.asarray(table, np.int64).reshape(len(table), -1 if len(table) else len(self.axes))
        )
        if self.table is not None:
            self.count = len(self.table)
            self._check_table(by, self.table)
            return
        self.count = 1
        for i, a in enumerate(self.axes):
            if i == self.run_axis:
                grids = [a.grid(run) for run in self.runs.tolist()]
                self.firsts, counts = np.array([f for f, _ in grids], np.int64), np.array([c for _, c in grids], np.int64)
                self.ends = np.cumsum(counts)
                a.count = int(self.ends[-1]) if len(grids) else 0
            else:
                a.first, a.count = a.grid((0, a.length))
            if not a.count:
                raise Error(
                    f"window: axis {a.name!r}: no window fits: windows have {a.most - a.least + 1} elements, from {a.least} to {a.most} of "
                    f"the origin, and the axis has {a.length}{self._longest(i)}"
                    f"{f'; the first window is {a.offset} after the first possible one' * bool(a.offset)}"
                )
            self.count *= a.count

    def _longest(self, axis: int) -> str:
        """Return how long the groups and ranges of an axis are."""
        return "" if axis != self.run_axis else f", in groups and ranges of at most {max((b - a for a, b in self.runs.tolist()), default=0)}"

    def _set_runs(self, by: Mapping[str, Any], group: np.ndarray | None, records: int) -> None:
        self.run_axis = next((i for i, a in enumerate(self.axes) if a.records and a.length == records), None)
        along = by.get("along")
        if along:
            names = [a.name for a in self.axes]
            if along not in names:
                raise Error(f"window: along is {along!r}, which is not an axis that windows have an origin on: {', '.join(names)}")
            if group is not None and names.index(along) != self.run_axis:
                raise Error(f"window: groups are of the records, and ranges of axis {along!r}; use one of them, or select records first")
            self.run_axis = names.index(along)
        if self.run_axis is None:
            raise Error(
                "window: groups and ranges are of the records, whose axis is in no window; give it a size, or name the axis of ranges in along"
            )
        axis = self.axes[self.run_axis]
        ranges, length = by.get("within"), axis.length
        runs = [(0, length)] if ranges is None else [(int(a), int(b)) for a, b in ranges]
        for i, (a, b) in enumerate(runs):
            if not 0 <= a < b <= length or (i and a < runs[i - 1][1]):
                raise Error(
                    f"window: range {i} is [{a}, {b}); ranges are of the {length} elements of axis {axis.name!r}, in ascending order, and "
                    "do not overlap"
                )
        changes = np.zeros(0, np.int64) if group is None else borders(group)
        out = []
        for a, b in runs:
            cuts = [a, *changes[np.searchsorted(changes, a, side="right") : np.searchsorted(changes, b)].tolist(), b]
            out += list(zip(cuts, cuts[1:]))
        self.runs = np.array(out, np.int64).reshape(-1, 2)

    def _check_table(self, by: Mapping[str, Any], table: np.ndarray) -> None:
        if by.get("stride") or by.get("offset"):
            raise Error("window: stride and offset are for a grid of origins, and origins has them one by one; leave them out")
        if len(table) and table.shape[1] != len(self.axes):
            names = ", ".join(a.name for a in self.axes)
            raise Error(f"window: origins have {table.shape[1]} numbers, and there are {len(self.axes)} axes: {names}")
        for k, a in enumerate(self.axes):
            at = table[:, k] if len(table) else np.zeros(0, np.int64)
            lo, hi = self._bounds(k, at)
            outside, beyond = (at < lo) | (at >= hi), (at + a.least < lo) | (at + a.most >= hi)
            if outside.any():
                i = int(np.flatnonzero(outside)[0])
                raise Error(
                    f"window: origin {i} is {at[i]} on axis {a.name!r}, which has {a.length} elements; "
                    f"origins must be inside the axis{self._longest(k)}"
                )
            if not a.pad and beyond.any():
                i = int(np.flatnonzero(beyond)[0])
                raise Error(
                    f"window: origin {i} is {at[i]} on axis {a.name!r}, and its window has the elements from {at[i] + a.least} to "
                    f"{at[i] + a.most} of those from {lo[i]} to {hi[i] - 1}; choose a pad, or leave the origin out"
                )

    def origins(self, records: np.ndarray) -> np.ndarray:
        """Return the origins of records: one row each, with one number for each axis."""
        if self.table is not None:
            found: np.ndarray = self.table[records]
            return found
        out = np.empty((len(records), len(self.axes)), np.int64)
        rest = np.asarray(records, np.int64)
        for k in range(len(self.axes) - 1, -1, -1):
            a = self.axes[k]
            rest, i = np.divmod(rest, a.count)
            if k == self.run_axis:
                r = np.searchsorted(self.ends, i, side="right")
                out[:, k] = self.firsts[r] + (i - np.concatenate([[0], self.ends])[r]) * a.stride
            else:
                out[:, k] = a.first + i * a.stride
        return out

    def _bounds(self, k: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the range of elements that windows with these origins may have of an axis."""
        if k != self.run_axis:
            return np.zeros(len(at), np.int64), np.full(len(at), self.axes[k].length)
        runs = self.runs
        r = np.searchsorted(runs[:, 0], at, side="right") - 1
        known = (r >= 0) & (at < runs[r, 1])
        return np.where(known, runs[r, 0], 0), np.where(known, runs[r, 1], 0)

    def elements(self, out: Output, axis: int, origins: np.ndarray) -> np.ndarray:
        """Return the elements that windows have of an axis of a field: one row each, with -1 for the fill."""
        c = out.cuts[axis]
        steps = np.arange(c.size) * c.dilation
        if c.axis is None:
            return np.broadcast_to(steps, (len(origins), c.size))
        at = origins[:, c.axis]
        index: np.ndarray = c.start(at)[:, None] + steps
        lo, hi = (bound[:, None] for bound in self._bounds(c.axis, at))
        inside, n = (index >= lo) & (index < hi), hi - lo
        if inside.all():
            return index
        pad = self.axes[c.axis].pad
        if pad == "wrap":
            index = lo + (index - lo) % n
        elif pad == "reflect":
            i = (index - lo) % np.maximum(1, 2 * (n - 1))
            index = lo + np.minimum(i, np.maximum(0, 2 * (n - 1) - i))
        else:
            index = np.where(inside, index, -1)
        return index

    def take(self, out: Output, base: Any, records: np.ndarray, dst: np.ndarray) -> None:
        """Copy windows of a field, whose array has the records of ``base``."""
        origins = self.origins(records)
        index = [self.elements(out, k, origins) for k in range(len(out.cuts))]
        for i in range(len(records)):
            places = [elements[i] for elements in index]
            known = [at[at >= 0] for at in places]
            if not all(map(len, known)):
                dst[i] = out.fill
                continue
            box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in known)
            part = base.region(box)
            for k, at in enumerate(places):
                if len(at) != part.shape[k] or at[0] != box[k].start or (at[1:] - at[:-1] != 1).any():
                    part = part.take(np.maximum(at - box[k].start, 0), axis=k, mode="clip")
            dst[i] = part
            for k, at in enumerate(places):
                if len(known[k]) < len(at):
                    dst[(i, *[slice(None)] * k, at < 0)] = out.fill

    def run(self, out: Output, base: Any, start: int, stop: int) -> np.ndarray | None:
        """Return windows [start, stop) as a view of the array, if they are: of whole consecutive records, at even distances."""
        c = out.cuts[0]
        if (
            not base.mapped
            or start >= stop
            or c.axis is None
            or c.dilation != 1
            or any(o.axis is not None for o in out.cuts[1:])
            or len(self.axes) != 1
        ):
            return None
        rows = self.elements(out, 0, self.origins(np.array([start, stop - 1], np.int64)))
        stride = self.axes[0].stride
        if self.table is not None or (rows < 0).any() or rows[1, 0] != rows[0, 0] + (stop - 1 - start) * stride or (np.diff(rows, axis=1) != 1).any():
            return None
        part = base[int(rows[0, 0]) : int(rows[1, -1]) + 1]
        if part.flags.owndata:
            return None
        seen = np.lib.stride_tricks.sliding_window_view(part, c.size, axis=0)[::stride]
        return np.moveaxis(seen, -1, 1)


def _fill(fill: Any) -> float:
    """Return the fill of a view. It is never rounded, but for a decimal fraction to the nearest float64."""
    try:
        number = float("" if isinstance(fill, bool) else fill)
    except (TypeError, ValueError, OverflowError):
        raise Error(f"window: fill is {fill}, which is not a number of float64") from None
    if isinstance(fill, int) and number != fill:
        raise Error(f"window: fill is {fill}, which float64 rounds to {int(number)}; choose one that is exact, such as a whole number up to 2**53")
    return number


def _holds(dtype: str, x: float) -> bool:
    """Return whether a type has a number, in the precision that it has."""
    if dtype == "bool":
        return x in (0, 1)
    if dtype.startswith(("int", "uint")):
        return x.is_integer() and np.iinfo(dtype).min <= int(x) <= np.iinfo(dtype).max
    with np.errstate(over="ignore"):
        rounded = float(floats(full((), x, numpy_type(dtype)), np.dtype(np.float64)))
    return math.isfinite(rounded) or not math.isfinite(x)


def check_groups(values: np.ndarray, name: str) -> None:
    """Raise Error if a record has no value of a group. Each such record would be a group of its own, and windows would be dropped."""
    missing = are_missing(values).reshape(len(values), -1).any(axis=1)
    if missing.any():
        record = int(np.argmax(missing))
        raise Error(
            f"window: {name}: record {record} has the value {values[record]}, which is equal to no other, so that it is not that of a group; "
            f"give the {int(missing.sum())} such records a value, or select the other records first"
        )


def parts_of_axis(n: int, shares: Sequence[float], block: int | None, gap: int, seed: int) -> list[list[tuple[int, int]]]:
    """Return the ranges of n elements that belong to each part: ``combine.Splits`` in Go.

    They follow each other or, with a block, are blocks of N elements that are drawn by seed. ``gap`` elements are left out where
    another part ends.
    """
    total = n if block is None else -(-n // block)
    ends = _ends(total, shares)
    part = np.full(total, -1)
    drawn = np.arange(total) if block is None else shuffle(total, seed, 0)[:]
    for k, (a, b) in enumerate(zip([0, *ends], ends)):
        part[drawn[a:b]] = k
    cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), total] if total else [0]
    out: list[list[tuple[int, int]]] = [[] for _ in shares]
    for a, b in zip(cuts, cuts[1:]):
        first, end = (a, b) if block is None else (a * block, min(n, b * block))
        if a:
            first += gap
        if part[a] >= 0 and first < end:
            out[part[a]].append((first, end))
    return out


def parts_of_groups(values: np.ndarray, shares: Sequence[float], seed: int) -> list[list[tuple[int, int]]]:
    """Return the ranges of records that belong to each part. All records with one value are in one part, which is drawn by seed."""
    rows = values.reshape(len(values), -1)
    cuts = [0, *borders(rows).tolist(), len(rows)]
    number: dict[bytes, int] = {}
    group = [number.setdefault(rows[a].tobytes(), len(number)) for a in cuts[:-1]]
    ends, drawn = _ends(len(number), shares), shuffle(len(number), seed, 0)[:]
    part = np.full(len(number), -1)
    for k, (a, b) in enumerate(zip([0, *ends], ends)):
        part[drawn[a:b]] = k
    return [[(a, b) for a, b, g in zip(cuts, cuts[1:], group) if part[g] == k] for k in range(len(shares))]


def _ends(n: int, shares: Sequence[float]) -> list[int]:
    """Return where parts of n elements end."""
    if not shares or not all(x > 0 for x in shares) or sum(shares) > 1 + 1e-9:
        raise ValueError(f"the shares are {list(shares)}; they must be above 0, and at most 1 in all")
    return [min(n, round(n * float(x))) for x in np.cumsum(shares)]


def _axes_of(dims: Sequence[str], n: int, sizes: Mapping[str, Any]) -> list[str]:
    """Return the names of n axes. One is known by its number if it has no name, if another one has the same, or if sizes has this number."""
    known = dims if len(dims) == n else [""] * n
    return [str(k) if not name or str(k) in sizes or list(known).count(name) > 1 else name for k, name in enumerate(known)]


def _dims_of(axes: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the axes of windows, the first of which numbers these; none if there are only numbers."""
    names = ["" if name.isdecimal() else name for name in axes]
    return ("", *names) if any(names) else ()


def _axes_in(dims: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{', '.join(axes)} of {name}" for name, axes in dims.items())


def described(
    sizes: Mapping[Any, int],
    others: Iterable[tuple[str, Any]],
    group: Any,
    records: int,
    ranges: Any,
    outputs: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """Return windows as they are in a view. Values for all axes are by axis."""
    by: dict[str, Any] = {"sizes": _by_axis("sizes", sizes)}
    for name, value in others:
        if name == "origins" and value is not None:
            by[name] = _table(value)
        elif value is None or value == {} or value == "":
            continue
        elif name == "pad":
            by[name] = {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else dict.fromkeys(by["sizes"], value)
        elif name == "fill":
            by[name] = _number(value)
        elif name in ("stride", "dilation", "offset"):
            by[name] = _by_axis(name, value if isinstance(value, Mapping) else dict.fromkeys(by["sizes"], value))
        elif name == "dims":
            by[name] = {k: list(v) for k, v in value.items()}
        else:
            by[name] = value
    if "fill" in by and "constant" not in by.get("pad", {}).values():
        raise ValueError(f"fill is {by['fill']}, and no axis has pad='constant', which it is for; choose that pad, or leave fill out")
    if isinstance(group, str):
        by["group"] = group
    elif group is not None:
        values = np.asanyarray(group)
        if len(values) != records:
            raise ValueError(f"group has {len(values)} values for {records} records")
        check_groups(values, "group")
        if ranges is not None:
            raise ValueError("both ranges and values of a group are given; give ranges of one group each")
        cuts = [0, *borders(values).tolist(), records]
        ranges = list(zip(cuts, cuts[1:]))
    if ranges is not None:
        by["within"] = [[int(a), int(b)] for a, b in ranges]
    if outputs is not None:
        by["outputs"] = [{"name": name, **_by_name(out)} for name, out in outputs.items()]
    return by


def _by_name(out: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(out, Mapping):
        raise TypeError(f"outputs: a field is {out!r}; write what it is of: {{'of': {out!r}}}")
    for key in out:
        if key not in ("of", "sizes", "dilation", "lead"):
            raise TypeError(f"outputs: {key!r} is none of of, sizes, dilation and lead")
    return {k: v if k == "of" else _by_axis(f"outputs: {k}", v) for k, v in out.items()}


def _by_axis(name: str, values: Any) -> dict[str, int]:
    """Return whole numbers by the names of axes."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} is {values!r}; it is a dict with a whole number for each axis: {{'time': 24}}")
    return {str(axis): whole(f"{name} of axis {axis!r}", n) for axis, n in values.items()}


def whole(name: str, value: Any) -> int:
    """Return a whole number. It is never rounded."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be a whole number") from None


def _number(value: Any) -> float | int | str:
    """Return a number as JSON has it: NaN and infinities, which it has not, are text."""
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, (bool, int, float)):
        raise TypeError(f"fill is {value!r}; it must be a number")
    _fill(number + 0)
    return number + 0 if math.isfinite(number) else {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(number)]


def _table(origins: Any) -> list[list[int]]:
    table = np.asarray(origins)
    if table.ndim == 1:
        table = table.reshape(-1, 1)
    if not table.size or table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise ValueError(
            f"origins have shape {np.shape(origins)} and are {table.dtype}; they are whole numbers, a row for each window and a column for each axis"
        )
    rows: list[list[int]] = table.tolist()
    return rows
