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

NumPy is all that is needed. HDF5 files need h5py too, to find where their records are. A DataLoader
has batches made by the Go loader, in a process of its own: see penstock.transforms and
penstock.samplers. ``penstock.torch`` has map-style datasets for torch's own DataLoader, and
``penstock.cuda`` opens batches that a Go process has put on a GPU.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import bfloat16, order, samplers
from .batch import Batch, LoaderBatch
from .dataloader import DataLoader
from .dataset import Dataset
from .dataset import open_dataset as open
from .errors import CorruptError, Error, NotFoundError, UnsupportedError
from .field import Field, Normalization
from .pack import Pack
from .ragged import Ragged, RaggedRecords
from .records import Records
from .view import View

if TYPE_CHECKING:
    from . import transforms
    from .mapping import map_inputs as map
    from .prepare import Summary, preprocess, rechunk
    from .progress import Progress
    from .timing import loadbench
    from .writer import Writer, merge

__version__ = "0.1.0"

__all__ = [
    "Batch", "CorruptError", "DataLoader", "Dataset", "Error", "Field", "LoaderBatch", "Normalization",
    "NotFoundError", "Pack", "Progress", "Ragged", "RaggedRecords", "Records", "Summary", "UnsupportedError", "View", "Writer", "bfloat16", "loadbench", "map", "merge", "open", "order", "preprocess", "rechunk", "samplers", "transforms",
]  # fmt: skip


_LATER = {
    "Progress": (".progress", "Progress"), "Summary": (".prepare", "Summary"), "Writer": (".writer", "Writer"),
    "loadbench": (".timing", "loadbench"), "map": (".mapping", "map_inputs"), "merge": (".writer", "merge"), "preprocess": (".prepare", "preprocess"),
    "rechunk": (".prepare", "rechunk"),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what is asked for: transforms are many dataclasses, each half a millisecond, and map brings multiprocessing."""
    if name == "transforms":
        return importlib.import_module(".transforms", __name__)
    if name in _LATER:
        module, known = _LATER[name]
        return getattr(importlib.import_module(module, __name__), known)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
