"""Datasets that penstock made, in NumPy and PyTorch.

::

    ds = penstock.open("data/train")
    ds["images"][0:64]           # a view of the file: nothing is copied
    ds["images"][[5, 1, 900]]    # a batch in memory of its own
    ds[7]                        # a record: {"images": ..., "labels": ...}

    for batch in penstock.DataLoader("data/train", 256, shuffle=True):
        ...                      # tensors, ready to train on

    penstock.preprocess("photos", "data/train", resize=256, crop=224)      # a dataset of raw samples
    with penstock.Writer("data/train") as w:       # and of what you have
        w.append({"images": path, "labels": 3})

NumPy is all that is needed. HDF5 and Zarr are read by the program, in a process of its own, which says where arrays lie
that can be mapped. So is a DataLoader's every batch made by the Go loader: see penstock.transforms and
penstock.samplers. ``penstock.torch`` has map-style datasets for torch's own DataLoader.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import bfloat16, order, samplers, transforms
    from ._base.batched import batched
    from ._base.errors import CorruptError, Error, NotFoundError, UnsupportedError
    from ._base.progress import Progress
    from ._code.info import get_worker_info
    from ._code.mapping import map_inputs
    from ._code.randomness import rng
    from ._engine.batch import Batch, LoaderBatch
    from ._engine.dataloader import DataLoader
    from ._engine.pack import Pack
    from ._engine.states import seen
    from ._engine.timing import loadbench
    from ._read.dataset import Dataset, open_dataset
    from ._read.field import Field, Normalization
    from ._read.ragged import Ragged, RaggedRecords, Sparse
    from ._read.records import Records
    from ._read.view import View
    from ._write.prepare import Summary, preprocess, rechunk
    from ._write.writer import Writer, merge

    open, map = open_dataset, map_inputs

__version__ = "0.1.0"

#: What ``from penstock import *`` binds: not ``open`` and ``map``, which would take the place of Python's own.
__all__ = [
    "Batch", "CorruptError", "DataLoader", "Dataset", "Error", "Field", "LoaderBatch", "Normalization",
    "NotFoundError", "Pack", "Progress", "Ragged", "RaggedRecords", "Records", "Sparse", "Summary", "UnsupportedError", "View", "Writer",
    "batched", "bfloat16", "get_worker_info", "loadbench", "merge", "order", "preprocess", "rechunk", "rng", "samplers", "seen", "transforms",
]  # fmt: skip

#: The modules of names, which are imported when they are first asked for: NumPy and what a program does not need take most of the time.
_MODULES = {
    "Batch": "_engine.batch", "CorruptError": "_base.errors", "DataLoader": "_engine.dataloader", "Dataset": "_read.dataset",
    "Error": "_base.errors", "Field": "_read.field", "LoaderBatch": "_engine.batch", "Normalization": "_read.field",
    "NotFoundError": "_base.errors", "Pack": "_engine.pack", "Progress": "_base.progress", "Ragged": "_read.ragged",
    "RaggedRecords": "_read.ragged", "Records": "_read.records", "Sparse": "_read.ragged", "Summary": "_write.prepare",
    "UnsupportedError": "_base.errors", "batched": "_base.batched",
    "View": "_read.view", "Writer": "_write.writer", "get_worker_info": "_code.info", "loadbench": "_engine.timing", "map": "_code.mapping",
    "merge": "_write.writer", "open": "_read.dataset", "preprocess": "_write.prepare", "rechunk": "_write.prepare",
    "rng": "_code.randomness", "seen": "_engine.states",
}  # fmt: skip

#: Names that are others in their modules.
_NAMES = {"map": "map_inputs", "open": "open_dataset"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: a name of a module, or a module."""
    if name in _MODULES:
        value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), _NAMES.get(name, name))
        globals()[name] = value
        return value
    if not name.startswith("_"):
        try:
            return importlib.import_module(f".{name}", __name__)
        except ModuleNotFoundError as e:
            if e.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    import pkgutil

    modules = {m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")}
    return sorted({*__all__, *_MODULES, *modules, "__version__"})
