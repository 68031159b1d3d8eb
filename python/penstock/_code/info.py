"""Which worker this process is.

``penstock.get_worker_info`` is torch's get_worker_info for programs without torch; here, torch's is told the same.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class WorkerInfo:
    """A worker's view of itself, as torch's WorkerInfo: its number, how many there are, its seed and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_current: WorkerInfo | None = None


def get_worker_info() -> Any:
    """Return the WorkerInfo of this process; None if it is not a worker."""
    if _current is not None:
        return _current
    data = sys.modules.get("torch.utils.data")
    return None if data is None else data.get_worker_info()


def announce(info: WorkerInfo) -> None:
    """Make this process a worker."""
    global _current
    _current = info
    to_torch()


def to_torch() -> None:
    """Have torch's get_worker_info know of the worker, too, if torch has been imported."""
    module: Any = sys.modules.get("torch.utils.data._utils.worker")
    kind: Any = getattr(module, "WorkerInfo", None)
    if _current is None or kind is None or module._worker_info is not None:
        return
    more = {}
    if is_dataclass(kind) and any(f.name == "rng" for f in fields(kind)):
        import torch

        more["rng"] = module._RNG(random._inst, torch.default_generator, np.random.mtrand._rand)
    module._worker_info = kind(id=_current.id, num_workers=_current.num_workers, seed=_current.seed, dataset=_current.dataset, **more)
