"""Answers to the questions of frameworks over torch about a DataLoader: its class, its samplers, and that it is prepared for them.

Nothing here imports torch or a framework that the program has not imported.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any

from .._base.errors import Error
from ..samplers import Sampler, Sequential, Shuffle

#: Modules of Lightning.
LIGHTNING = frozenset(("lightning.pytorch", "pytorch_lightning"))

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
    set_epoch is the loader's. ``penstock_order`` is the order, by which samplers.translate knows it again.
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


def accelerate_asks() -> bool:
    """Return whether Accelerate's code reads an attribute: it asks the descriptor, which asks the method that calls this
    function.
    """
    states = sys.modules.get("accelerate.state")
    return (
        states is not None and bool(states.PartialState._shared_state) and str(sys._getframe(3).f_globals.get("__name__")).startswith("accelerate.")
    )


#: Parameters of a DataLoader of torch that loads in this process.
_NO_WORKERS = {
    "num_workers": 0, "timeout": 0, "prefetch_factor": None, "persistent_workers": False, "pin_memory": False, "multiprocessing_context": None,
}  # fmt: skip


class SkippingParts:
    """The parts of a DataLoader of which Accelerate's skip_first_batches makes torch's: it yields the batches of this one.

    Torch's DataLoader asks the batch sampler for the records of a batch, and then calls collate_fn with them. Here the first counts
    batches, and names no records. The second, called for the number that was counted last, hands on the next batch of a loop that began there.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._step = 0
        self._batches: Any = None

    def part(self, name: str) -> Any:
        """Return a parameter for torch's DataLoader, which is to start no workers: the loop has its own."""
        if name == "batch_sampler":
            return self._counted()
        if name == "dataset":
            return range(self._loader.records)
        if name == "generator":  # from which it draws a seed for the workers that it has not
            import torch

            return torch.Generator()
        return self._next if name == "collate_fn" else _NO_WORKERS[name]

    def _counted(self) -> Any:
        from torch.utils.data import BatchSampler

        drawn, loader = self, self._loader

        class Counted(BatchSampler):
            """The batches of an epoch by number."""

            def __init__(self) -> None:
                self.sampler, self.batch_size, self.drop_last = loader.sampler, loader.batch_size, loader.drop_last

            def __len__(self) -> int:
                return len(loader)

            def __iter__(self) -> Iterator[list[int]]:
                drawn._batches = None
                try:
                    for drawn._step in range(len(loader)):
                        yield []
                finally:
                    drawn._batches = None

            def set_epoch(self, epoch: int) -> None:
                loader.set_epoch(epoch)

            @property
            def even_batches(self) -> bool:
                return bool(loader._last != "uneven")

            @even_batches.setter
            def even_batches(self, value: bool) -> None:
                loader._divide(loader.rank, loader.world_size, loader.batch_size, "full" if value else "uneven")

        return Counted()

    def _next(self, _: Any) -> Any:
        if self._batches is None:
            self._batches = self._loader._rest(self._step)
        for batch in self._batches:
            return batch
        raise Error(f"the epoch ended before its batch {self._step}")


class Preparation:
    """What Accelerate's prepare makes of a DataLoader: the part of the data of this process, and the state of loops that it asks for.

    ``made`` is what Accelerate makes of torch's DataLoader of as many records; this loader divides its records in the same way.
    """

    def __init__(self, accelerator: Any, made: Any, follows: bool) -> None:
        self.accelerator, self.made = accelerator, made
        self._follows = follows  # whether the order is torch's, whose epochs Accelerate announces

    def follow(self, batches: Iterator[Any], done: int, loader: Any) -> Iterator[Any]:
        """Yield the batches of a loop that begins after some, on Accelerate's device."""
        from accelerate.utils import send_to_device, synchronize_rng_states

        made = self.made
        if made.rng_types:
            synchronize_rng_states(made.rng_types, made.synchronized_generator)
        steps = len(loader)
        made.begin()
        try:
            for batch in batches:
                done += 1
                made.end_of_dataloader = done == steps
                yield batch if made.device is None else send_to_device(batch, made.device, non_blocking=made._non_blocking)
            made.iteration += 1
        finally:
            made.end()

    def begin(self) -> None:
        """Announce the epoch that begins."""
        if self._follows:
            self.made.set_epoch(self.made.iteration)


def prepared(loader: Any) -> Preparation | None:
    """Return what the Accelerator that asks makes of a DataLoader; None if the Accelerator should build a DataLoader itself.

    It builds torch's DataLoader over a dataset of Python that its first process alone reads, or that is iterated over by
    several, which nothing else would divide.
    """
    frame = sys._getframe(2)  # that reads the property that calls this
    if not loader._of_torch or frame.f_code.co_name != "prepare_data_loader" or frame.f_globals.get("__name__") != "accelerate.accelerator":
        return None
    from accelerate.data_loader import prepare_data_loader
    from torch.utils.data import DataLoader

    asks, mine = frame.f_locals["self"], vars(loader)
    several, dispatches = asks.num_processes > 1, asks.dispatch_batches
    ordered, iterable = loader._ordered, loader._signature.iterable
    if (iterable and (several or not hasattr(mine["dataset"], "__len__"))) or (dispatches and several and not ordered) or loader.batch_size is None:
        return None
    said = loader.world_size > 1 or mine["rank"] is not None or mine["world_size"] is not None
    for name, differs in (("split_batches=True", asks.split_batches), ("even_batches=False", not asks.even_batches)):
        if said and several and differs:
            raise Error(f"{name} of Accelerate has it divide the batches, and the DataLoader has rank=; leave rank= and world_size= out")
    if dispatches and several and frame.f_locals.get("slice_fn_for_dispatch") is not None:
        raise Error("slice_fn_for_dispatch divides batches in one process, and each process loads its part of these; leave it out")
    placed = frame.f_locals.get("device_placement")
    common = {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
    numbers: Any = range(max(1, loader.records))
    given = DataLoader(numbers, **common) if ordered else DataLoader(loader.dataset, batch_sampler=loader.batch_sampler)
    made = prepare_data_loader(
        given, asks.device, num_processes=asks.num_processes, process_index=asks.process_index, split_batches=asks.split_batches,
        put_on_device=asks.device_placement if placed is None else placed, rng_types=asks.rng_types.copy(), dispatch_batches=False,
        even_batches=asks.even_batches, use_seedable_sampler=asks.use_seedable_sampler and not ordered, data_seed=asks.dataloader_config.data_seed,
        non_blocking=asks.non_blocking, torch_device_mesh=asks._prepare_device_mesh(),
    )  # fmt: skip
    made._drop_last, batches = loader.drop_last, made.batch_sampler
    if not ordered:
        mine["batch_sampler"] = batches
    elif getattr(batches, "num_processes", 1) > 1 and not said:
        size = loader.batch_size // (batches.num_processes if batches.split_batches else 1)
        last = "equal" if dispatches else "full" if batches.even_batches else "uneven"
        loader._divide(batches.process_index, batches.num_processes, size, last)
    return Preparation(asks, made, not ordered)


def not_collated(samples: Any) -> Any:
    """Stand for the collate function of a DataLoader that collates nothing in Python."""
    raise Error(
        "a framework made torch's DataLoader of a penstock.DataLoader, which has none of its transforms; take the penstock.DataLoader as it is, "
        'with rank="auto" for a part of the data in each process'
    )
