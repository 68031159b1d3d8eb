"""Measurements of a loader of user code, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: A wait shorter than this share of the loop is not what limits it.
_WAITS = 0.05


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
    skipped: int = 0
    #: The name of the dataset's class, and of collate_fn.
    names: tuple[str, str] = field(default=("the dataset", "collate_fn"))

    def add(self, spent: Any) -> None:
        """Count the times of a batch."""
        self.dataset_ns += spent[0]
        self.collate_ns += spent[1]
        self.copy_ns += spent[2]

    def numbers(self) -> dict[str, Any]:
        found = {k: v for k, v in self.__dict__.items() if k != "names"}
        return {**found, "diagnose": self.diagnose()}

    def diagnose(self) -> str:
        """Return what limits the loop, and what to do, in a sentence."""
        if self.batches < 2 or not self.loop_ns:
            return "too few batches to say what limits the loop: iterate further"
        share = self.wait_ns / self.loop_ns
        if share < _WAITS:
            return f"the training step limits the loop: it waits for batches {share:.0%} of the time"
        busy = self.dataset_ns + self.collate_ns + self.copy_ns
        dataset, collate = self.names
        parts = {f"{dataset}.__getitem__ or __iter__": self.dataset_ns, collate: self.collate_ns, "copying to shared memory": self.copy_ns}
        slowest = max(parts, key=lambda name: parts[name])
        most = parts[slowest] / max(busy, 1)
        text = f"user code limits the loop: it waits for batches {share:.0%} of the time, and {slowest} takes {most:.0%} of the work"
        if not self.workers:
            return f"{text}, in this process; give num_workers"
        load = busy / max(self.loop_ns * self.workers, 1)
        if load < 0.7:
            return f"{text}; {self.workers} workers are busy {load:.0%} of the time: give more prefetch_factor, or find what else uses the CPU"
        return f"{text}; {self.workers} workers are busy {load:.0%} of the time: give more num_workers where there are cores, or prepare the dataset"
