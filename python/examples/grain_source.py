"""Read a dataset with Grain: a penstock.Dataset is a RandomAccessDataSource as it is.

python3 grain_source.py DATASET
"""

from __future__ import annotations

import sys
from typing import Any

import grain
import numpy as np

import penstock


def batches(path: str, batch_size: int = 64, seed: int = 0) -> Any:
    """Return a Grain pipeline of shuffled batches of dicts."""
    source = penstock.open(path)
    return grain.MapDataset.source(source).shuffle(seed=seed).map(lambda r: {name: np.asarray(v) for name, v in r.items()}).batch(batch_size)


if __name__ == "__main__":
    for batch in batches(sys.argv[1]):
        print({name: values.shape for name, values in batch.items()})
