"""Iterators over the batches of user code: in this process, or by workers.

A loop has a plan that says which batch comes next (module plans), and gives batches in its order, or, with in_order=False, as they are
ready. The scheduling is torch's: with workers, batches are asked for ahead as soon as the loop begins, prefetch_factor for each
worker; then one more for each that is delivered.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import pickle
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from .._base import forks
from .._base.errors import Error
from . import failure, pins, randomness, worker
from .fetch import IterableFetcher, Meter, Task, Work
from .measure import Measures
from .plan import Plan
from .pool import Pool
from .threads import indexed
from .worker import CARRIED, Reply

_log = logging.getLogger("penstock")


class Place:
    """Where a loop is, for as long as the loader wants to know: the loop itself may be gone, and its workers with it."""

    def __init__(self, plan: Plan, workers: int, every: int) -> None:
        self.plan, self._workers, self._every = plan, workers, every
        self.finished = False
        self.yielded = 0
        #: Returns the states of the workers after the batches that were yielded.
        self.states: Callable[[], list[Any]] = list
        # With snapshots every n steps: the last snapshot, and the number of batches before it. Batches after the snapshot are
        # made again to go on.
        self._base: dict[str, Any] | None = None
        self._base_at = 0

    def begin(self) -> None:
        """Take the first snapshot, if there are not snapshots after every step."""
        if self._every > 1 and self._workers and not self.plan.light:
            self._base, self._base_at = self._now(), self.yielded

    def step(self) -> None:
        """Take note that a batch is yielded."""
        self.yielded += 1
        if self._base is not None and self.plan.steps % self._every == 0:
            self._base, self._base_at = self._now(), self.yielded

    def finish(self) -> None:
        """Record that no further batch follows."""
        self.finished, self._base = True, None

    def position(self) -> dict[str, Any]:
        """Return where the loop is, after the batch that was yielded last."""
        return self._now() if self._base is None else {**self._base, "since": self.yielded - self._base_at}

    def _now(self) -> dict[str, Any]:
        return {**self.plan.state(), "finished": self.finished, "workers": self.states(), "num_workers": self._workers}


class Loop:
    """An iterator over batches. It cannot be pickled. Threads may share it: each batch goes to one thread."""

    def __init__(self, plan: Plan, work: Work, measures: Measures, options: Any) -> None:
        self._plan, self._work, self._measures, self._options = plan, work, measures, options
        self._began = 0
        self._lock = forks.lock()  # of the thread that gets a batch
        kind = pins.device(options)
        self._pins = None if kind is None else pins.Pins(kind)
        self.place = Place(plan, work.num_workers, options.snapshot_every_n_steps)
        #: The len() of the loader when it was asked for, for the warning of an iterable dataset that has more.
        self.promised: int | None = None

    def __iter__(self) -> Loop:
        return self

    def __next__(self) -> Any:
        with self._lock:
            return self._measured()

    def _measured(self) -> Any:
        started = time.perf_counter_ns()
        self._began = self._began or started
        try:
            batch = self._profiled()
        except StopIteration:
            self.place.finish()
            raise
        finally:
            now = time.perf_counter_ns()
            self._measures.wait_ns += now - started
            self._measures.loop_ns += now - self._began
            self._began = now
        self.place.step()
        self._measures.yielded(batch)
        if self.promised is not None and self._work.iterable and self.place.yielded > self.promised:
            self._warn_of_more()
        return batch

    def __len__(self) -> int:
        return len(self._plan)

    @property
    def base_seed(self) -> int:
        """The seed of the workers, or, without workers, the seed that they would have."""
        return self._work.base_seed

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)

    def _profiled(self) -> Any:
        """Return the next batch, as an event of torch's profiler where one is on."""
        torch = sys.modules.get("torch")
        if torch is None or not torch._C._autograd._profiler_enabled():
            return self._next()
        with torch.autograd.profiler.record_function(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
            return self._next()

    def _next(self) -> Any:
        raise NotImplementedError

    def _skipped(self, skipped: Any) -> None:
        for record, why in skipped:
            self._measures.skipped += 1
            _log.warning("record %s: %s; on_error=%r puts another one, or zeros, in its place", record, why, self._work.on_error)

    def _warn_of_more(self) -> None:
        text = (
            f"Length of IterableDataset {self._work.dataset} was reported to be {self.promised}(when accessing len(dataloader)), but "
            f"{self.place.yielded} samples have been fetched. "
        )
        if self._work.num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at each worker. "
                "Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(text, stacklevel=3)

    def close(self) -> None:
        """End the workers, if there are some."""


class SerialLoop(Loop):
    """Batches that are made in this process when they are asked for."""

    def __init__(self, plan: Plan, work: Work, measures: Measures, options: Any, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(plan, work, measures, options)
        if options.timeout != 0:
            raise AssertionError("a DataLoader with num_workers=0 has no timeout: give timeout=0, or workers")
        own = ((state or {}).get("workers") or [None])[0] or {}
        meter = self._meter = Meter([0, 0, 0, 0])
        #: The random state of an iterable dataset with a seed, kept apart from the random numbers of this process.
        self._random: list[Any] = []
        if work.seed is not None and work.iterable:
            self._random = [randomness.decode(own["random"]) if "random" in own else _seeded(work.base_seed)]
        self._fetcher: Any
        if work.iterable:
            with self._private():
                self._fetcher = IterableFetcher(work, meter, own)
        else:
            if work.seed is None and "dataset" in own:
                work.dataset.load_state_dict(own["dataset"])
            self._fetcher = indexed(work, meter)
        fetcher, random = self._fetcher, self._random
        self.place.states = lambda: [{**fetcher.state(), **({"random": randomness.encode(random[0])} if random else {})}]
        plan.begin_serial()

    @contextlib.contextmanager
    def _private(self) -> Iterator[None]:
        """Have user code draw random numbers of its own, if there is a seed."""
        if self._work.seed is None:
            yield
            return
        with randomness.undisturbed():
            if self._random:
                randomness.restore(self._random[0])
            try:
                yield
            finally:
                self._random[:] = [randomness.state() for _ in self._random]

    def _next(self) -> Any:
        task = self._plan.next()
        with self._private():
            batch = self._fetcher.fetch(task)
        self._measures.add(self._meter.times)
        self._skipped(self._fetcher.skipped)
        self._plan.delivered(task, 0)
        return batch if self._pins is None else self._pins.pinned(batch)


class ParallelLoop(Loop):
    """Batches that workers make."""

    def __init__(self, plan: Plan, work: Work, measures: Measures, options: Any, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(plan, work, measures, options)
        if options.prefetch_factor is not None and options.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 with workers")
        self._factor = options.prefetch_factor or 2
        self._largest = 0  # bytes of a batch, with the memory of its records in this process
        states = _of_workers(state, work.num_workers)
        self._pool = Pool(work, options.multiprocessing_context, states)
        self._workers = list(self._pool)  # as torch's iterators have them
        self._snapshots: list[dict[str, Any]] = [dict(s or {}) for s in states]  # after the batches that were yielded
        self._carried = [{name: s[name] for name in CARRIED if name in s} for s in self._snapshots]  # what workers send when it changes
        try:
            self._begin(int((state or {}).get("next", 0)))
            for _ in range(int((state or {}).get("since", 0))):
                with contextlib.suppress(StopIteration):
                    self._deliver()
                    self.place.step()
        except BaseException:
            self._pool.close()
            raise

    def _begin(self, first: int = 0) -> None:
        """Begin an epoch. Worker ``first`` makes its first batch."""
        n = self._work.num_workers
        self._number = self._due = 0  # of the task that is sent next, and of the task whose batch is due
        self._worker: dict[int, int] = {}  # the worker of each task that is not delivered
        self._ready: dict[int, Reply] = {}  # replies that came before they were due
        self._active = [True] * n
        self._load = [0] * n
        self._turn = itertools.islice(itertools.cycle(range(n)), first, None)
        self._tasks: dict[int, Task] = {}
        self._last: dict[int, bytes] = {}  # the states of workers whose samples are used up, by the task that they could not do
        snapshots = self._snapshots
        self.place.states = lambda: list(snapshots)
        self._plan.begin()
        for _ in range(self._most()):
            self._give()
        self.place.begin()

    def again(self, plan: Plan, epoch: int | None) -> None:
        """Begin another epoch with the same workers: all it has but them is new."""
        if self._pins is not None:
            self._pins.close()
        for task, reply in self._ready.items():
            self._pool.drop(self._worker[task], reply)
        states = self._pool.resume(epoch)
        self._plan, self._began = plan, 0
        self.place = Place(plan, self._work.num_workers, self._options.snapshot_every_n_steps)
        self._snapshots = [{} if state is None else self._decoded(number, state) for number, state in enumerate(states)]
        self._begin()

    @property
    def open(self) -> bool:
        """Whether its workers are running."""
        return self._pool.open

    @property
    def pids(self) -> list[int | None]:
        return [process.pid for process in self._pool]

    def _refill(self) -> None:
        """Give a task in place of a task that is done; with a limit of memory, as many tasks as there is room for."""
        if self._options.memory is None:
            self._give()
            return
        while len(self._worker) < self._most() and self._give():
            pass

    def _most(self) -> int:
        """Return how many batches may be under way. With a limit of memory it is 1 until the bytes of a batch are known."""
        most, memory = self._factor * self._work.num_workers, self._options.memory
        if memory is None:
            return most
        if 2 * self._largest > memory:
            raise Error(
                f"memory is {memory} bytes, and a batch has {self._largest}: the loop's and the next one are the least that works; give a "
                "smaller batch_size, or more memory"
            )
        return min(most, memory // self._largest - 1) if self._largest else 1

    def _give(self) -> bool:
        """Give the next task to a worker, if a task is left and a worker has room; return whether a task was given."""
        try:
            task = self._plan.next()
        except StopIteration:
            return False
        number = self._choose()
        if number is None:
            return False
        task.number = self._number
        self._worker[task.number], self._tasks[task.number] = number, task
        self._load[number] += 1
        self._number += 1
        self._pool.send(number, task)
        return True

    def _choose(self) -> int | None:
        """Return the worker that gets the next task: the next in turn that has samples, or, if any may, the next with room."""
        most = self._factor * self._work.num_workers // max(1, sum(self._active))
        for _ in range(self._work.num_workers):
            number = next(self._turn)
            if self._active[number] and ((self._plan.fixed and self._options.in_order) or self._load[number] < most):
                return number
        return None

    def _next(self) -> Any:
        batch = self._deliver()
        if self._pins is not None and self._options.in_order:
            self._pin_ahead(self._pins)
        return batch

    def _pin_ahead(self, ahead: pins.Pins) -> None:
        """Begin to pin the batch that comes next, if it has come."""
        while self._due not in self._ready and self._pool.ready():
            number, reply = self._pool.receive(None, ())
            if reply.kind == worker.ENDED:
                self._ended(number, reply)
            else:
                self._ready[reply.number] = reply
        reply_due = self._ready.get(self._due)
        if reply_due is not None and reply_due.kind == worker.DATA:
            ahead.begin(self._due, self._pool.unpacked(self._worker[self._due], reply_due))

    def _batch(self, task: int, number: int, reply: Reply) -> Any:
        """Return the batch of a reply."""
        ahead = None if self._pins is None else self._pins.take(task)
        if ahead is not None:
            return ahead.result()
        batch = self._pool.unpacked(number, reply)
        return batch if self._pins is None else self._pins.pinned(batch)

    def _deliver(self) -> Any:
        while True:
            self._pass_over()
            if not self._worker:
                if not self._options.persistent_workers:
                    self.close()
                raise StopIteration
            if self._due in self._ready:
                self._pool.alive()
                return self._delivered(self._due, self._ready.pop(self._due))
            timeout = self._options.timeout or None
            needed = {self._worker[self._due]} if self._options.in_order else set(self._worker.values())
            number, reply = self._pool.receive(timeout, needed)
            if reply.kind == worker.ENDED:
                self._ended(number, reply)
            elif not self._options.in_order or reply.number == self._due:
                return self._delivered(reply.number, reply)
            else:
                self._ready[reply.number] = reply

    def _pass_over(self) -> None:
        """Go on to the next task that will return a batch. Tasks of workers whose samples are exhausted are dropped."""
        while self._due < self._number:
            number = self._worker.get(self._due)
            if number is not None:
                if self._due in self._ready or self._active[number]:
                    return
                del self._worker[self._due], self._tasks[self._due]
                if self._due in self._last:
                    self._snapshots[number] = self._decoded(number, self._last.pop(self._due))
            self._due += 1

    def _ended(self, number: int, reply: Reply) -> None:
        """Take note that the samples of a worker are used up."""
        self._active[number] = False
        if reply.snapshot is not None:
            self._last[reply.number] = reply.snapshot
        self._refill()

    def _delivered(self, task_number: int, reply: Reply) -> Any:
        number, task = self._worker.pop(task_number), self._tasks.pop(task_number)
        if task_number == self._due:
            self._due += 1
        self._load[number] -= 1
        self._plan.delivered(task, number)
        if reply.snapshot is not None:
            self._snapshots[number] = self._decoded(number, reply.snapshot)
        batch = None
        if reply.kind == worker.DATA:
            batch = self._batch(task_number, number, reply)
            self._largest = max(self._largest, task.nbytes + sum(size for _, _, size, _ in reply.payload[0]))
        self._pool.alive()  # or a signal came meanwhile, whose handler forked, and this is the child, with memory of its own
        self._measures.add(reply.times, reply.stacks)
        self._skipped(reply.skipped)
        self._refill()
        if reply.kind == worker.FAILED:
            failure.Failure(*reply.payload).reraise()
        return batch

    def _decoded(self, number: int, snapshot: bytes) -> dict[str, Any]:
        found: dict[str, Any] = pickle.loads(snapshot)
        self._carried[number].update({name: found[name] for name in CARRIED if name in found})
        return {**found, **self._carried[number]}

    def close(self) -> None:
        if self._pins is not None:
            self._pins.close()
        self._pool.close()

    def _shutdown_workers(self) -> None:  # as frameworks call it
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _of_workers(state: Mapping[str, Any] | None, number: int) -> list[Any]:
    """Return the states of a number of workers. If the number differs, they are empty, as load_state_dict refuses states of
    another number of workers.
    """
    found: list[Any] = list((state or {}).get("workers", ()))
    return found if len(found) == number else [None] * number


def _seeded(number: int) -> tuple[Any, ...]:
    """Return the states of the generators when they are seeded."""
    with randomness.undisturbed():
        randomness.seed_random(number)
        return randomness.state()
