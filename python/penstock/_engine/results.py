"""Results of functions that are needed before there is an order: rows for ``pack=``, and the lengths by which Bucket orders records.

They are computed once for a dataset and its functions, and kept as a dataset in the cache of raw samples.
"""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import samplers
from .._base.dataclass import dataclass
from .._base.errors import Error, UnsupportedError
from .._base.files import user_folder
from .._read.dataset import open_prepared
from .._read.field import Field
from .._read.ragged import Ragged
from .._write.prepare import AGAIN, BUSY
from .._write.writer import Writer
from ..functions.recipe import recipe
from ..functions.record import FIXED
from .batch import BatchDict
from .request import ADVICE, ManyRows, Request, in_arrays
from .subject import Subject

_log = logging.getLogger("penstock")

#: Records that are computed at a time.
_BATCH = 64
#: The file beside a dataset of the cache that says where the dataset came from: package rawcache.
_ABOUT = ".source.json"

_Make = Callable[[Request], Any]
#: What is kept of a batch: fields, and a dict for each record.
_Choose = Callable[[Mapping[str, Field], Any], tuple[list[Field], list[dict[str, Any]]]]


def engine(request: Request, make: _Make) -> Any:
    """Return the engine that ``make`` makes of a request with functions.

    If it raises ManyRows, functions are called by record. If the order needs what they make, that is computed before.
    """
    lengths = request.pack is not None or samplers.of_lengths(request.order)
    try:
        if not (lengths and request.recording.steps):
            return make(request)
        if request.functions is not None:
            _probe(request, make)
    except ManyRows as e:
        request = request.by_record(e.fields)
    except Error:
        if request.pack is None or request.functions is None or request.recording.steps:
            raise
        try:  # records as they are before the pack
            _probe(request, make)
        except ManyRows as e:
            request = request.by_record(e.fields)
        else:
            raise
    return make(_known(request, make) if lengths else request)


def _probe(request: Request, make: _Make) -> None:
    """Raise ManyRows if functions make any number of rows of records in their order."""
    make(replace(request, pack=None, order=samplers.Sequential())).close()


def _known(request: Request, make: _Make) -> Request:
    """Return a request with functions of records as a request whose order is known: of the rows of results, or with a Bucket by their lengths."""
    if request.pack is None:
        return replace(request, order=_measured(request.order, request, make))
    fields = request.pack.fields

    def rows(made: Mapping[str, Field], batch: Any) -> tuple[list[Field], list[dict[str, Any]]]:
        found = [f for f in made.values() if (f.ragged and f.content != "utf-8" if fields is None else f.name in fields)]
        if not found:
            raise UnsupportedError(f"pack: {', '.join(request.recording.names)} makes no numbers of any number of rows; it makes {', '.join(made)}")
        return found, [{f.name: batch[f.name][i] for f in found} for i in np.flatnonzero(batch.mask)]

    paths = [_kept(request, [path], make, f"pack of {fields or 'all fields'}", rows) for path in request.subject.paths]
    options = {
        **request.options, "fields": None, "split": "", "splits": "", "where": "", "contents": {}, "transforms": {}, "prepare": "off",
        "memory": 2 * request.options["memory"],
    }  # fmt: skip
    viewing = request.pinning is None and request.device is None
    return replace(request, subject=Subject(paths, None, None), options=options, functions=None, recording=None, viewing=viewing, flags=[])


def _measured(order: samplers.Sampler, request: Request, make: _Make) -> samplers.Sampler:
    """Return an order with the lengths of results for a Bucket in it."""
    if not isinstance(order, samplers.Bucket):
        inner: samplers.Sampler | None = getattr(order, "inner", None)
        return order if inner is None else replace(order, inner=_measured(inner, request, make))  # type: ignore
    with contextlib.closing(make(_of_all(request, request.subject.paths))) as made:
        stored = made.session.fields
    ragged = [name for name, f in stored.items() if f.ragged]
    field = order.field or (ragged[0] if len(ragged) == 1 else "")
    if field in stored and not any(step.names(field) for step in request.recording.steps):
        return order

    def lengths(made: Mapping[str, Field], batch: Any) -> tuple[list[Field], list[dict[str, Any]]]:
        several = [field] if field else [name for name, f in made.items() if f.ragged]
        if len(several) != 1 or several[0] not in made:
            raise UnsupportedError(f"Bucket: name a field of the batches: Bucket({order.buckets}, {next(iter(made))!r}); they have {', '.join(made)}")
        x = batch[several[0]]
        of = x.lengths if isinstance(x, Ragged) else [len(text.encode()) for text in x] if isinstance(x, list) else x
        found = [{"record": batch.indices[i], "length": np.float64(of[i])} for i in np.flatnonzero(batch.mask)]
        return [Field("record", "int64"), Field("length", "float64")], found

    kept = open_prepared(_kept(request, request.subject.paths, make, f"Bucket of {field or 'the only field'}", lengths))
    records = kept["record"][:]
    values = np.zeros(records.max() + 1)
    values[records] = kept["length"][:]
    return _Measured(**{name: getattr(order, name) for name in ("buckets", "field", "budget", "multiple")}, values=values)


@dataclass(frozen=True)
class _Measured(samplers.Bucket):
    """A Bucket with a number for each record."""

    values: Any = None

    def to_json(self, arrays: samplers.Arrays) -> dict[str, Any]:
        return {**super().to_json(arrays), "values": arrays.add(self.values)}


def _of_all(request: Request, paths: Sequence[str]) -> Request:
    """Return a request for all records of datasets, in their order."""
    options = {
        **request.options, "batch_size": _BATCH, "rank": 0, "world_size": 1, "last": "equal", "drop_last": False, "in_order": True, "seed": 0,
        "batch_transforms": [],
    }  # fmt: skip
    return replace(
        request, subject=replace(request.subject, paths=list(paths)), order=samplers.Sequential(), pack=None, options=options, exact=None,
        convert=in_arrays, device=None, ahead=0, kind=BatchDict, distributed=None,
        recording=replace(request.recording, pin_memory=False, fixed=True),
    )  # fmt: skip


def _kept(request: Request, paths: Sequence[str], make: _Make, what: str, choose: _Choose) -> str:
    """Return the path of a dataset in the cache, of what is chosen of the results for all records."""
    named = ", ".join(request.recording.names)
    asked = [request.options[name] for name in ("fields", "split", "splits", "where", "contents", "transforms", "on_error")]
    with contextlib.closing(make(_of_all(request, paths))) as all_of:
        try:
            of = recipe([all_of.session.identity, asked, request.functions and request.functions.calls, request.recording.steps, what])
        except UnsupportedError as e:
            raise UnsupportedError(f"{what.partition(' ')[0]} needs results of {named}, which are kept in the cache: {e}; {ADVICE}") from None
        folder, source = _folder(request), f"{', '.join(paths)}: {named} for {what}"
        name = os.path.basename(os.path.normpath(paths[0].partition("?")[0]))
        path = os.path.join(folder, f"{name}-{of[:32]}")
        while not os.path.exists(path):
            other = any(_source(p) == source for p in glob.glob(os.path.join(glob.escape(folder), "*" + _ABOUT)))
            why = "again, as the function, the records or the options have changed," if other else "once"
            _log.warning("%s: the results of %s are computed %s and kept in %s", paths[0], named, why, path)
            try:
                _compute(all_of, path, choose)
            except Error as e:
                if BUSY not in str(e):
                    raise
                time.sleep(AGAIN)
    with open(path + _ABOUT, "w", encoding="utf-8") as f:  # whose time is the last use
        json.dump({"source": source}, f)
    return path


def _compute(engine: Any, path: str, choose: _Choose) -> None:
    engine.set_epoch(1)
    first = next(iter(engine))
    _, again = choose(engine.results, first)
    engine.set_epoch(0)
    with Writer(path, overwrite=True) as w:
        for batch in engine:
            fields, records = choose(engine.results, batch)
            if w.schema is None:
                if any(not np.array_equal(a[name], b[name]) for a, b in zip(again, records) for name in a):
                    raise UnsupportedError(f"the results of {', '.join(engine.names)} differ from one epoch to the next: {FIXED}")
                w._declare(fields)
            w.extend(records)


def _source(path: str) -> Any:
    """Return where a dataset of the cache came from."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as f:
        return json.load(f).get("source")
    return None


def _folder(request: Request) -> str:
    """Return the folder of the cache, which exists."""
    home = os.environ.get("LocalAppData" if sys.platform == "win32" else "XDG_CACHE_HOME") or os.path.expanduser(
        "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    )
    shared = os.path.abspath(os.fsdecode(request.cache_dir) if request.cache_dir else os.path.join(home, "penstock-raw"))
    os.makedirs(shared, exist_ok=True)
    return user_folder(shared)
