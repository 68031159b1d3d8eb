"""Answers to the questions of frameworks over torch about a DataLoader: its class, its samplers, and that it is prepared for them.

Nothing here imports torch or a framework that the program has not imported.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any

from .errors import Error
from .samplers import Sampler, Sequential, Shuffle

_classes: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()


def torch_class(cls: type) -> type:
    """Return the class of DataLoaders like cls that are instances of torch's DataLoader, too: for isinstance.

    It has the name of cls, and whatever cls defines goes before what torch's DataLoader does.
    """
    from torch.utils.data import DataLoader

    if issubclass(cls, DataLoader):
        return cls
    if cls not in _classes:
        members = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__, "_written": cls}
        _classes[cls] = type(cls.__name__, (cls, DataLoader), members)
    return _classes[cls]


def sampler_of(loader: Any, order: Any, rank: int, world_size: int) -> Any:
    """Return a sampler of torch that says what a frameworks asks of one: how records are drawn, and for which process.

    It is a DistributedSampler where the loader has a part of the data, so that no framework puts one of its own in its place.
    Its set_epoch is that of the loader.
    """
    if not isinstance(order, Sampler):
        return order
    from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler
    from torch.utils.data import Sampler as TorchSampler

    records = range(max(1, loader.records))
    if world_size > 1:

        class Distributed(DistributedSampler):  # type: ignore[type-arg]
            def set_epoch(self, epoch: int) -> None:
                loader.set_epoch(epoch)

        return Distributed(records, world_size, rank, shuffle=not isinstance(order, Sequential))
    if isinstance(order, (Shuffle, Sequential)):
        return RandomSampler(records) if isinstance(order, Shuffle) else SequentialSampler(records)

    class Ordered(TorchSampler):  # type: ignore[type-arg]
        """Stands for a sampler of penstock.samplers, ``order``, whose draws the feeding process makes."""

        def __init__(self) -> None:
            self.order = order

        def __len__(self) -> int:
            return len(records)

        def __iter__(self) -> Iterator[int]:
            raise Error(f"{order!r:.60} draws in the feeding process; iterate over the DataLoader")

    return Ordered()


def not_collated(samples: Any) -> Any:
    """Stand for the collate function of a DataLoader that collates nothing in Python."""
    raise Error(
        "a framework made torch's DataLoader of a penstock.DataLoader, which has none of its transforms; take the penstock.DataLoader as it is, "
        'with rank="auto" for a part of the data in each process'
    )
