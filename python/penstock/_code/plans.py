"""Which batches a loop has, in which order, and where it is: torch's rules, or penstock's order.

Without a seed, TorchPlan asks torch's samplers, and draws what torch's DataLoader draws; with one, SeededPlan has the
order of the Go loader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .fetch import Task
from .plan import Plan
from .sampling import Ordered, sampled


class TorchPlan(Plan):
    """The indices of torch's samplers, and random numbers of workers that are drawn as torch draws them.

    ``base_seed`` seeds the workers; None draws it from torch's generator or, without torch, numpy.random's.
    """

    def __init__(
        self, index_sampler: Any, options: Any, epoch: int, base_seed: int | None, state: Mapping[str, Any] | None, torch: bool, arrays: bool
    ) -> None:
        self._sampler, self._state = index_sampler, state
        self._sampled = sampled(index_sampler, options.generator, arrays)
        self.below = getattr(self._sampled, "below", None)
        self._every, self._iterable = options.snapshot_every_n_steps, options.iterable
        self._number = self._start = 0
        self._next = 0
        self._order: Any = None
        self._workers = options.num_workers
        self.epoch = epoch
        if state is not None:
            base_seed = int(state["base_seed"])
        if base_seed is None:
            self._sampled.begin()
            base_seed = _draw(options.generator, torch)
        self.base_seed = base_seed

    def __len__(self) -> int:
        return len(self._sampler)

    def begin(self) -> None:
        state, self._state = self._state, None
        if state is None or state.get("order") is None:
            self._sampled.begin()
        else:
            self._sampled.load(state["order"])
        if state is not None:
            self.steps = self._start = int(state["step"])
            self._next = int(state.get("next", 0))
            self._order = state.get("order")

    def begin_serial(self) -> None:
        if self._state is not None or not self._sampled.begun:
            self.begin()

    def next(self) -> Task:
        records = self._sampled.next()
        j, self._number = self._start + self._number, self._number + 1
        n = self._every
        wanted = n == 1 or self._iterable or (j + self._workers) // n > j // n
        return Task(0, records, self.epoch, snapshot=wanted, order=None if self._iterable else self._sampled.state())

    def delivered(self, task: Task, number: int) -> None:
        self.steps, self._order = self.steps + 1, task.order
        self._next = (number + 1) % max(1, self._workers)

    def arrays(self) -> Iterator[np.ndarray]:
        return self._sampled.rest()  # type: ignore[no-any-return]

    def state(self) -> dict[str, Any]:
        order = self._order
        if (order is None or self.below is not None) and not self._iterable and self._sampled.begun:
            order = self._sampled.state(self.steps)
        return {"epoch": self.epoch, "step": self.steps, "base_seed": self.base_seed, "next": self._next, "order": order}


class SeededPlan(Plan):
    """Penstock's order of one epoch, from a step on, without the steps that were yielded before."""

    fixed = False
    light = True

    def __init__(self, ordered: Ordered, epoch: int, base_seed: int | None = None, state: Mapping[str, Any] | None = None) -> None:
        self._ordered, self._epoch, self.base_seed = ordered, epoch, base_seed or 0
        self.steps = state["step"] if state else 0
        self._done: set[int] = set(state.get("done", ())) if state else set()
        self.below = None if self._done else ordered.records
        self._numbered: Iterator[Any] = iter(())

    def __len__(self) -> int:
        self._ordered.set_epoch(self._epoch)
        return len(self._ordered)

    def begin(self) -> None:
        done = frozenset(self._done)
        self._numbered = ((k, records) for k, records in enumerate(self.arrays(), self.steps) if k not in done)

    begin_serial = begin

    def arrays(self) -> Iterator[np.ndarray]:
        self._ordered.set_epoch(self._epoch, self.steps)
        return iter(self._ordered)

    def next(self) -> Task:
        step, records = next(self._numbered)
        return Task(0, records, self._epoch, step)

    def delivered(self, task: Task, number: int) -> None:
        self._done.add(task.step)
        while self.steps in self._done:
            self._done.discard(self.steps)
            self.steps += 1

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {"epoch": self._epoch, "step": self.steps}
        return {**found, "done": sorted(self._done)} if self._done else found


def _draw(generator: Any, torch: bool) -> int:
    """Draw a base seed."""
    if not torch:
        draw = np.random if generator is None else generator
        return int(draw.randint(0, 1 << 62) if hasattr(draw, "randint") else draw.integers(0, 1 << 62))
    from torch import empty, int64

    return int(empty((), dtype=int64).random_(generator=generator).item())
