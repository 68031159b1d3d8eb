"""The newest generations of the datasets of a DataLoader, and what they changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.errors import Error, NotFoundError
from .._read import flat, generations
from .._read.dataset import Dataset, open_prepared
from .._read.view import View, absolute, is_view, nodes, rebuilt
from ..samplers import Sampler


@dataclass(frozen=True)
class Change:
    """The difference between two generations of a dataset.

    ``before`` and ``after`` are the numbers of the generations; ``added``, ``dropped`` and ``replaced`` the columns;
    ``appended``, ``deleted`` and ``restored`` the numbers of records. If generation ``before`` is ``pruned``, the rest is not known.
    """

    path: str
    before: int
    after: int
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    appended: int = 0
    deleted: int = 0
    restored: int = 0
    pruned: bool = False

    @property
    def moved(self) -> bool:
        """Whether records have other numbers, or there are others, or that is not known."""
        return bool(self.appended or self.deleted or self.restored or self.pruned)

    def __str__(self) -> str:
        columns = [f"{what} {', '.join(names)}" for what in ("added", "dropped", "replaced") if (names := getattr(self, what))]
        records = [f"{n} {what}" for what in ("appended", "deleted", "restored") if (n := getattr(self, what))]
        if self.pruned:
            return f"{self.path}: from generation {self.before}, which was pruned, to {self.after}"
        parts = [f"columns: {'; '.join(columns)}"] * bool(columns) + [f"records: {', '.join(records)}"] * bool(records)
        return f"{self.path}: from generation {self.before} to {self.after}: {'; '.join(parts) or 'the same columns and records'}"


class Changes(tuple[Change, ...]):
    """The changes that a refresh found, one for each dataset that has a later generation; it is empty if none has."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing changed: the newest generation is open"


def changes(opened: Sequence[tuple[str, int]], dataset: Any) -> Changes:
    """Compare the generations that are open of the datasets of a DataLoader, by folder, with the newest ones."""
    found: dict[tuple[str, int], Change | None] = {}
    urls = {generations.options(url)[0]: url for url in _urls(dataset)}  # those of buckets have options, which folders have not
    for folder, number in opened:
        if (folder, number) not in found:
            found[folder, number] = _compare(urls.get(folder, folder), number)
    return Changes(change for change in found.values() if change is not None)


def _urls(dataset: Any) -> Iterator[str]:
    """Yield the URLs of datasets, without generations."""
    if isinstance(dataset, (list, tuple)):
        for d in dataset:
            yield from _urls(d)
    elif type(dataset) is Dataset:
        yield dataset._folder
    elif isinstance(dataset, View):
        yield from (d._folder for d in dataset.datasets())
    elif isinstance(dataset, (str, bytes, os.PathLike)) and is_view(os.fsdecode(dataset)):
        with open_prepared(dataset) as view:
            yield from _urls(view)
    elif isinstance(dataset, (str, bytes, os.PathLike)):
        yield generations.folder(os.fsdecode(dataset))
        yield os.fsdecode(dataset)  # whose name may have an @


def _key(path: str) -> str:
    """Return what the paths of one dataset have in common."""
    return generations.options(path)[0] if "://" in path else os.path.realpath(path)


def _compare(folder: str, number: int) -> Change | None:
    """Return what changed since a generation; None if it is the newest one."""
    with Dataset(folder) as new:
        if new.generation == number:
            return None
        try:
            old = Dataset(folder, generation=number)
        except NotFoundError:  # of an HDF5 file, a generation is pruned also while it is open
            return Change(folder, number, new.generation, pruned=True)
        with old:
            return _difference(old, new)


def _difference(old: Dataset, new: Dataset) -> Change:
    """Return what changed from one generation to another."""
    was, now = _live(old), _live(new)
    n = _shared(old, new)
    both = [name for name in old._layout.fields if name in new._layout.fields]
    return Change(
        new.path, old.generation, new.generation,
        added=tuple(name for name in new._layout.fields if name not in both),
        dropped=tuple(name for name in old._layout.fields if name not in both),
        replaced=tuple(name for name in both if _file(old, name) != _file(new, name)),
        appended=int(np.count_nonzero(now[n:])),
        deleted=int(np.count_nonzero(was[:n] & ~now[:n]) + np.count_nonzero(was[n:])),
        restored=int(np.count_nonzero(now[:n] & ~was[:n])),
    )  # fmt: skip


def _shared(old: Dataset, new: Dataset) -> int:
    """Return how many stored records two generations have in common: their first ones.

    After a restore of an earlier generation, others may be appended in the places of those that it does not have, in files
    of their own. If every column of the first shard was replaced, no file says so, and the places count.
    """
    shards = [*zip(old.manifest.get("shards") or (), new.manifest.get("shards") or ())]
    same = [a["count"] == b["count"] and bool({f["name"] for f in a["files"]} & {f["name"] for f in b["files"]}) for a, b in shards]
    if not any(same[:1]):
        return int(min(old.manifest["records"], new.manifest["records"]))
    return sum(a["count"] for a, _ in shards[: [*same, False].index(False)])


def _live(ds: Dataset) -> np.ndarray:
    """Return which stored records are not deleted."""
    gone = flat.deleted(ds.manifest, ds.path)
    return np.ones(ds.manifest["records"], np.bool_) if gone is None else gone == 0


def _file(ds: Dataset, field: str) -> tuple[str, str]:
    """Return where a column begins, which is elsewhere once it is replaced: files are never rewritten."""
    of = ds._layout.fields[field]
    if not ds._layout.columns:  # in a bucket
        files = ds.manifest["shards"][0].get("files") or ()
        return next((f["name"] for f in files if f["field"] == field), ""), ds.manifest.get("arrays", {}).get(field, field)
    extent = ds._layout.columns[field if not of.ragged else next(name for name in ds._layout.columns if name.startswith(f"{field}."))][0]
    return extent.path, getattr(extent, "node", "")


def newest(dataset: Any, changed: Changes, folders: Sequence[str]) -> Any:
    """Return the argument of a DataLoader with the newest generations of its datasets, which are in these folders, or refuse it."""
    moved = {_key(change.path): change for change in changed if change.moved}
    if isinstance(dataset, (list, tuple)):
        return [newest(d, changed, folders) for d in dataset]
    if isinstance(dataset, (str, bytes, os.PathLike)):
        path = os.fsdecode(dataset)
        if is_view(path):
            with open_prepared(path) as view:
                assert isinstance(view, View)
                _check_numbers(view.to_json(absolute), moved)
                if (part := _fixed(view, changed)) is not None:
                    raise Error(
                        f"refresh: {path} is a view of {part.path}, a generation, which stays; to follow the dataset, make the view of "
                        f"penstock.open({part._folder!r}), and a DataLoader of that"
                    )
        elif generations.split(path)[1] is not None or ("://" in path and generations.options(path)[0] not in folders):
            raise _pinned(path, generations.folder(path))
        return dataset
    if type(dataset) is Dataset:
        if dataset._generation is not None:
            raise _pinned(dataset.path, dataset._folder)
        return Dataset(dataset._folder, dataset._chosen, dataset.split, dataset.mode, cache_dir=dataset._cache_dir)
    if isinstance(dataset, View):
        if (part := _fixed(dataset, changed)) is not None:
            raise _pinned(part.path, part._folder)
        node = dataset.to_json(absolute)
        _check_numbers(node, moved)
        for inner in nodes(node):
            if "dataset" in inner:
                inner.pop("id", None)
                inner["dataset"] = generations.folder(inner["dataset"])
        return rebuilt(dataset, node)
    raise Error(
        f"refresh: the dataset is a {type(dataset).__name__}, whose records are numbered in one generation; make a new DataLoader, or give a path, "
        "penstock.open of it, or a view: ds.select(...), ds.concat(...)"
    )


def _fixed(view: View, changed: Changes) -> Dataset | None:
    """Return the first dataset of a view that was opened by its generation and has a later one; None if there is none."""
    later = {_key(change.path) for change in changed}
    return next((d for d in view.datasets() if d._generation is not None and _key(d._folder) in later), None)


def _pinned(path: str, folder: str) -> Error:
    return Error(f"refresh: {path} names a generation, which stays; to follow the dataset, open {folder}")


def _check_numbers(node: dict[str, Any], moved: Mapping[str, Change]) -> None:
    """Refuse a view that has numbers of records which are others now."""
    for view in nodes(node):
        by = view.get("by") or {}
        if not ("records" in view or "ranges" in view or by.get("within") is not None or by.get("origins") is not None):
            continue
        for part in nodes(view):
            change = moved.get(_key(generations.folder(part["dataset"]))) if "dataset" in part else None
            if change is not None:
                raise Error(
                    f"refresh: {change}; the view has numbers of records of generation {change.before}, which are others now: make the view "
                    f"again of penstock.open({change.path!r}), and a new DataLoader"
                )


def check_order(order: Sampler, changed: Changes) -> None:
    """Refuse a sampler that has numbers or weights of records which are others now."""
    arrays = _Arrays()
    order.to_json(arrays)
    for change in changed:
        if arrays.has_some and change.moved:
            raise Error(
                f"refresh: {change}; the sampler has numbers or weights of the records of generation {change.before}: make a new DataLoader with a "
                "sampler for the records that there are now"
            )


class _Arrays:
    """Notes whether a sampler has arrays."""

    has_some = False

    def add(self, values: np.ndarray) -> dict[str, int]:
        self.has_some = True
        return {"at": 0, "count": values.size}
