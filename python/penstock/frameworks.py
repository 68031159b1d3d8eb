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

_LIGHTNING = {"lightning.pytorch", "pytorch_lightning"}
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
    """Return a sampler of torch that says what frameworks ask of one: how records are drawn, and for which process.

    It is a DistributedSampler where the loader has a part of the data, so that no framework puts one of its own in its place. Its
    set_epoch is that of the loader. ``penstock_order`` is the order, by which samplers.translate knows it again.
    """
    if not isinstance(order, Sampler):
        return order
    from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler
    from torch.utils.data import Sampler as TorchSampler

    records: Any = range(max(1, loader.records))  # of which torch wants the length alone
    found: Any
    if world_size > 1:
        found = DistributedSampler(records, world_size, rank, shuffle=not isinstance(order, Sequential))
        found.set_epoch = loader.set_epoch
    elif isinstance(order, (Shuffle, Sequential)):
        found = RandomSampler(records) if isinstance(order, Shuffle) else SequentialSampler(records)
    else:

        class Ordered(TorchSampler):  # type: ignore[type-arg]
            """Stands for a sampler of penstock.samplers, whose draws the feeding process makes."""

            def __len__(self) -> int:
                return len(records)

            def __iter__(self) -> Iterator[int]:
                raise Error(f"{order!r:.60} draws in the feeding process; iterate over the DataLoader")

        found = Ordered()
    found.penstock_order = order
    return found


def batch_sampler_of(loader: Any) -> Any:
    """Return the batch sampler that Accelerate finds at a prepared dataset; None in programs without it.

    Its skip_first_batches makes torch's DataLoader of it, which would have none of the batches here: iterating says how to skip instead.
    Lightning would make another DataLoader of it to predict.
    """
    states = sys.modules.get("accelerate.state")
    if states is None or not states.PartialState._shared_state or not _LIGHTNING.isdisjoint(sys.modules):
        return None
    from torch.utils.data import BatchSampler

    class Drawn(BatchSampler):
        """Stands for the batches that the feeding process makes."""

        def __len__(self) -> int:
            return len(loader)

        def __iter__(self) -> Iterator[Any]:
            raise Error(
                "skip_first_batches of Accelerate makes torch's DataLoader of a penstock.DataLoader, which has none of its batches; take the "
                'penstock.DataLoader as it is, and write loader.load_state_dict({**loader.state_dict(), "step": n}): its next loop is the rest of '
                "the epoch after n batches, and reads none of these again"
            )

    return Drawn(loader.sampler, loader.batch_size, loader.drop_last)


class Progress:
    """The state of a loop over a DataLoader, as Accelerate asks for it."""

    def __init__(self, state: Any, device: Any) -> None:
        self._state, self._device = state, device
        #: Whether the batch that was yielded last is the last of the epoch.
        self.end_of_dataloader = False
        #: How many records of all processes the last batch has that are not repeated; 0 or -1 if it has no others.
        self.remainder = -1

    def follow(self, batches: Iterator[Any], loader: Any) -> Iterator[Any]:
        """Yield the batches of a loop, on Accelerate's device."""
        from accelerate.utils import send_to_device

        self.end_of_dataloader = False
        try:
            total, steps = loader.records, len(loader)
        except TypeError:
            total, steps = None, None
        size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
        self.remainder = -1 if loader.drop_last or total is None or size is None else total % (size * loader.world_size)
        self._state._add_dataloader(self)
        try:
            done = loader.step
            for batch in batches:
                done += 1
                self.end_of_dataloader = done == steps
                yield batch if self._device.type == "cpu" else send_to_device(batch, self._device, non_blocking=loader.pin_memory)
        finally:
            self._state._remove_dataloader(self)


def accelerated(loader: Any) -> Any:
    """Return what Accelerate's prepare needs to know about a DataLoader; None if Accelerate should build its own from it.

    It builds torch's DataLoader over the same dataset if that is a user's dataset in several processes, which nothing else would
    divide. A prepared dataset is divided as by rank="auto".
    """
    states = sys.modules.get("accelerate.state")
    if states is None or not loader._of_torch or not states.PartialState._shared_state:
        return None
    known = states.PartialState()
    if known.num_processes > 1 and loader.world_size == 1 and not loader._divide(known.process_index, known.num_processes):
        return None
    return Progress(states.GradientState(), known.device)


def not_collated(samples: Any) -> Any:
    """Stand for the collate function of a DataLoader that collates nothing in Python."""
    raise Error(
        "a framework made torch's DataLoader of a penstock.DataLoader, which has none of its transforms; take the penstock.DataLoader as it is, "
        'with rank="auto" for a part of the data in each process'
    )
