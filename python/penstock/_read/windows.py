"""Windows of arrays, as a kind of view: how they are described, divided into parts, and their values. The program says where they are."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .._base.dataclass import dataclass
from .._base.errors import Error
from .._base.options import count, finite
from .._base.values import full
from ..samplers import MAX_SEED
from .combined import Kind
from .field import IMAGES, Field, from_json
from .groups import are_missing, borders
from .ragged import IMAGE_HEAD, DerivedRagged, Ragged, RaggedRecords, batch_of, framed
from .reader import OpenedDataset, shared
from .records import Derived, Records
from .source import Source, asked, check_source


@dataclass(frozen=True)
class Cut:
    """How a field is cut along an axis; ``axis`` is None where it stays whole."""

    axis: int | None
    length: int
    size: int
    dilation: int
    lead: int


@dataclass(frozen=True)
class Axis:
    """An axis on which windows have an origin; ``records`` says whether it is the first axis of a field."""

    name: str
    length: int
    stride: int
    pad: str
    first: int
    count: int
    records: bool


@dataclass(frozen=True)
class Output:
    """A field of the records, and the field that it is taken from."""

    field: Field
    of: str
    cuts: list[Cut]
    fill: Any  # as it is stored


class Windows:
    """Windows of arrays: ``placed`` is a combine.Placement of Go, ``count`` their number, ``by`` their description in a view, and
    ``table`` their origins, None for a grid.
    """

    def __init__(self, placed: Mapping[str, Any], fields: Sequence[Field], count: int, by: Mapping[str, Any], table: np.ndarray | None) -> None:
        fill = float(by.get("fill", 0))
        self.count = count
        self.axes = [Axis(**axis) for axis in placed["axes"]]
        self.outputs = [
            Output(f, of["of"], [Cut(**cut) for cut in of["cuts"]], full((), fill, f.numpy)[()] if f.dtype == "bfloat16" else fill)
            for f, of in zip(fields, placed["fields"])
        ]
        self.run_axis: int | None = placed["run_axis"]
        self.runs = np.array(placed.get("runs", ()), np.int64).reshape(-1, 2)
        # Of runs: the first origin, and the number of windows up to the end.
        self.firsts, self.ends = (np.array(placed.get(name, ()), np.int64) for name in ("firsts", "ends"))
        self.table = None if table is None else np.asarray(table, np.int64).reshape(count, len(self.axes))

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
        index: np.ndarray = (at + c.lead)[:, None] + steps
        lo, hi = (bound[:, None] for bound in self._bounds(c.axis, at))
        inside, n = (index >= lo) & (index < hi), hi - lo
        if inside.all():
            return index
        pad = self.axes[c.axis].pad
        if pad == "wrap":
            index = lo + (index - lo) % n
        elif pad == "edge":
            index = np.clip(index, lo, hi - 1)
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


class WindowRecords(Derived):
    """Windows of a field as records."""

    def __init__(self, windows: Windows, out: Output, base: Records) -> None:
        super().__init__(out.field, base.dtype, out.field.shape, windows.count)
        self._windows, self._out, self._base = windows, out, base

    def fill(self, records: np.ndarray, out: np.ndarray) -> None:
        self._windows.take(self._out, self._base, records, out)

    def _range(self, start: int, stop: int) -> np.ndarray:
        seen = self._windows.run(self._out, self._base, start, stop)
        return super()._range(start, stop) if seen is None else seen


class WindowImages(DerivedRagged):
    """Windows of a field of image files as records of content "images": the files of each window's records."""

    def __init__(self, windows: Windows, out: Output, base: RaggedRecords) -> None:
        super().__init__(out.field, base.dtype, windows.count)
        self._windows, self._out, self._base = windows, out, base

    @property
    def lengths(self) -> np.ndarray:
        """The number of bytes of every record, as int64."""
        lengths = self._base.lengths[self._records(np.arange(len(self)))]
        if self._base.field.content != IMAGES:
            lengths = lengths + IMAGE_HEAD
        out: np.ndarray = lengths.sum(1)
        return out

    def _records(self, windows: np.ndarray) -> np.ndarray:
        """Return the records of the field that windows have, one row each."""
        return self._windows.elements(self._out, 0, self._windows.origins(windows))

    def _many(self, records: np.ndarray) -> Ragged:
        rows = self._records(records)
        some = self._base.take(rows.ravel())
        values, ends = some.values, some.offsets
        if self._base.field.content != IMAGES:
            values = framed(some)
            ends = ends + IMAGE_HEAD * np.arange(len(ends))
        return batch_of(self.field, values, ends[:: rows.shape[1]])


class Window(Kind):
    """Windows of arrays."""

    def __init__(self, parts: Sequence[Source], by: dict[str, Any], table: np.ndarray | None = None, placed: dict[str, Any] | None = None) -> None:
        """Take the datasets that are cut into windows, the description of the windows, their origins where they are no grid, and
        the program's answer about them, if it was asked.
        """
        bases: dict[str, Any] = {}
        for part in parts:
            check_source(part)
            bases.update(part._records)
        placed = self.computed = _placed(parts, by, table) if placed is None else placed
        fields = [from_json(f) for f in placed["fields"]]
        self.by, self.windows = by, Windows(placed["windows"], fields, placed["records"], by, table)
        records = {o.field.name: (WindowImages if o.field.ragged else WindowRecords)(self.windows, o, bases[o.of]) for o in self.windows.outputs}
        super().__init__(parts, {f.name: f for f in fields}, records, self.windows.count)

    def to_json(self, path: Callable[[str], str], found: bool) -> dict[str, Any]:
        parts = [part.to_json(path, found) for part in self.parts]
        return _json(parts, self.by, self.windows.table)

    def source_name(self, record: int) -> str:
        return ""


def check_groups(values: np.ndarray, name: str) -> None:
    """Raise Error if a record has no value of a group. Each such record would be a group of its own, and windows would be dropped."""
    missing = are_missing(values).reshape(len(values), -1).any(axis=1)
    if missing.any():
        record = int(np.argmax(missing))
        raise Error(
            f"window: {name}: record {record} has the value {values[record]}, which equals no other and so belongs to no group; "
            f"give the {int(missing.sum())} such records a value, or select the other records first"
        )


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
        if value is None or value == {} or value == "":
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


def _json(parts: list[Any], by: Mapping[str, Any], table: np.ndarray | None) -> dict[str, Any]:
    """Return windows as a view has them."""
    return {"window": parts[0] if len(parts) == 1 else parts, "by": by, **({} if table is None else {"origins": table.ravel()})}


def _placed(parts: Sequence[Source], by: Mapping[str, Any], table: np.ndarray | None) -> dict[str, Any]:
    """Return what the program says of windows."""
    reads = bool(by.get("group"))
    opened = OpenedDataset(shared(), {"view": _json([asked(part, reads) for part in parts], by, table)})
    opened.close()
    return opened.found


def divided(
    records: Source, shares: Mapping[str, Any], length: int, group: str | None, block: int | None, gap: int, seed: int | None
) -> list[list[tuple[int, int]]]:
    """Return the ranges of an axis of that length that each part has: see Windowed.partition. Groups are of the records."""
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
        request = {"shares": [finite("a share", share) for share in shares.values()], "gap": gap, "block": block, "seed": seed, "length": length}
        if group is not None:
            request |= {"view": asked(records), "group": group}
        return [of_name or [] for of_name in shared().ask({"split": request})["ranges"]]
    if any(numbers) or group is not None or block is not None or gap:
        raise ValueError("shares are all numbers or all ranges; group, block and gap are for numbers")
    ranges = [[(int(a), int(b)) for a, b in of_name] for of_name in shares.values()]
    every = sorted(r for of_name in ranges for r in of_name)
    for (_, end), (first, last) in zip(every, every[1:]):
        if first < end:
            raise ValueError(f"range [{first}, {last}) overlaps the one that ends at {end}; elements would be in two parts")
    return [sorted(of_name) for of_name in ranges]


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
    return number + 0 if isinstance(number, int) or math.isfinite(number) else {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(number)]


def table_of(origins: Any) -> np.ndarray | None:
    """Return the given origins as int64: a row for each window. They are a copy."""
    if origins is None:
        return None
    table = np.asarray(origins)
    if table.ndim == 1:
        table = table.reshape(-1, 1)
    if not table.size or table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise ValueError(
            f"origins have shape {np.shape(origins)} and are {table.dtype}; they are whole numbers, a row for each window and a column for each axis"
        )
    if table.dtype == np.uint64 and table.max() > np.iinfo(np.int64).max:
        raise ValueError(f"origins have the number {table.max()}, which no axis has")
    return np.array(table, np.int64)
