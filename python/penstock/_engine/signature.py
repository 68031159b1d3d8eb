"""The parameters that torch's DataLoader has too, checked in its words.

Signature.of takes the arguments of a DataLoader and raises what torch's DataLoader raises, in the same order, with the same
text. It needs no torch. Two things are taken that torch does not take: ``num_workers=None``, and integers of NumPy.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.dataclass import dataclass
from .._base.options import count, size
from ..samplers import Sampler

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext


@dataclass(frozen=True)
class Signature:
    """The arguments of torch's DataLoader, and of StatefulDataLoader, in their order and with their defaults.

    They are those given, except for the ones that torch changes: ``batch_size`` is None with a ``batch_sampler``, ``shuffle`` and other
    flags are bools, ``prefetch_factor`` is 2 with workers, and ``multiprocessing_context`` is a context. ``num_workers`` is None
    if the engine is to find the number. ``iterable`` says whether the dataset is iterated over and not indexed.
    """

    dataset: Any
    batch_size: int | None = 1
    shuffle: bool = False
    sampler: Any = None
    batch_sampler: Any = None
    num_workers: int | None = 0
    collate_fn: Any = None
    pin_memory: bool = False
    drop_last: bool = False
    timeout: float = 0
    worker_init_fn: Any = None
    multiprocessing_context: Any = None
    generator: Any = None
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory_device: str = ""
    in_order: bool = True
    snapshot_every_n_steps: int = 1
    concurrency: int = 1
    memory: int | None = None  # bytes
    iterable: bool = False

    @property
    def batched(self) -> bool:
        """Whether samples are put together to batches, which torch calls automatic batching."""
        return self.batch_size is not None or self.batch_sampler is not None

    @classmethod
    def of(cls, arguments: Mapping[str, Any], found: int | None = None, iterable: bool | None = None) -> Signature:
        """Check the arguments of a DataLoader, and return them.

        Args:
            arguments: By name; missing arguments have their defaults, and unknown arguments are passed over.
            found: The meaning of ``num_workers=None``; None leaves it to the engine.
            iterable: Whether the dataset is iterated over; None looks at it.

        Raises:
            ValueError, TypeError: In torch's words, where torch has some.
        """
        given = {f.name: arguments.get(f.name, f.default) for f in fields(cls) if f.name != "iterable"}
        iterable = is_iterable(given["dataset"]) if iterable is None else iterable
        workers, factor = _workers(found if given["num_workers"] is None else given["num_workers"], given)
        processes, shuffle = context(given["multiprocessing_context"], workers), given["shuffle"]
        if iterable and not _is_torch(given["dataset"], "IterDataPipe"):
            _without_order(given)
        if isinstance(shuffle, Sampler):
            raise TypeError(f"shuffle is {shuffle!r:.60}; it is True or False, and an order is sampler=")
        if given["sampler"] is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if shuffle and not iterable and given["batch_sampler"] is None and hasattr(given["dataset"], "__len__") and len(given["dataset"]) == 0:
            raise ValueError("num_samples should be a positive integer value, but got num_samples=0")
        batch_size, drop_last = _batches(given)
        checked = {
            "batch_size": batch_size, "drop_last": drop_last, "shuffle": bool(shuffle), "num_workers": workers, "prefetch_factor": factor,
            "multiprocessing_context": processes,
            "snapshot_every_n_steps": count("snapshot_every_n_steps", given["snapshot_every_n_steps"], 1),
            "concurrency": count("concurrency", given["concurrency"], 1, 1 << 14),
            "memory": None if given["memory"] is None else size("memory", given["memory"]),
            **{name: bool(given[name]) for name in ("pin_memory", "persistent_workers", "in_order")},
        }  # fmt: skip
        return cls(**{**given, **checked}, iterable=iterable)


def is_iterable(dataset: Any) -> bool:
    """Return whether a dataset is iterated over: torch's IterableDataset, or an object that cannot be indexed."""
    return _is_torch(dataset, "IterableDataset") or (hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"))


def _is_torch(dataset: Any, name: str) -> bool:
    """Return whether a dataset is of a class of torch.utils.data; none is where that was never imported."""
    kind = getattr(sys.modules.get("torch.utils.data"), name, None)
    return kind is not None and isinstance(dataset, kind)


def _workers(workers: Any, given: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the number of workers, and how many batches each worker makes ahead."""
    if workers is not None:
        workers = count("num_workers", workers, -(1 << 31))
        if workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if given["timeout"] < 0:
        raise ValueError("timeout option should be non-negative")
    factor = given["prefetch_factor"]
    if workers == 0 and factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if factor is not None:
        factor = count("prefetch_factor", factor, -(1 << 31))
        if factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
    if given["persistent_workers"] and workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return workers, 2 if workers and factor is None else factor


def context(given: Any, workers: int | None) -> BaseContext | None:
    """Return the context of multiprocessing that a name or an object stands for; None if no context is given."""
    if given is None:
        return None
    if workers == 0:
        raise ValueError(f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={workers}")
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(given, str):
        known = multiprocessing.get_all_start_methods()
        if given not in known:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {known!r}, but got multiprocessing_context={given!r}"
            )
        package: Any = sys.modules.get("torch.multiprocessing", multiprocessing)
        given = package.get_context(given)
    if not isinstance(given, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, but got "
            f"multiprocessing_context={given}"
        )
    return given


def _without_order(given: Mapping[str, Any]) -> None:
    """Refuse an order for a dataset that is iterated over."""
    wanted = {"shuffle": given["shuffle"] not in (False, None), "sampler": given["sampler"] is not None}
    for name in ("shuffle", "sampler", "batch_sampler"):
        if wanted.get(name, given[name] is not None):
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given[name]}")


def _batches(given: Mapping[str, Any]) -> tuple[int | None, bool]:
    """Return batch_size and drop_last."""
    size, drop_last = given["batch_size"], given["drop_last"]
    if given["batch_sampler"] is not None:
        if size != 1 or given["shuffle"] or given["sampler"] is not None or drop_last:
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
        return None, False
    if size is None:
        if drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        return None, False
    try:
        n = 0 if isinstance(size, (bool, np.bool_)) else operator.index(size)
    except TypeError:
        n = 0
    if n <= 0:
        raise ValueError(f"batch_size should be a positive integer value, but got batch_size={size}")
    if not isinstance(drop_last, (bool, np.bool_)):
        raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
    return n, bool(drop_last)


def drawn(seed: Any, generator: Any) -> int:
    """Return a seed drawn from a generator of torch, as torch draws its base_seed, or of NumPy."""
    if seed is not None:
        raise ValueError("seed and generator are two sources of the order; leave one of the two out")
    if isinstance(generator, np.random.Generator):
        return int(generator.integers(1 << 63))
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(generator, torch.Generator):
        raise TypeError(f"generator is a {type(generator).__name__}; it must be a torch.Generator or a numpy.random.Generator")
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
