"""Loops over the batches that a feeding process makes: which batch comes next, and which epoch.

FeedLoader is the engine of a DataLoader over prepared datasets; session.py has the messages and the memory.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._base.errors import Error
from .._base.options import count
from .batch import LoaderBatch
from .epochs import Engine, Epochs, Position
from .request import Request
from .session import POSITION, Session, position
from .states import check_fed, check_mapping, checking
from .wire import Malformed, part

#: Batches that may be handed out before an earlier one, with ``in_order=False``: schedule.MaxDisplacement in Go.
MAX_DISPLACEMENT = 64


class _Epoch(itertools.chain[LoaderBatch]):
    """The iterator over an epoch, with the loader's len(). It is a chain in C: an interrupt between two lines of Python could lose a batch."""

    loader: FeedLoader

    def __len__(self) -> int:
        return len(self.loader)


class FeedLoader(Engine):
    """The engine of a DataLoader over prepared datasets: each loop over it is an epoch."""

    #: Whether the user's code makes batches of records.
    collates = False

    def __init__(self, request: Request) -> None:
        self.epochs = Epochs(request.distributed)
        self._pinning = request.pinning
        self.session = Session(request)
        self.stage, self._ahead = self.session.stage, request.ahead
        self._received: Position | None = None  # in a loop: of the batch after the batches that were received

    @property
    def records(self) -> int:
        """Records of the dataset, or rows if they are packed."""
        return self.session.records

    def classes(self, field: str) -> tuple[str, ...]:
        """Return the names of the values of a label field."""
        if field not in self.session.fields:
            raise KeyError(f"batches have no field {field!r}; they have {', '.join(self.session.fields)}")
        return self.session.fields[field].classes

    def __repr__(self) -> str:
        step = self.epochs.position["step"]
        return f"<penstock DataLoader of {self.session.records} records: batch {step} of {self.session.batches} in epoch {self.epoch}>"

    def __len__(self) -> int:
        return self.session.batches

    def __iter__(self) -> Iterator[LoaderBatch]:
        epoch = _Epoch(self.staged(self.stage, self._ahead))
        epoch.loader = self
        return epoch

    def staged(self, stage: Any, ahead: int) -> Iterator[LoaderBatch]:
        """Yield the batches of the next epoch, which go through a Stage if the loader has one: what a Prefetcher is."""
        self.session.alive()
        at = reached = dict(self.begins())
        epoch, waiting, received = at["epoch"], deque[tuple[Any, dict[str, Any]]](), 0

        def loop() -> Position:
            return reached

        self.epochs.loop = loop
        failure: Error | None = None
        begun = False
        try:
            if self.session.stream is not None:
                self.session.give_back()
            self.session.staged = stage is not None
            while True:
                self.session.alive()
                while failure is None and at["step"] < self.session.batches and (not waiting or (ahead and self._wants(len(waiting), ahead))):
                    received += 1
                    if received > self.session.batches:
                        self.session.refuse(Malformed(f"more than {self.session.batches} batches of epoch {epoch}"))
                    try:
                        batch, at = self._next_batch(at)
                        self._received = at
                        waiting.append((batch if stage is None else stage.put(batch), at))
                        del batch
                    except Error as e:
                        failure = e  # comes after the batches before it
                if not waiting:
                    break
                batch, after = waiting.popleft()
                if stage is not None:
                    batch = stage.take(batch)
                if not begun:
                    self.session.waits.begin()
                    begun = True
                    self.epochs.begin(loop, loop)
                reached = after
                yield batch
                del batch  # so that the caller alone keeps it
                if self.epochs.loop is not loop:
                    raise Error("this loop was ended by a new one over the same DataLoader, or by load_state_dict; make a DataLoader for each loop")
            if failure is not None:
                raise failure
            if not begun:
                self.epochs.begin(loop, loop)
            reached = position(epoch + 1, 0)
        finally:
            failure = None  # whose traceback has this frame
            if self.epochs.loop is loop:
                self.epochs.loop = self._received = None
                self.session.waits.end()

    def _next_batch(self, at: dict[str, Any]) -> tuple[LoaderBatch, dict[str, Any]]:
        """Return the batch at a position, and the position after it."""
        return self.session.next_batch(at)

    def _wants(self, waiting: int, ahead: int) -> bool:
        """Return whether to receive a batch now: the batch that the loop needs, or a later batch that has arrived."""
        return waiting == 0 or (waiting <= ahead and self.session.has_next())

    def state_dict(self) -> dict[str, Any]:
        """Return where the run is: after the batch that was yielded last."""
        return {**self.session.identity, **self.epochs.position}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where state_dict was taken."""
        check_mapping(state_dict, "v")
        state = dict(state_dict)
        with checking():
            check_fed(state, self.session.batches)
        self._start({name: value for name, value in state.items() if name != "mix"})
        self.epochs.load({name: state[name] for name in POSITION if name in state})

    def set_weights(self, weights: Sequence[float], step: int) -> None:
        """Have a Mix draw by other weights from a step on."""
        at = self._received or self.epochs.position
        following = at["epoch"] * self.session.batches + at["step"] + ("done" in at and MAX_DISPLACEMENT)
        if count("step", step) < following:
            raise ValueError(f"step is {step}; batches up to {following - 1} were made: set weights for step {following} or a later one")
        kept = [row for row in self.session.identity.get("weights", ()) if row["step"] < step]
        row = {"step": step, "weights": [float(w) for w in weights]}
        self._start({**self.session.identity, **at, "weights": [*kept, row]})

    def _start(self, state: Mapping[str, Any]) -> None:
        """Have batches come from a state on, and forget those that were made ahead."""
        self.session.start(state)

    def stats(self) -> dict[str, Any]:
        """Return the numbers of the feeding process, and of this end."""
        pinned = "not asked for" if self._pinning is None else self._pinning.state
        session, at = self.session, self.epochs.position
        of = session.stats(at={"epoch": at["epoch"], "step": at["step"]})
        return {**of, "copied": session.copied, "viewed": session.viewed, "skipped": session.skipped, "pinned": pinned}

    def metrics(self, labels: Mapping[str, str]) -> str:
        """Return the numbers of the feeding process for Prometheus."""
        found: str = part(self.session.stats(metrics=dict(labels)), "metrics", str)
        return found

    def explain(self) -> str:
        """Return a table of the steps of pipelines, where each runs, and its cost."""
        return self.session.explain()

    @property
    def pid(self) -> int | None:
        """The feeding process, if this process started it."""
        child = self.session.child
        return None if child is None else child.pid

    def close(self) -> None:
        """End the feeding process."""
        self.session.close()
