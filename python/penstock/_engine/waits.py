"""How much of a loop is spent waiting for batches.

``stats`` sends it to the feeding process, whose diagnosis says what limits the loop.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any


class Waits:
    """The time of loops after their first batches, and the part of it in which no batch was ready. Times are nanoseconds.

    The feeding process cannot know them: batches that wait in its memory are ready, although it waits for the next one.
    """

    def __init__(self) -> None:
        self._wait = self._all = 0
        self._begun = 0  # when the loop got its first batch; 0 outside of loops
        self._late = (0, 0, 0)  # the longest wait, and the epoch and step of its batch

    def begin(self) -> None:
        """Note that a loop has its first batch."""
        self.end()
        self._begun = time.monotonic_ns()

    def end(self) -> None:
        """Note that it ends."""
        if self._begun:
            self._all += time.monotonic_ns() - self._begun
            self._begun = 0

    def waited(self, since: int, at: Mapping[str, Any]) -> None:
        """Note a wait from a time of time.monotonic_ns() on, for the batch at a position."""
        if self._begun:
            took = time.monotonic_ns() - since
            self._wait += took
            self._late = max(self._late, (took, at["epoch"], at["step"]))

    def times(self) -> dict[str, Any]:
        """Return all waits, the rest of the time, and the longest wait, as a request for statistics has them."""
        whole = self._all + (time.monotonic_ns() - self._begun if self._begun else 0)
        took, epoch, step = self._late
        return {"wait": self._wait, "body": max(0, whole - self._wait), "late": {"Epoch": epoch, "Batch": step, "Wait": took}}
