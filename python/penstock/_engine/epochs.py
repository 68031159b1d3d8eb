"""Which batch of which epoch a loader yields next.

All engines have an Epochs: it knows what set_epoch said, which state was loaded, and where the last loop is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import samplers
from .._base.options import count

#: Where a loop is: the epoch and the step of the batch that comes next and, in a state, what the loader needs to go on from there.
Position = Mapping[str, Any]


class Epochs:
    """Where a loader is in its run.

    The next loop begins at the epoch that was said since the last one began, or at the state that was loaded, or at the epoch after
    the last loop's if that has yielded a batch. An epoch that is said leaves a state within that epoch as it is. What was said and loaded
    holds until a loop begins.
    """

    def __init__(self, sampler: Any) -> None:
        # The epoch that is set in a DistributedSampler of torch is said, too.
        self._announced = samplers.EpochAnnouncements(sampler) if type(sampler).__name__ == "DistributedSampler" else None
        #: The state with which the next loop begins, if one was loaded.
        self.loaded: Position | None = None
        #: The epoch of the next loop, if it was said.
        self.said: int | None = None
        #: Returns where the last loop is.
        self.last: Callable[[], Position] = _start
        #: Returns None if the loop that began last is gone.
        self.loop: Callable[[], Any] | None = None

    @property
    def announced(self) -> int | None:
        """The epoch that was set in the sampler since this was asked last."""
        return None if self._announced is None else self._announced.said()

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of."""
        return _epoch(self.loaded or self.last()) if self.said is None or self._under_way() else self.said

    @property
    def position(self) -> Position:
        """Where the run is, after the batch that was yielded last."""
        at = self.loaded or self.last()
        # An order that is drawn in Python goes on from the random numbers of the last loop.
        return at if self.said is None or "order" in at or self._under_way() else {"epoch": self.said, "step": 0}

    @property
    def next(self) -> Position:
        """Where the next loop begins."""
        at = self.loaded or self.last()
        if self.said is not None:
            return {"epoch": self.said, "step": 0}
        if at.get("finished"):
            return {"epoch": _epoch(at), "step": 0}
        return at if self.loaded is not None else {"epoch": at["epoch"] + (at["step"] > 0), "step": 0}

    def begin(self, last: Callable[[], Position], loop: Callable[[], Any]) -> None:
        """Begin a loop, at ``next``."""
        self.loaded, self.said, self.last, self.loop = None, None, last, loop  # in one line: an interrupt leaves all or nothing of it

    def say(self, epoch: int) -> None:
        """Say which epoch the next loop is."""
        if self.loaded is None or self.loaded.get("finished") or self.loaded["epoch"] != epoch:
            self.loaded, self.said = None, epoch

    def load(self, state: Position | None) -> None:
        """Have the next loop begin at a state; None forgets one."""
        self.loaded, self.said, self.loop = state, None, None

    def _under_way(self) -> bool:
        return self.loop is not None and self.loop() is not None and not self.last().get("finished")


class Engine:
    """What makes the batches of a DataLoader."""

    epochs: Epochs

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of."""
        return self.epochs.epoch

    def begins(self) -> Position:
        """Return where the next loop begins, as far as it is known now."""
        if (announced := self.epochs.announced) is not None:
            self.set_epoch(announced)
        return self.epochs.next

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next loop is. A position in that epoch that was loaded stays as it is."""
        self.epochs.say(count("epoch", epoch))


def _epoch(at: Position) -> int:
    """Return the epoch of the batch that comes after a position."""
    epoch: int = at["epoch"] + bool(at.get("finished"))
    return epoch


def _start() -> Position:
    return {"epoch": 0, "step": 0}
