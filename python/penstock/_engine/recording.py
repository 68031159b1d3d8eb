"""Loops over batches whose records go through functions of the user: the feeding process makes them, workers of Python finish them.

RecordLoader is a FeedLoader whose batches are tasks for the workers of _code/loops.py. functions/record.py has the code that
the workers run.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from .._base.batched import SETTLING
from .._base.errors import Error
from .._base.expected import WHOLE, checked
from .._code.fetch import Task, Work
from .._code.loops import Loop, ParallelLoop, SerialLoop
from .._code.measure import BUSY, WAITS, Measures
from .._code.pins import Pins, device
from .._code.plan import Plan, TaskPlan
from .._code.randomness import record_seed
from .._read.field import STORAGE, Field, from_json
from .._read.ragged import Ragged
from ..functions.call import name_of
from ..functions.record import Collate, ProbeRecord, RecordBatch, Recorder, Recording
from .batch import made
from .feeding import FeedLoader
from .states import check_mapping
from .wire import Malformed, shown

_log = logging.getLogger("penstock")


class _FeedPlan(Plan):
    """The batches of the feeding process from a position on, as tasks of workers. ``at`` is the position after the delivered
    batches.
    """

    fixed = False

    def __init__(self, loader: RecordLoader, at: dict[str, Any]) -> None:
        self._loader, self._asked = loader, at
        self.at = at
        self.message: dict[str, Any] = {}  # of the batch that was delivered last
        self.failure: Error | None = None  # why no further batch comes
        self._kept: deque[Task] = deque()  # that were looked at before they were due

    def next(self) -> Task:
        task = self._kept.popleft() if self._kept else self._next()
        task.records[0].given.results = self._loader.results
        return task

    def first(self, records: int) -> list[ProbeRecord]:
        """Return the records that come first, which come again."""
        found: list[ProbeRecord] = []
        while len(found) < records:
            try:
                task = self._next()
            except StopIteration:
                break
            self._kept.append(task)
            found += [ProbeRecord(sent.given, sent.place) for sent in task.records[: records - len(found)]]
        return found

    def _next(self) -> Task:
        session = self._loader.session
        if self.failure is not None or self._asked["step"] >= session.batches:
            raise StopIteration
        try:
            batch, self._asked = session.next_batch(self._asked)
        except Error as e:
            self.failure = e
            raise StopIteration from None
        message: dict[str, Any] = {"epoch": batch.epoch, "step": batch.step, "indices": batch.indices.copy(), "mask": batch.mask.copy()}
        indices, keys = message["indices"].tolist(), self._loader.keys(message)
        given = RecordBatch(dict(batch.items()), session.fields, indices, keys, pickled=self._loader.workers > 0)
        return Task(0, given.records(), batch.epoch, batch.step, order=(message, self._asked), nbytes=len(given.pickled))

    def delivered(self, task: Task, number: int) -> None:
        self.message, self.at = task.order


class RecordLoader(FeedLoader):
    """A FeedLoader with functions of records."""

    def __init__(self, request: Any) -> None:
        recording: Recording = request.recording
        options, self._final = {name: value for name, value in request.options.items() if name != "as_bytes"}, request.convert
        self.names, self._seed, self._rank, self._world = recording.names, options["seed"], options["rank"], options["world_size"]
        self._batch, self._uneven = options["batch_size"], options["last"] == "uneven"
        self._recorder = Recorder(recording.steps, recording.ends, options["on_error"], recording.workers == 0, recording.fixed)
        self._samples, self.workers = recording.samples, recording.workers
        #: The fields that functions make; None if that is not known yet.
        self.results: dict[str, Field] | None = None
        self._places = recording.places
        self.collates = recording.samples is not None
        self._ends = recording.ends.names if recording.samples is None else [*recording.ends.names, name_of(recording.samples.collate)]
        named = ", ".join(recording.names) or "reading records", self._ends[-1] if recording.samples else "collating"
        self._measures = Measures(workers=recording.workers, _names=named)
        collate = Collate(options["on_error"], recording.samples, recording.workers == 0, self._recorder)
        self._work = Work(
            self._recorder, False, True, collate, False, recording.workers, recording.init, on_error=options["on_error"],
        )  # fmt: skip
        self._loop_options = SimpleNamespace(
            num_workers=recording.workers, prefetch_factor=recording.prefetch_factor, multiprocessing_context=recording.context,
            timeout=request.timeout if recording.workers else 0, in_order=True, persistent_workers=True, snapshot_every_n_steps=1,
            memory=options["memory"] or None, pin_memory=False, pin_memory_device="",
        )  # fmt: skip
        kind = device(SimpleNamespace(pin_memory=recording.pin_memory, pin_memory_device="")) if request.device is None else None
        self._pins = None if kind is None else Pins(kind)
        # Workers start before there is a feeding process, whose connection they would inherit.
        self._parallel: Any = ParallelLoop(Plan(), self._work, self._measures, self._loop_options) if recording.workers else None
        self._made: tuple[_FeedPlan, Loop] | None = None  # what comes next, if that is known
        self._records = self._passed = 0
        try:
            super().__init__(replace(request, options=options, convert=as_they_are, each=None, pinning=None, copies=None))
            self._recorder.check(self.session.fields)
        except BaseException:
            self.close()
            raise

    def keys(self, message: Mapping[str, Any]) -> dict[int, list[int]]:
        """Return the seeds of the records of a batch, by the place of a function."""
        # The ranks divide the last batch evenly, so that the rank's part begins earlier there.
        before = self._batch if self._uneven else len(message["indices"])
        first = message["step"] * self._world * self._batch + self._rank * before
        return {
            place: [
                record_seed(self._seed, message["epoch"], int(record), first + i if self.session.repeats else None, place=place)
                for i, record in enumerate(message["indices"])
            ]
            for place in self._places
        }

    def _next_batch(self, at: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        begun, self._made = self._made, None
        plan, loop = begun if begun is not None and begun[0].at == at else self._begun(at)
        try:
            values, failed = next(loop)
        except StopIteration:
            failure, plan.failure = plan.failure, None
            raise failure or Malformed("no batch where one was due") from None
        self._made = (plan, loop)
        message = plan.message
        self._records += len(message["indices"])
        for place, why in failed:
            self._passed += 1
            message["mask"][place] = False
            _log.warning("record %s: %s; on_error=%r puts another one, or zeros, in its place", message["indices"][place], why, self._work.on_error)
        return self._finished(values, message), plan.at

    def _start(self, state: Mapping[str, Any]) -> None:
        self._made = None  # whose batches ahead may have other weights
        super()._start(state)

    def _begun(self, at: dict[str, Any]) -> tuple[_FeedPlan, Loop]:
        """Have the workers begin at a position."""
        plan = _FeedPlan(self, at)
        if self.results is None and self._samples is None:
            first = plan.first(SETTLING)
            for results, _ in self._loop(TaskPlan(iter([first] if first else []))):
                self.results = results
        return plan, self._loop(plan)

    def _loop(self, plan: Plan) -> Loop:
        if self._parallel is None:
            return SerialLoop(plan, self._work, self._measures, self._loop_options)
        self._parallel.again(plan, None)
        parallel: Loop = self._parallel
        return parallel

    def _finished(self, values: Any, message: dict[str, Any]) -> Any:
        """Return a batch as the caller asked for it."""
        if self._samples is not None:
            return values if self._pins is None else self._pins.pinned(values)
        fields = {name: f for name, f in (self.results or {}).items() if f.content != "utf-8"}
        done = self._final(fields, {name: Ragged(*values[name]) if f.ragged else values[name] for name, f in fields.items()})
        batch = {name: done.get(name, x) for name, x in values.items()}
        return made(self.session.kind, batch if self._pins is None else self._pins.pinned(batch), message)

    def _wants(self, waiting: int, ahead: int) -> bool:
        return waiting <= ahead

    def state_dict(self) -> dict[str, Any]:
        made = {name: [f.dtype, list(f.shape), f.ragged, f.content] for name, f in (self.results or {}).items()}
        named = {"functions": self.names, **({"results": made} if made else {})} if self.names else {}
        return {**super().state_dict(), **named}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        check_mapping(state_dict, "v")
        if "functions" in state_dict and state_dict["functions"] != self.names:
            given = state_dict["functions"]
            said = ", ".join(map(shown, given[:8])) if isinstance(given, list) else shown(given)
            names = ", ".join(map(repr, self.names))
            raise Error(f"the state is of a DataLoader with the functions {said}, and this one has {names}; make it with the same")
        results = checked(state_dict.get("results") or {}, {...: (str, [WHOLE], bool, str)}, "the state: results")
        made = {
            name: from_json({"name": name, "dtype": dtype, "storage": STORAGE.get(dtype), "shape": shape, "ragged": ragged, "content": content})
            for name, (dtype, shape, ragged, content) in results.items()
        }
        super().load_state_dict({name: value for name, value in state_dict.items() if name not in ("functions", "results")})
        self.results = made or self.results

    def stats(self) -> dict[str, Any]:
        found, own = super().stats(), self._measures.numbers()
        busy = own["dataset_ns"] + own["collate_ns"] + own["copy_ns"]
        limited = own["batches"] > 1 and own["wait_ns"] > WAITS * own["loop_ns"] and busy > BUSY * own["loop_ns"] * max(1, own["workers"])
        diagnose = own.pop("diagnose")
        return {**found, "records": own, "skipped": found["skipped"] + self._passed, "diagnose": diagnose if limited else found["diagnose"]}

    def explain(self) -> str:
        """Return a table of the steps, where each runs, and its cost."""
        workers, n = self.workers, self._records
        where = f"{workers} Python worker{'s' * (workers > 1)}" if workers else "this process"
        cost = f"{self._measures.dataset_ns / n / 1e3:.0f}" if n else "-"
        return self.session.explain([("records", where, cost, ", ".join([*self.names, *self._ends]))])

    def close(self) -> None:
        """End the workers and the feeding process."""
        self._made = None
        if self._parallel is not None:
            self._parallel.close()
        if hasattr(self, "session"):
            super().close()


def as_they_are(_: object, values: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of a batch without a conversion."""
    return values
