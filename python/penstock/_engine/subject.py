"""The subject of a DataLoader: datasets, and the records that torch's Subset and ConcatDataset name.

``engine`` decides which engine loads a dataset, and ``resolve`` says what a feeding process is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import samplers
from .._base.dataclass import dataclass
from .._base.errors import NotFoundError, UnsupportedError
from .._base.urls import redacted
from .._read.dataset import Dataset
from .._read.formats import exists
from .._read.view import View


@dataclass(frozen=True)
class _Part:
    """One dataset."""

    path: str
    opened: Dataset | View | None = None  # the object that was given, which says the rest
    records: int = 0
    fields: Sequence[str] | None = None
    split: str | None = None
    transforms: dict[str, Any] | None = None


@dataclass(frozen=True)
class Subject:
    """Datasets by path, and the numbers of the records that are loaded of them all; None means all."""

    paths: list[str]
    fields: Any
    split: str | None
    transforms: dict[str, Any] | None = None
    records: int | None = None  # of the datasets; None if they were not opened here
    indices: np.ndarray | None = None
    opened: tuple[Dataset | View, ...] = ()  # the datasets that were given as objects

    @property
    def count(self) -> int | None:
        """The number of records that are loaded; None if it is not known here."""
        return self.records if self.indices is None else len(self.indices)

    def ordered(self, order: samplers.Sampler) -> samplers.Sampler:
        """Return the sampler of the datasets that visits the records in the order of a sampler for the Subject's records."""
        if self.indices is None:
            return order
        if isinstance(order, samplers.Subset) and order.indices is not None:
            chosen = numbers("sampler", order.indices, len(self.indices))
            return samplers.Subset(self.indices[chosen], inner=order.inner)
        return samplers.Subset(self.indices, inner=None if order == samplers.Sequential() else order)


class Unopened:
    """Stands for records that this process did not open, such as raw samples, several datasets or a URL: it has their number."""

    def __init__(self, given: Any, records: int) -> None:
        self.given, self._records = given, records

    def __len__(self) -> int:
        return self._records

    def __repr__(self) -> str:
        return f"<{self._records} records of {redacted(repr(self.given))}>"


#: Parameters that say what a feeding process does; without a feeding process they have no effect.
_FED = {
    "transforms": None, "independent": (), "contents": None, "batch_transforms": None, "splits": None, "prepare": "auto", "filters": None,
    "pack": None, "verify": "off", "cache_dir": None, "cache_size": None,
}  # fmt: skip


def engine(given: Mapping[str, Any]) -> str:
    """Return what loads the dataset of a DataLoader's arguments.

    "feed" is a feeding process, and "lists" one whose batches a batch_sampler lists: they read prepared datasets, unless functions of Python alone
    make batches of these: then they are datasets like any other. "arrays" gathers arrays in memory, and "code" runs the dataset's code.
    """
    dataset = given["dataset"]
    if type(dataset) in (list, tuple) and dataset and all(isinstance(d, str) and not exists(d) for d in dataset):
        raise NotFoundError(
            f"{dataset[0]}: no such file or directory; a list of strings is a list of the paths of datasets: "
            "for a dataset of strings, give numpy.array(strings)"
        )
    fed = next((name for name, default in _FED.items() if given[name] is not default and given[name] != default), None)
    lists = given["batch_sampler"] is not None
    python = given["collate_fn"] is not None or lists or given["batch_size"] is None
    if dataset is None or given["socket"] is not None or is_prepared(dataset):
        if python and fed is None and dataset is not None and given["socket"] is None:
            return "code"
        return "lists" if lists else "feed"
    found = _own(given)
    if fed is not None:
        raise ValueError(
            f"{fed} is for the path of a dataset, or penstock.open of it with mode='r', which a feeding process reads: do it in the code of "
            f"this {type(dataset).__name__}, or prepare its records: penstock preprocess SOURCE DATASET, and give DATASET as the dataset"
        )
    return found


def _own(given: Mapping[str, Any]) -> str:
    """Return what loads a dataset that is not prepared."""
    dataset = given["dataset"]
    utils = sys.modules.get("torch.utils.data")
    if given["collate_fn"] in (None, getattr(utils, "default_collate", None)) and not (
        given["batch_size"] is None and given["batch_sampler"] is None
    ):
        from .._code.arrays import columns

        if columns(dataset) is not None:
            return "arrays"
    if not any(hasattr(dataset, name) for name in ("__getitem__", "__getitems__", "__iter__")):
        raise TypeError(
            f"dataset is a {type(dataset).__name__}; it must be the path or URL of a dataset that preprocess made, penstock.open of it, "
            "arrays, or an object with __getitem__ and __len__, or with __iter__"
        )
    return "code"


def is_prepared(d: Any) -> bool:
    """Return whether a dataset is a dataset that preprocess made, or several such datasets, or some of their records."""
    if isinstance(d, (str, bytes, os.PathLike)):
        return True
    if type(d) is Dataset:
        return d.mode != "c"
    if isinstance(d, View):
        return all(of.mode != "c" for of in d.datasets())
    if type(d) in (list, tuple):
        return len(d) > 0 and all(map(is_prepared, d))
    kind = _torch_class(d)
    if kind == "TorchDataset":
        return d.transform is None
    if kind == "Subset":
        return is_prepared(d.dataset)
    return kind == "ConcatDataset" and all(map(is_prepared, d.datasets))


def resolve(dataset: Any, fields: Any, split: str | None) -> Subject:
    """Return the Subject of a dataset or of several; fields and split are the fields and the split that the caller asks for."""
    if split is not None and not isinstance(split, str):
        raise TypeError(f"split is {split!r:.60}; it must be the name of a split")
    if dataset is None:
        return Subject([], fields, split)
    several = isinstance(dataset, (list, tuple))
    parts, indices = _joined(dataset) if several else _of(dataset)
    own = _agreed("split", [(p.path, p.split) for p in parts])
    if own is not None and split not in (None, own):
        raise ValueError(f"{parts[0].path} was opened with the split {own!r}, and split is {split!r}; give one of the two")
    if own is None and split is not None and indices is not None:
        raise ValueError(
            f"split is {split!r}, and the Subset numbers the records of all splits; take a Subset of penstock.open(path, split={split!r})"
        )
    fields = _agreed("fields", [(p.path, p.fields) for p in parts]) if fields is None else fields
    transforms = _agreed("normalize", [(p.path, p.transforms) for p in parts])
    same = own is not None or split is None  # the objects have this split open, so their lengths count its records
    records = sum(p.records for p in parts) if same and all(p.opened is not None for p in parts) else None
    opened = tuple(p.opened for p in parts if p.opened is not None)
    return Subject([p.path for p in parts], fields, split or own, transforms, records, indices, opened)


def named(arguments: Mapping[str, Any]) -> list[np.ndarray]:
    """Return copies of the record numbers and weights that a DataLoader's dataset and sampler of torch name now: torch reads them at iter()."""
    return [np.asarray(values).copy() for values in _named(arguments)]


def still_named(arguments: Mapping[str, Any], named: Sequence[np.ndarray], lengths: bool = False) -> bool:
    """Return whether they name as many records as when ``named`` was returned, and, unless only lengths are asked for, the same."""
    return all(len(a) == len(b) and (lengths or np.array_equal(a, b)) for a, b in zip(_named(arguments), named))


def _named(arguments: Mapping[str, Any]) -> Iterator[Any]:
    for d in _subsets(arguments["dataset"]):
        yield d.indices
    sampler = arguments["sampler"]
    if type(sampler).__module__.startswith("torch.utils.data"):
        for name in ("indices", "weights"):
            if hasattr(sampler, name):
                yield getattr(sampler, name)


def _subsets(d: Any) -> Iterator[Any]:
    """Yield the Subsets of torch in a dataset."""
    kind = _torch_class(d)
    if kind == "Subset":
        yield d
        yield from _subsets(d.dataset)
    elif kind == "ConcatDataset" or isinstance(d, (list, tuple)):
        for part in d.datasets if kind else d:
            yield from _subsets(part)


def numbers(what: str, indices: Any, records: int) -> np.ndarray:
    """Return record numbers as an array. Those below 0 count from the end, as in a list."""
    found = np.asarray(indices)
    if found.ndim != 1 or (found.size and not np.issubdtype(found.dtype, np.integer)):
        raise TypeError(f"{what}: indices are whole numbers, one a record, not {found.dtype} of shape {found.shape}")
    found = found.astype(np.int64)
    wrong = found[(found < -records) | (found >= records)]
    if wrong.size:
        raise IndexError(f"{what}: record {wrong[0]} is out of range: there are {records}")
    return np.where(found < 0, found + records, found)


def _of(d: Any) -> tuple[list[_Part], np.ndarray | None]:
    """Return the datasets that one object stands for, and the numbers of its records in them; None means all."""
    if type(d) is Dataset or isinstance(d, View):
        return [_opened(d)], None
    kind = _torch_class(d)
    if kind == "TorchDataset":
        return [_of_torch(d)], None
    if kind == "ConcatDataset":
        return _joined(d.datasets)
    if kind == "Subset":
        parts, base = _of(d.dataset)
        if not all(p.opened is not None for p in parts):
            raise TypeError(f"a Subset of {d.dataset!r:.60}; take a Subset of penstock.open(path), which has records")
        chosen = numbers("Subset", d.indices, sum(p.records for p in parts) if base is None else len(base))
        return parts, chosen if base is None else base[chosen]
    return [_Part(os.fsdecode(d))], None


def _opened(d: Dataset | View) -> _Part:
    return _Part(d.place if isinstance(d, Dataset) else d.path, d, len(d), d._chosen, d.split)


def _torch_class(d: Any) -> str:
    """Return the name of the class of torch, or of penstock.torch, whose very instance d is; a subclass may do anything."""
    for module, names in (("torch.utils.data", ("Subset", "ConcatDataset")), ("penstock.torch", ("TorchDataset",))):
        for name in names:
            if type(d) is getattr(sys.modules.get(module), name, None):
                return name
    return ""


def _of_torch(d: Any) -> _Part:
    """Return the dataset of a TorchDataset, and its normalization as transforms."""
    part = _opened(d.dataset)
    pending = {name: f for name, f in d.fields.items() if f.pending and f.normalization is not None}
    if not pending:
        return part
    from .. import transforms as T

    if any(f.normalization.scale != 255 for f in pending.values()):
        raise UnsupportedError(
            f"{part.path}: the images are not normalized as bytes / 255; leave normalize out, and give transforms= to the DataLoader"
        )

    def normalizing(f: Any) -> Any:
        n = f.normalization
        return T.Compose([T.ToTensor() if f.layout == "CHW" else T.ConvertImageDtype(), T.Normalize(list(n.mean), list(n.std))])

    return replace(part, transforms={name: normalizing(f) for name, f in pending.items()})


def _joined(datasets: Sequence[Any]) -> tuple[list[_Part], np.ndarray | None]:
    """Return several datasets one after the other."""
    found = [_of(d) for d in datasets]
    parts = [p for some, _ in found for p in some]
    if all(indices is None for _, indices in found):
        return parts, None
    if not all(p.opened is not None for p in parts):
        raise TypeError("a list of a Subset and a path; give penstock.open of the path, which says how many records it has")
    chosen, first = [], 0
    for some, indices in found:
        n = sum(p.records for p in some)
        chosen.append(first + (np.arange(n) if indices is None else indices))
        first += n
    return parts, np.concatenate(chosen)


def _agreed(what: str, values: list[tuple[str, Any]]) -> Any:
    """Return what all datasets were opened with."""
    path, first = values[0]
    for other, value in values[1:]:
        if repr(value) != repr(first):
            raise ValueError(
                f"{path} was opened with {what}={_shown(first)}, and {other} with {what}={_shown(value)}; open all of them with the same"
            )
    return first


def _shown(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)[:60]
