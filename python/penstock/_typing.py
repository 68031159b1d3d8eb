"""Types of the DataLoader's arguments, for checkers: no program imports this module.

The arguments that no overload speaks of are in dicts here, with the types that ``DataLoader.__init__`` has for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Union

from ._base.options import Align, OnError, Prepare, Verify
from ._engine.pack import Pack
from ._read.dataset import Dataset
from ._read.view import View

One = Union[str, "os.PathLike[str]", Dataset, View]

#: Datasets whose batches have fields: those that preprocess made, or raw samples.
Prepared = Union[One, Sequence[One], None]


class Keywords(TypedDict, total=False):
    """The arguments by keyword."""

    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory_device: str
    in_order: bool
    snapshot_every_n_steps: int
    concurrency: int
    memory: str | int | None
    transforms: Any
    independent: Iterable[str]
    contents: Mapping[str, str] | None
    batch_transforms: Any
    rank: int | Literal["auto"] | None
    world_size: int | None
    seed: int | None
    device: Any
    fields: Iterable[str] | None
    split: str | None
    splits: Mapping[str, float] | None
    records: str | None
    align: Align | None
    prepare: Prepare
    filters: str | Iterable[tuple[str, str, Any]] | None
    pack: Pack | None
    verify: Verify
    on_error: OnError
    cache_dir: str | os.PathLike[str] | None
    cache_size: str | int | None
    socket: str | os.PathLike[str] | None
    command: str | os.PathLike[str] | None


class Options(Keywords, total=False):
    """Those, and torch's that may be given by position."""

    num_workers: int | None
    pin_memory: bool
    drop_last: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    multiprocessing_context: Any
    generator: Any
