"""Datasets that penstock made, in NumPy and PyTorch.

::

    ds = penstock.open("data/train")
    ds["images"][0:64]           # a view of the file: nothing is copied
    ds["images"][[5, 1, 900]]    # a batch in memory of its own
    ds[7]                        # a record: {"images": ..., "labels": ...}

NumPy is all that is needed. HDF5 files need h5py too, to find where their records lie. For torch
there is ``penstock.torch``. A Feeder has batches made by the Go loader, in a process of its own;
``penstock.cuda`` opens those that a Go process has put on a GPU.
"""

from . import bfloat16, order
from .batch import Batch
from .dataset import Dataset, open
from .errors import CorruptError, Error, UnsupportedError
from .feeder import FedBatch, Feeder
from .field import Field, Normalization
from .ragged import Ragged, RaggedRecords
from .records import Records

__version__ = "0.1.0"

__all__ = [
    "Batch", "CorruptError", "Dataset", "Error", "FedBatch", "Feeder", "Field", "Normalization",
    "Ragged", "RaggedRecords", "Records", "UnsupportedError", "bfloat16", "open", "order",
]  # fmt: skip
