"""A dataset of a function's results for a list of inputs, computed by several processes.

It is ``penstock.map``: tasks.py runs the function, and a Writer takes the records in the order of the inputs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._base import values
from .._base.batched import AT_ONCE, SETTLING, is_batched, together
from .._base.errors import Error
from .._base.limits import cores
from .._base.options import count
from .._read.field import Field
from .._write import codec
from .._write.writer import Path, Writer, merge
from . import digest, engines, tasks

Function = Callable[[Any], Mapping[str, Any]]

#: Inputs of a task: at first, and at most. A task costs a worker and this process some 40 us.
_FIRST, _MOST = 16, 64
#: Tasks of each worker at least, and bytes of results of a task at most, if there are several.
_TURNS, _BYTES = 8, 1 << 20


def map_inputs(
    function: Function,
    inputs: Iterable[Any],
    path: Path,
    *,
    workers: int | None = None,
    chunksize: int | None = None,
    schema: Sequence[Field] | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    engine: Literal["ray", "dask", "spark", "slurm"] | None = None,
    on_error: Literal["fail", "skip"] = "fail",
    **options: Any,
) -> dict[str, Any]:
    """Write the dataset whose record i is ``function(inputs[i])``, a dict of its fields, and return its summary.

    ::

        def sample(path):
            return {"images": path, "labels": path.parent.name == "cat"}

        penstock.map(sample, sorted(Path("photos").rglob("*.jpg")), "data/train", keep_encoded=True)

    Args:
        function: It makes a record of an input; or, marked by ``penstock.batched``, a list of records of a list of inputs.
        inputs: A sequence, or any iterable, in the same order in all ranks and when it is resumed: sort
            what a folder lists. They are compared by a digest of their values: numbers, text, paths and
            arrays, and of other objects what pickle keeps, or their class alone where it keeps nothing. An
            object that makes its items when it is indexed, such as a map-style dataset of torch, is
            indexed from 0 on, and counts as one object. A pandas Series is taken by position.
        path: A folder or, if it ends in .h5, an HDF5 file.
        workers: Processes that call the function; 0 calls it in this one, and the default is one a
            core. The dataset does not depend on their number.
        chunksize: Inputs that a worker gets at a time. By default up to 64, with results of 1 MiB or less, and an eighth of a worker's share.
        schema: A list of Field. Without it, the record of the first input says what the fields are, for which the function is
            called once more, and the next ones, up to 16, whether arrays of one or two axes have any number of rows, and the type of values
            that have no rows in the first.
        rank, world_size: This process takes its share of the inputs, and ``penstock.merge`` puts the
            parts together.
        engine: "ray", "dask", "spark" or "slurm": ``world_size`` tasks, more than the cluster has
            CPUs, write the parts on the running cluster, with ``workers`` processes each
            (default 0). The parts are then merged.
        on_error: "fail" or "skip", which lists inputs whose function raises an exception, and files
            that cannot be decoded, and leaves them out.
        options: Those of Writer. ``resume=True`` continues after the records that are kept.

    Returns:
        The summary of preprocess.

    Raises:
        Error: The function raised an exception, and the Error names the input; or nothing can be
            written to the path.
    """
    if not callable(function):
        raise TypeError(f"function is {_short(function)}; it must be a function of an input: map(function, inputs, path)")
    items = _items(inputs)
    if len(items) == 0:
        raise Error(f"{os.fspath(path)}: there are no inputs, and a dataset has one record at least")
    if engine is not None:
        engines.check(engine)
        if world_size is None or rank is not None:
            raise ValueError("engine: give world_size, the number of parts, and no rank")
        given = {"chunksize": chunksize, "schema": _fields(function, items, schema), "on_error": on_error, **options}
        task = functools.partial(_part, function, items, os.fspath(path), count("world_size", world_size, 1), {**given, "workers": workers or 0})
        engines.run(engine, task, world_size, os.fspath(path))
        return merge(path, resume=True, remove_parts=True, command=options.get("command"))
    n = count("workers", cores() if workers is None and hasattr(os, "sched_getaffinity") else workers or 0, 0, 1 << 12)
    chunks = _Chunks(items, n) if chunksize is None else _Chunks(items, n, count("chunksize", chunksize, 1))
    fields = None if options.get("append") and schema is None else _fields(function, items, schema)  # the dataset says what they are
    options["_inputs"] = digest.of([len(items), items])
    with Writer(path, fields, rank=rank, world_size=world_size, total=len(items), on_error=on_error, **options) as w:
        if not w.complete:
            assert w.end is not None
            if w.schema is None:
                w._declare(_fields(function, items, None, w._dataset))
            assert w.schema is not None
            work = _Work(function, w.schema, on_error == "skip")
            for first, messages, records, failure in tasks.answers(work, chunks.of(w.start, w.end), n):
                w._write_encoded(messages, records)
                chunks.made(len(messages), records)
                if failure is not None:
                    at = first + records
                    raise Error(f"{w.path}: inputs[{at}], {_short(items[at])}: {failure}")
        return w.commit()


class _Chunks:
    """Inputs as tasks, of a size that is given or chosen."""

    def __init__(self, items: Any, workers: int, size: int | None = None) -> None:
        self._items, self._chosen = items, size is None
        self._most = size or max(1, min(_MOST, len(items) // (_TURNS * max(1, workers))))
        self._size = size or min(_FIRST, self._most)

    def of(self, start: int, end: int) -> Iterator[tasks.Task]:
        """Yield the tasks of inputs from start to end."""
        while start < end:
            stop = min(start + self._size, end)
            yield start, [self._items[i] for i in range(start, stop)]
            start = stop

    def made(self, size: int, records: int) -> None:
        """Choose the size of the next tasks by the bytes of some records."""
        if self._chosen and records:
            self._size = max(1, min(self._most, _BYTES * records // max(size, 1)))


def _items(inputs: Any) -> Any:
    """Return inputs as a sequence that can be indexed by place."""
    if isinstance(inputs, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"inputs is {_short(inputs)}; it is a list of inputs: [{_short(inputs)}]")
    if isinstance(inputs, Mapping):
        raise TypeError(
            "inputs is a dict, and a record could be of a key, a value or both: give list(inputs), list(inputs.values()) or list(inputs.items())"
        )
    if isinstance(inputs, (set, frozenset)):
        raise TypeError("inputs is a set, which is in another order in every process: give sorted(inputs)")
    if isinstance(inputs, np.ndarray):
        if inputs.ndim == 0:
            raise TypeError(f"inputs is {_short(inputs)}, an array without axes: give a list")
        return inputs
    if getattr(inputs, "ndim", 1) > 1 and hasattr(inputs, "iloc"):
        raise TypeError("inputs is a table of pandas, which iterates over the names of its columns: give table.to_dict('records'), or a column")
    if isinstance(inputs, Sequence) or (hasattr(inputs, "__len__") and hasattr(inputs, "__getitem__") and not hasattr(inputs, "__iter__")):
        return inputs
    try:
        return list(inputs)
    except TypeError:
        raise TypeError(f"inputs is {_short(inputs)}; it must be a list, or another iterable") from None


def _part(function: Function, items: Sequence[Any], path: str, world_size: int, options: Mapping[str, Any], rank: int) -> None:
    """Make the part of a rank."""
    map_inputs(function, items, path, rank=rank, world_size=world_size, **options)


def _fields(function: Function, items: Sequence[Any], schema: Sequence[Field] | None, dataset: Sequence[Field] = ()) -> list[Field]:
    if schema is not None:
        return codec.check(schema)
    try:
        record = _calls(function, [items[0]])[0]()
        if not dataset and isinstance(record, Mapping) and any(map(_is_untyped, record.values())):
            record = _typed(function, items, record)
        fields = codec.infer(record, dataset)
        return fields if dataset else _settled(function, items, fields)
    except Exception as e:
        raise Error(
            f"inputs[0], {_short(items[0])}: {type(e).__name__}: {e}; the record of the first input says what the fields are, unless schema= does"
        ) from e


def _is_untyped(value: Any) -> bool:
    """Return whether a value says nothing of its rows: an empty list, or an array without rows."""
    return not len(value) if isinstance(value, (list, tuple)) else getattr(value, "shape", ())[:1] == (0,)


def _typed(function: Function, items: Sequence[Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first record with lists of the rows of the next records in the place of values without rows."""
    found = dict(record)
    for call in _next(function, items):
        with contextlib.suppress(Exception):
            for name, x in call().items():
                if _is_untyped(found.get(name)) and not _is_untyped(x):
                    found[name] = x if isinstance(x, (list, tuple)) else list(values.array(x))
    return found


def _next(function: Function, items: Sequence[Any]) -> list[Callable[[], Any]]:
    """Return calls for the inputs after the first that say what the fields are."""
    return _calls(function, [items[i] for i in range(1, min(SETTLING, len(items)))])


def _settled(function: Function, items: Sequence[Any], fields: list[Field]) -> list[Field]:
    """Return fields of the first record; those whose number of rows differs in the next records have any number of rows."""
    fixed = {f.name: f for f in fields if f.shape and not f.ragged and len(f.shape) < 3}
    rows: set[str] = set()
    for call in _next(function, items) if fixed else ():
        with contextlib.suppress(Exception):  # which comes again when the record is due
            for f in codec.infer(call()):
                of = fixed.get(f.name)
                if of is not None and not f.ragged and (f.dtype, f.shape[1:]) == (of.dtype, of.shape[1:]) and f.shape != of.shape:
                    rows.add(f.name)
        if len(rows) == len(fixed):
            break
    return [replace(f, shape=f.shape[1:], ragged=True) if f.name in rows else f for f in fields]


def _calls(function: Function, items: list[Any]) -> list[Callable[[], Any]]:
    """Return the function that yields the record of each input. A batched function is called with several inputs at a time, and
    with single inputs if that fails.
    """
    if not is_batched(function):
        return [functools.partial(function, item) for item in items]
    try:
        made = [record for i in range(0, len(items), AT_ONCE) for record in together(function, len(items[i : i + AT_ONCE]), items[i : i + AT_ONCE])]
    except Exception:
        return [functools.partial(_alone, function, item) for item in items]
    return [functools.partial(next, iter([record])) for record in made]


def _alone(function: Function, item: Any) -> Any:
    (record,) = together(function, 1, [item])
    return record


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


class _Work(tasks.Work):
    """The records of inputs, as messages of a Writer."""

    def __init__(self, function: Function, fields: list[Field], skip: bool) -> None:
        self.function, self.fields, self.skip = function, fields, skip
        self._codec: codec.Codec | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_codec": None}

    def make(self, first: int, task: list[Any], made: tasks.EncodedRecords) -> None:
        if self._codec is None:
            self._codec = codec.Codec(self.fields)
        for call in _calls(self.function, task):
            try:
                parts = self._codec.encode(call())
            except Exception as e:
                if not self.skip:
                    raise
                parts = [codec.refusal(e)]
            made.add(parts)

    def failure(self, e: Exception) -> str:
        if isinstance(e, Error):
            return f'{e}; on_error="skip" leaves such inputs out'
        return f'{type(e).__name__}: {e}; on_error="skip" leaves such inputs out\n{"".join(traceback.format_tb(e.__traceback__))}'
