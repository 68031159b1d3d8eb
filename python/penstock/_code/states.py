"""The contents of states of a loader of user code: each value is compared with the values that the run can have before it is
used.

A state comes from a checkpoint, which may be of another run, of another release, or a stranger's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._engine.states import POSITION, check_identity, checking, only
from .._engine.wire import Malformed, number, part, shown
from . import randomness
from .fetch import stateful
from .sampling import ArrayEpoch, check_random, generator_of, makes_generator, owners

#: Batches that may be under way, of which a state with in_order=False does not have all.
_UNDER_WAY = 1 << 16
_MOST_WORKERS = 1 << 16
_MAX_SEED = (1 << 63) - 1

_BEGUN = {*POSITION, "finished"}
_SEEDED = {*_BEGUN, "done"}
_TORCH = {*_BEGUN, "base_seed", "next", "order", "workers", "num_workers", "since"}
_ORDER = {"given", "begun", "first", "iterator", "sampler", "ended"}
_WORKER = {"taken", "ended", "iterator", "dataset", "begun", "random"}


@dataclass(frozen=True)
class Run:
    """What a loader can have."""

    signature: Any
    seed: int | None
    #: What batches come from without a seed.
    index_sampler: Any
    #: The number of batches of an epoch; None if it is not known.
    batches: int | None
    ordered: bool
    arrays: bool

    def check(self, state: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
        """Raise Error for a state that this run cannot have, or that is of another run."""
        check_identity(state, identity)
        with checking():
            self._check(state, {name for name in state if name not in identity})

    def _check(self, state: Mapping[str, Any], names: set[str]) -> None:
        only(names, _SEEDED if self.ordered else _TORCH)
        number(state, "epoch")
        step = number(state, "step", 0, *(() if self.batches is None else (self.batches,)))
        part(state, "finished", bool)
        if self.ordered:
            self._check_done(state, step)
        elif step or names > _BEGUN:
            self._check_torch(state, step)

    def _check_done(self, state: Mapping[str, Any], step: int) -> None:
        before, done = step, part(state, "done", list) if "done" in state else []
        for k in range(len(done)):
            before = number({"done": done[k]}, "done", before + 1, (self.batches or 1) - 1)

    def _check_torch(self, state: Mapping[str, Any], step: int) -> None:
        signature = self.signature
        number(state, "base_seed", 0, _MAX_SEED)
        workers = number(state, "num_workers", 0, _MOST_WORKERS)
        number(state, "next", 0, max(workers, 1) - 1)
        if "since" in state:
            since = number(state, "since")
            if since >= signature.snapshot_every_n_steps:
                raise Malformed(f"since is {shown(since)} batches after a snapshot, and snapshot_every_n_steps is {signature.snapshot_every_n_steps}")
        if state.get("order") is not None:
            self._check_order(part(state, "order", dict), step)
        elif step and not signature.iterable:
            raise Malformed("order is missing")
        states = part(state, "workers", list)
        if len(states) != max(1, workers):
            raise Malformed(f"workers has {len(states)} states of {workers} workers")
        for n in range(len(states)):
            self._check_worker(part({"workers": states[n] or {}}, "workers", dict))
        if signature.iterable:
            self._check_samples(sum(s.get("taken", 0) for s in states if s), step, max(1, workers))

    def _check_order(self, order: Mapping[str, Any], step: int) -> None:
        """Raise Malformed for a value that cannot be a sampler's order after ``step`` batches."""
        drawn = ArrayEpoch(self.index_sampler) if self.arrays and ArrayEpoch.takes(self.index_sampler) else None
        only(set(order), _ORDER if drawn is None else ("given", "drawn"))
        given = number(order, "given", step if self.signature.in_order else 0, step if self.signature.in_order else step + _UNDER_WAY)
        if drawn is not None:
            drawn.check(order)
            return
        if "sampler" in order and not owners(self.index_sampler):
            raise Malformed("it has a state of a sampler, and this sampler has no load_state_dict")
        if "ended" in order:
            part(order, "ended", bool)
        own = "sampler" in order or "iterator" in order
        if not own or not given or "begun" in order or "first" in order:
            generator, made = generator_of(self.index_sampler, self.signature.generator), makes_generator(self.index_sampler)
            check_random(order.get("begun"), generator, made)
            if (order.get("first") is not None or given) and order.get("first") != "begun":
                check_random(order.get("first"), generator, made)

    def _check_worker(self, worker: Mapping[str, Any]) -> None:
        only(set(worker), _WORKER)
        if "taken" in worker or "ended" in worker or "begun" in worker or "iterator" in worker:
            if not self.signature.iterable:
                raise Malformed("workers are of an iterable dataset, and this one is indexed")
            number(worker, "taken")
            part(worker, "ended", bool)
        if "dataset" in worker and not stateful(self.signature.dataset):
            raise Malformed("it has a state of a dataset, and this dataset has no load_state_dict")
        for name in ("begun", "random"):
            if name in worker:
                randomness.decode(worker[name])

    def _check_samples(self, taken: int, step: int, workers: int) -> None:
        """Compare the samples that were read with the batches that were yielded: each worker has read at most one batch that it did not yield."""
        size = self.signature.batch_size or 1
        most = (step + workers) * size
        if not step <= taken <= most:
            raise Malformed(f"taken is {shown(taken)}, and {step} batches have {step} to {most} samples")
