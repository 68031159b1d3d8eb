"""The engine of a DataLoader whose dataset is Python code: epochs, and states.

Each iter() makes a plan of batches and a loop that carries it out: in this process, by workers, or by gathering rows
of arrays.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .._base.errors import Error, UnsupportedError
from .._base.limits import cores
from .._base.options import OnError, choice
from .._engine.epochs import Engine, Epochs
from .._engine.signature import Signature
from .._engine.states import check_mapping
from . import collate, randomness, sampling
from .fetch import Work
from .gather import Gather, GatherLoop
from .loops import Loop, ParallelLoop, SerialLoop
from .measure import Measures
from .plan import Plan
from .plans import SeededPlan, TorchPlan
from .states import Run

_VERSION = 1


class UserLoader(Engine):
    """Batches of a user's dataset: see the package."""

    _ordered: Any = None  # penstock's order; None without a seed
    plan_class: type[TorchPlan] = TorchPlan  # of the order without a seed

    def __init__(
        self,
        signature: Signature,
        *,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        last: str = "equal",
        on_error: OnError = "fail",
        output: str = "torch",
    ) -> None:
        self._seed, self._rank, self._world_size, self._on_error = seed, rank, world_size, on_error
        self._torch = output == "torch"
        _refuse(signature, seed, world_size, on_error)
        self._signature = signature
        self._gather: Gather | None = signature.dataset if isinstance(signature.dataset, Gather) else None
        self._last = last
        if seed is not None and not signature.iterable:
            self._order_again()
            self._rank, self._world_size = self._ordered.rank, self._ordered.world_size
        self.sampler, self.batch_sampler = sampling.of(signature, signature.dataset if self._gather is None else self._gather.source, self._torch)
        self._persistent: Any = None  # the loop whose workers stay
        self._latest: weakref.ref[Loop] | None = None
        self._measures = Measures()
        self.epochs = Epochs(signature.sampler if self._ordered is not None else None)
        self._promised: int | None = None

    def _order_again(self) -> None:
        """Have penstock's order, if there is a seed, be one of as many records as the dataset has now."""
        signature = self._signature
        if self._seed is None or signature.iterable or (self._ordered is not None and self._ordered.records == len(signature.dataset)):
            return
        self._ordered = sampling.seeded(signature, self._seed, self._rank, self._world_size)
        self._ordered.last = self._last

    @property
    def signature(self) -> Signature:
        """The parameters of the loader. Another one holds from the next iter() on."""
        return self._signature

    @signature.setter
    def signature(self, signature: Signature) -> None:
        _refuse(signature, self._seed, self._world_size, self._on_error)
        self._signature = signature

    @property
    def gathers(self) -> bool:
        """Whether batches are gathered from arrays, without a collate_fn."""
        return self._gather is not None

    @property
    def part(self) -> tuple[int, int]:
        """Rank and world size."""
        return self._rank, self._world_size

    @property
    def _iterator(self) -> Any:
        """The loop of persistent workers, as torch's DataLoader has it. None ends them."""
        return self._persistent

    @_iterator.setter
    def _iterator(self, loop: Any) -> None:
        if self._persistent is not None and loop is not self._persistent:
            self._persistent.close()
        self._persistent = loop

    def __len__(self) -> int:
        signature = self._signature
        if self._ordered is not None:
            return len(SeededPlan(self._ordered, self.epoch))
        if not signature.iterable:
            return len(self._index_sampler)
        n = self._promised = len(signature.dataset)
        if signature.batch_size is not None:
            n = n // signature.batch_size if signature.drop_last else -(-n // signature.batch_size)
        return n

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._signature.batched else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self._gather is not None:
            self._gather.look()
        self._order_again()
        epoch, state = self.begins()["epoch"], self.epochs.loaded
        signature = self._signature
        workers = self._workers()
        if state is not None:
            self._check_workers(state)  # again, as num_workers may have been set since
        loop = self._persistent
        if loop is None or not signature.persistent_workers or state is not None or not loop.open:
            self._iterator = None
            if state is not None and state["finished"] and state.get("order") is not None:
                sampling.sampled(self._index_sampler, signature.generator, self.gathers).pass_over(state["order"])
            plan, work = self._planned(epoch, workers)
            kind: Any = GatherLoop if self.gathers else ParallelLoop if workers else SerialLoop
            kind = _of_torch(kind) if self._torch else kind
            loop = kind(plan, work, self._measures, replace(signature, num_workers=workers), _within(state))
            self._persistent = loop if signature.persistent_workers and workers else None
        else:
            known = self._seed is not None or self.epochs.said is not None
            loop.again(self._plan(epoch, workers, loop.base_seed), epoch if known else None)
        loop.promised = self._promised
        self._latest = weakref.ref(loop)
        self.epochs.begin(loop.place.position, self._latest)
        return loop  # type: ignore[no-any-return]

    def _workers(self) -> int:
        workers = self._signature.num_workers
        return cores() if workers is None else workers

    def _planned(self, epoch: int, workers: int) -> tuple[Plan, Work]:
        """Return the batches of a loop that begins, and what workers do."""
        signature = self._signature
        default = signature.collate_fn is None
        function = collate.default(signature.batched, self._torch) if default else signature.collate_fn
        self._measures.of(signature, workers, function)
        base_seed = None if self._seed is None else randomness.worker_seed(self._seed, epoch, self._rank)
        plan = self._plan(epoch, workers, base_seed)
        return plan, Work(
            signature.dataset, signature.iterable, signature.batched, function, signature.drop_last, workers, signature.worker_init_fn,
            base_seed=plan.base_seed, seed=self._seed, rank=self._rank, on_error=self._on_error, concurrency=signature.concurrency,
        )  # fmt: skip

    def _plan(self, epoch: int, workers: int, base_seed: int | None) -> Plan:
        """Return the batches of a loop that begins, whose workers have a seed if it is known."""
        within = _within(self.epochs.loaded)
        if self._ordered is None:
            options = replace(self._signature, num_workers=workers)
            return self.plan_class(self._index_sampler, options, epoch, base_seed, within, self._torch, self.gathers)
        return SeededPlan(self._ordered, epoch, base_seed, within)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next loop is, also to whatever asks for it."""
        super().set_epoch(epoch)
        if self._ordered is None:
            inner = getattr(self.batch_sampler, "sampler", None)
            for listener in {id(o): o for o in (self.batch_sampler, self.sampler, inner, getattr(inner, "sampler", None))}.values():
                _pass_epoch(listener, epoch)
        _pass_epoch(self._signature.dataset, epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is: after the batch that was yielded last."""
        at = self.epochs.position
        if self.epochs.loaded is not None:
            return {**at}
        at = {"finished": False, **at}
        if self._ordered is not None:
            at = {name: value for name, value in at.items() if name not in ("workers", "num_workers")}
        elif not self._signature.in_order and at.get("num_workers"):
            warnings.warn(
                "a state with in_order=False does not say which batches were yielded before others; give in_order=True, or seed=", stacklevel=2
            )
        return {**self._identity(), **at}

    def _identity(self) -> dict[str, Any]:
        """Return what does not change in a run."""
        signature = self._signature
        identity = {"penstock": _VERSION, "kind": "iterable" if signature.iterable else "map", "seed": self._seed}
        if self._ordered is None:
            records = {} if self._gather is None else {"records": len(self._gather)}
            return {**identity, **records, "shuffle": signature.shuffle, "batch_size": signature.batch_size, "drop_last": signature.drop_last}
        return {
            **identity, "records": len(signature.dataset), "sampler": self._ordered.name,
            "global_batch": (signature.batch_size or 1) * self._world_size, "drop_last": signature.drop_last,
        }  # fmt: skip

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Have the next loop begin where state_dict was taken."""
        if isinstance(state_dict, Mapping) and not state_dict:
            self.epochs.load(None)
            return
        check_mapping(state_dict, "penstock", "finished", "seed")
        batches = None
        with contextlib.suppress(TypeError, NotImplementedError):  # of a sampler without a length
            batches = None if self._signature.iterable else len(self)
        run = Run(self._signature, self._seed, self._index_sampler, batches, self._ordered is not None, self.gathers)
        run.check(state_dict, self._identity())
        self._check_workers(state_dict)
        self.epochs.load(dict(state_dict))

    def _check_workers(self, state: Mapping[str, Any]) -> None:
        """Refuse a state that has states of workers, if its number of workers differs."""
        had, have = state.get("num_workers", self._workers()), self._workers()
        if had != have and any(s for s in state.get("workers", ())):
            raise Error(
                f"the state is of {had} workers, whose random numbers and datasets are part of it, and this DataLoader has {have}; give "
                f"num_workers={had}, or, for a dataset that is indexed, seed=, with which a state holds for any number of workers"
            )

    def stats(self) -> dict[str, Any]:
        """Return what the loader did since it was made. Times are nanoseconds; times of workers are summed over workers."""
        return self._measures.numbers() if self._gather is None else self._gather.stats(self._measures.batches)

    def diagnose(self) -> str:
        """Return a sentence that says what limits the loop, and what to do."""
        return str(self.stats()["diagnose"])

    def close(self) -> None:
        """End the workers."""
        loop = None if self._latest is None else self._latest()
        if loop is not None:
            loop.close()
        self._iterator = None
        if self._gather is not None:
            self._gather.buffers.clear()


def _within(state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a state if it is within an epoch."""
    return state if state is not None and not state["finished"] and ("workers" in state or state["step"] or state.get("done")) else None


def _refuse(signature: Signature, seed: int | None, world_size: int, on_error: str) -> None:
    """Refuse what a dataset of Python code cannot have."""
    if any(base.__name__ in ("IterDataPipe", "MapDataPipe") and base.__module__.startswith("torch.") for base in type(signature.dataset).__mro__):
        raise UnsupportedError(
            f"{type(signature.dataset).__name__} is a DataPipe, which torch's own DataLoader shuffles and divides over workers; "
            "give an IterableDataset or a Dataset, or take torch.utils.data.DataLoader for it"
        )
    if (
        signature.iterable
        and signature.num_workers
        and hasattr(signature.dataset, "__next__")
        and type(signature.dataset).__module__ in ("builtins", "itertools")
    ):
        raise ValueError(
            f"dataset is a {type(signature.dataset).__name__}, an iterator, of which each of {signature.num_workers} workers would yield all items: "
            "give num_workers=0, or an object whose __iter__ takes its share by penstock.get_worker_info()"
        )
    choice("on_error", on_error, OnError)
    if on_error != "fail" and (seed is None or signature.iterable):
        raise ValueError(f'on_error="{on_error}" is for datasets that are indexed, with seed=; catch the exception in the dataset, or give seed=')
    if signature.concurrency > 1 and (signature.iterable or on_error != "fail" or isinstance(signature.dataset, Gather)):
        raise ValueError(
            "concurrency is for own datasets that are indexed, with on_error='fail': what is iterated over, or in memory, has no records to wait for"
        )
    if world_size != 1 and seed is None:
        raise ValueError("rank and world_size need seed= with a dataset of Python code; without it, give torch's DistributedSampler as sampler")
    if world_size != 1 and signature.iterable:
        raise ValueError(
            "rank and world_size are for datasets that are indexed: have the dataset's __iter__ take its share, by rank and get_worker_info()"
        )


def _pass_epoch(listener: Any, epoch: int) -> None:
    method = getattr(listener, "set_epoch", None)
    if callable(method):
        method(epoch)


@functools.cache
def _of_torch(kind: type) -> type:
    """Return a class of loops that is also a class of torch's iterators, for programs that ask by isinstance."""
    if "torch" not in sys.modules:
        return kind
    from torch.utils.data import dataloader

    base = dataloader._MultiProcessingDataLoaderIter if kind is ParallelLoop else dataloader._SingleProcessDataLoaderIter
    return type(base.__name__, (kind, base), {"__module__": kind.__module__, "__doc__": kind.__doc__})
