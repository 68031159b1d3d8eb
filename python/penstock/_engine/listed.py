"""Batches that a batch_sampler lists: the feeding process makes the records, and workers of Python put them together.

The engine is the engine of a user's own dataset, with its epochs and states; the numbers of records in its tasks are replaced
by the records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .. import samplers
from .._base.dataclass import dataclass
from .._code.fetch import Task, Work
from .._code.loader import UserLoader
from .._code.plan import Plan
from .._code.plans import TorchPlan
from .._code.randomness import record_seed
from ..functions.record import BatchRecord, CollateAlone, RecordBatch, Recorder, Recording
from . import subject
from .recording import as_they_are
from .request import Request
from .session import Session
from .signature import Signature

#: The feeding process is told of about as many records at a time, in as many lists at most.
_RECORDS, _LISTS = 1 << 16, 1 << 12


class _ListedPlan(TorchPlan):
    """A plan whose tasks have the records that a feeding process makes, in place of their numbers."""

    loader: ListedLoader

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._tasks: deque[Task] = deque()
        self._records: Iterator[BatchRecord] = iter(())

    def next(self) -> Task:
        if not self._tasks:
            self._ask()
        task = self._tasks.popleft()
        task.records = [next(self._records) for _ in task.records]
        return task

    def _ask(self) -> None:
        """Have the feeding process make the records of some lists that come next."""
        order: list[int] = []
        while len(order) < _RECORDS and len(self._tasks) < _LISTS:
            try:
                task = super().next()
            except StopIteration:
                break
            task.records = subject.numbers("batch_sampler", list(task.records), self.loader.records).tolist()
            order += task.records
            self._tasks.append(task)
        if not self._tasks:
            raise StopIteration
        self._records = self.loader.made(order, max(1, len(self._tasks[0].records)), self.epoch, self._workers > 0)


@dataclass(frozen=True)
class Listed(samplers.Subset):
    """A part of an order that is drawn here, list by list: where it begins changes no random choice of a transform."""

    def to_json(self, arrays: samplers.Arrays) -> dict[str, Any]:
        return {**super().to_json(arrays), "kind": "listed"}


class ListedLoader(UserLoader):
    """The engine of a DataLoader over prepared datasets whose batches a batch_sampler lists.

    Epochs, states and workers are managed as for a dataset of Python code; the records come from a feeding process.
    """

    plan_class = _ListedPlan

    def __init__(self, request: Request, signature: Signature, torch: bool) -> None:
        recording: Recording = request.recording
        options = {name: value for name, value in request.options.items() if name != "as_bytes"}
        if options["world_size"] != 1:
            raise ValueError(f"world_size is {options['world_size']}, and a batch_sampler lists all records: have it yield the lists of this rank")
        self._request = replace(request, options=options, convert=as_they_are, each=None, pinning=None, copies=None, device=None)
        self._recording = recording
        self._session = Session(self._request)
        self.fields, self.records = self._session.fields, self._session.batches  # of one record each
        self._recorder = Recorder(recording.steps, recording.ends, options["on_error"], recording.workers == 0)
        try:
            self._recorder.check(self.fields)
            super().__init__(
                replace(
                    signature, dataset=range(self.records), num_workers=recording.workers,
                    prefetch_factor=(signature.prefetch_factor or 2) if recording.workers else None,
                ),
                output="torch" if torch else "numpy",
            )  # fmt: skip
        except BaseException:
            self._session.close()
            raise

    def made(self, order: list[int], size: int, epoch: int, parallel: bool) -> Iterator[BatchRecord]:
        """Yield records in an order, as a feeding process makes them, which gets ``size`` ready at a time."""
        self._session.close()
        options = {**self._request.options, "batch_size": size}
        of = self._request.subject.indices
        listed = Listed(order if of is None else of[order])
        session = self._session = Session(replace(self._request, options=options, order=listed))
        at = {"epoch": epoch, "step": 0}
        while at["epoch"] == epoch and at["step"] < session.batches:
            batch, at = session.next_batch(at)
            indices = batch.indices.tolist()
            keys = {place: [record_seed(options["seed"], epoch, record, place=place) for record in indices] for place in self._recording.places}
            yield from RecordBatch(dict(batch.items()), session.fields, indices, keys, parallel).records()

    def _planned(self, epoch: int, workers: int) -> tuple[Plan, Work]:
        plan, work = super()._planned(epoch, workers)
        assert self._recording.samples is not None
        samples = replace(self._recording.samples, collate=work.collate)
        collate = CollateAlone(self._request.options["on_error"], samples, not workers, self._recorder)
        return plan, replace(work, dataset=self._recorder, collate=collate)

    def _plan(self, epoch: int, workers: int, base_seed: int | None) -> Plan:
        plan = super()._plan(epoch, workers, base_seed)
        assert isinstance(plan, _ListedPlan)
        plan.loader = self
        return plan

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "seed": self._request.options["seed"], "functions": self._recording.names}

    def close(self) -> None:
        super().close()
        self._session.close()
