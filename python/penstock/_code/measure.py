"""Measurements of a loader of user code, in numbers and in a sentence.

``DataLoader.stats`` returns the numbers, and ``diagnose`` the sentence: whether training, the dataset or collate_fn
limits the loop.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._base.limits import cores
from .._engine.advice import more_at_once, times_as_fast
from .profile import Stack, hottest

#: A wait shorter than this share of the loop is not what limits it.
WAITS = 0.05
#: The share of the workers' time at work from which the workers count as too few.
BUSY = 0.7


@dataclass
class Measures:
    """Times are nanoseconds. Those of workers are sums over workers."""

    workers: int = 0
    batches: int = 0
    wait_ns: int = 0
    #: From the first batch of each loop to its last.
    loop_ns: int = 0
    dataset_ns: int = 0
    collate_ns: int = 0
    copy_ns: int = 0
    #: CPU time in the dataset and in collate_fn.
    cpu_ns: int = 0
    skipped: int = 0
    _names: tuple[str, str] = ("the dataset", "collate_fn")  # of the method that makes samples, and of collate_fn
    _stacks: Counter[Stack] = field(default_factory=Counter)
    _dataset: Any = None  # whose samples may be stored
    _storing: str = ""  # the code that stores the samples of the dataset; "" if there is no such code

    def of(self, signature: Any, workers: int, collate: Any) -> None:
        """Note which dataset a loop is over."""
        dataset = signature.dataset
        method = "__iter__" if signature.iterable else "__getitems__" if getattr(dataset, "__getitems__", None) else "__getitem__"
        self.workers = workers
        self._names = f"{type(dataset).__name__}.{method}", getattr(collate, "__qualname__", type(collate).__name__)
        self._dataset = None if signature.iterable or signature.collate_fn is not None else dataset

    def add(self, times: Any, stacks: Mapping[Stack, int] | None = None) -> None:
        """Count the times of a batch."""
        self.dataset_ns += times[0]
        self.collate_ns += times[1]
        self.copy_ns += times[2]
        self.cpu_ns += times[3]
        if stacks:
            self._stacks.update(stacks)

    def yielded(self, batch: Any) -> None:
        """Count a batch."""
        self.batches += 1
        if self.batches == 1 and self._dataset is not None:
            self._storing = storing(self._dataset, batch)

    def numbers(self) -> dict[str, Any]:
        found = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        return {**found, "diagnose": self.diagnose()}

    def diagnose(self) -> str:
        """Return what limits the loop, and what to do, in a sentence."""
        if self.batches < 2 or not self.loop_ns:
            return "too few batches to say what limits the loop: iterate further"
        share = self.wait_ns / self.loop_ns
        if share < WAITS:
            return f"the training step limits the loop: it waits for batches {share:.0%} of the time"
        busy = self.dataset_ns + self.collate_ns + self.copy_ns
        parts = {self._names[0]: self.dataset_ns, self._names[1]: self.collate_ns, "copying to shared memory": self.copy_ns}
        slowest = max(parts, key=lambda name: parts[name])
        of_work = parts[slowest] / max(busy, 1)
        text = f"user code limits the loop: it waits for batches {share:.0%} of the time, and {slowest} takes {of_work:.0%} of the work"
        inner = hottest(self._stacks)
        if inner is not None and inner[0].partition(" (")[0].rpartition(".")[2] != slowest.rpartition(".")[2]:
            text += f", {inner[1]:.0%} of it in {inner[0]}"
        load, n = busy / max(self.loop_ns * self.workers, 1), cores()
        number, gain = more_at_once(self.loop_ns, self.loop_ns - self.wait_ns, busy, self.workers)
        enough = f"num_workers={number} would make the loop {times_as_fast(gain)}"
        if not self.workers and self._waits():
            text += f", in this process; it waits for something else than a core: {enough}"
        elif not self.workers:
            text += f", in this process; num_workers={n} would use all cores"
        else:
            text += f"; {self.workers} worker{'s are' if self.workers > 1 else ' is'} busy {min(load, 1):.0%} of the time"
            if load < BUSY:
                return f"{text}: give more prefetch_factor, or find what else uses the CPU"
            if self._waits():
                text += f", mostly for something else than a core: {enough}"
            else:
                text += f": num_workers={n} would use all cores" if self.workers < n else f", and there are {n} cores"
        return text + self._stored(share) if slowest == self._names[0] else text

    def _stored(self, share: float) -> str:
        """Return what is said of a prepared dataset."""
        if not self._storing:
            return ""
        fast = times_as_fast(1 / max(1 - share, 0.05))
        return f"; if it draws no random numbers, store its results once: {self._storing}, with which the loop would be {fast}"

    def _waits(self) -> bool:
        """Return whether user code mostly waits for something else than a core."""
        return self.cpu_ns < (self.dataset_ns + self.collate_ns) / 2


def storing(dataset: Any, batch: Any) -> str:
    """Return the command, or the code, that stores the samples of a dataset, which make such a batch."""
    root = getattr(dataset, "root", None)
    if type(dataset).__name__ == "ImageFolder" and isinstance(root, (str, os.PathLike)):
        return f"penstock preprocess {shlex.quote(os.fspath(root))} NEW --keep-encoded"
    sample = "{'x': dataset[i]}"
    if isinstance(batch, Mapping):
        sample = "dataset[i]"
    elif isinstance(batch, (list, tuple)) and batch:
        names = getattr(batch, "_fields", ("x", "y") if len(batch) == 2 else tuple(f"x{k}" for k in range(len(batch))))
        sample = f"dict(zip({tuple(names)!r}, dataset[i]))"
    return f"penstock.map(lambda i: {sample}, range(len(dataset)), 'NEW')"
