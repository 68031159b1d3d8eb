"""From the numbers of records, or the next samples of an iterable dataset, to a batch: user code, in a worker or in this process.

MapFetcher and IterableFetcher call what torch's DataLoader calls, in its order. SeededFetcher has random numbers that are a function
of the seed, the epoch and the record.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Callable

import numpy as np

from .._base.errors import Error
from . import randomness
from .memory import Board

#: From how many nanoseconds a record on it is slow.
_SLOW_NS = 100_000
_log = logging.getLogger("penstock")


@dataclass
class Work:
    """The work of all workers of a loader, and how it is done."""

    dataset: Any
    iterable: bool
    batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool
    num_workers: int
    worker_init_fn: Callable[[int], Any] | None = None
    #: The seed of the workers.
    base_seed: int = 0
    #: The seed of the loader; None for torch's rules.
    seed: int | None = None
    rank: int = 0
    on_error: str = "fail"
    #: How many records a process makes at a time.
    concurrency: int = 1


@dataclass
class Task:
    """A batch to be made: the records, as the sampler gave them, and, with a seed, where it is in the order."""

    number: int
    records: Any
    epoch: int = 0
    step: int = 0
    #: Whether the state of the worker after it is wanted.
    snapshot: bool = False
    #: The state of the sampler after it, which stays in the loader.
    order: Any = None
    #: The bytes that the records have, which stay in the loader.
    nbytes: int = 0


class Cancelled(Exception):
    """The loader does not want the batch any more."""


class Meter:
    """The state of a fetcher, and how long it did each thing."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers
        #: Nanoseconds in the dataset, in collate, and in copying; and on cores, in the first two.
        self.times = [0, 0, 0, 0]
        self._since = self._cpu = 0

    def start(self) -> None:
        self.times = [0, 0, 0, 0]
        self._since, self._cpu = time.perf_counter_ns(), time.process_time_ns()
        self.numbers[Board.phase] = 2

    def next(self, phase: int) -> None:
        """End a phase, and begin the next phase."""
        now, cpu = time.perf_counter_ns(), time.process_time_ns()
        self.times[phase] += now - self._since
        self.times[3] += cpu - self._cpu
        self._since, self._cpu = now, cpu
        self.numbers[Board.phase] = phase + 3 if phase < 2 else 0
        self.numbers[Board.place] = 0

    def stop(self) -> None:
        self.numbers[Board.phase] = 0


def stateful(value: Any) -> bool:
    """Return whether an object has a state that can be loaded."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def whole(fetch: Callable[[Any, Task], Any]) -> Callable[[Any, Task], Any]:
    """Have a method raise RuntimeError for a StopIteration of user code, as generators do (PEP 479): it would end the epoch without a word."""

    @functools.wraps(fetch)
    def fetched(self: Any, task: Task) -> Any:
        try:
            return fetch(self, task)
        except StopIteration as e:
            raise RuntimeError("the dataset or collate_fn raised StopIteration, which would end the epoch; raise another exception") from e

    return fetched


def seed_of(work: Work, task: Task, record: Any) -> int:
    """Return the seed that ``penstock.rng`` has for a record."""
    number = int(record) if isinstance(record, Integral) else zlib.crc32(repr(record).encode())
    return randomness.record_seed(work.base_seed if work.seed is None else work.seed, task.epoch, number & randomness.MASK)


def records_of(work: Work, task: Task) -> list[Any]:
    """Return the records of a batch as ``__getitem__`` gets them. With a seed, a single record also becomes a list, of length 1."""
    if not work.batched and work.seed is None:
        return [task.records]
    return task.records.tolist() if isinstance(task.records, np.ndarray) else list(task.records)


@contextlib.contextmanager
def _one_at_a_time(work: Work, task: Task, numbers: Any) -> Iterator[None]:
    """Have ``penstock.rng`` find the record that is made by its place in the batch."""

    def seed() -> int:
        return seed_of(work, task, records_of(work, task)[numbers[Board.place]])

    randomness.making(seed)
    try:
        yield
    finally:
        randomness.making(None)


class Fetcher:
    """What makes the batches of a process: a subclass has ``fetch``."""

    #: The records of the last batch that on_error passed over, and why.
    skipped: Sequence[tuple[Any, str]] = ()

    def state(self) -> dict[str, Any]:
        """Return the state of the dataset, after the last batch."""
        return {}


class MapFetcher(Fetcher):
    """Batches of a dataset that is indexed."""

    def __init__(self, work: Work, meter: Meter) -> None:
        self._work, self._meter, self._dataset = work, meter, work.dataset
        self._slow = True

    @whole
    def fetch(self, task: Task) -> Any:
        meter = self._meter
        meter.start()
        samples = self._samples(task)
        meter.next(0)
        batch = self._work.collate(samples)
        meter.next(1)
        return batch

    def _samples(self, task: Task) -> Any:
        dataset, records = self._dataset, task.records
        if self._work.batched and getattr(dataset, "__getitems__", None):
            return dataset.__getitems__(records)
        began = time.perf_counter_ns()
        with _one_at_a_time(self._work, task, self._meter.numbers):
            if not self._work.batched:
                return dataset[records]
            samples = self._one_by_one(records) if self._slow else self._quickly(records)
        self._slow = time.perf_counter_ns() - began > _SLOW_NS * len(samples)
        return samples

    def _one_by_one(self, records: Any) -> list[Any]:
        """Return samples, and look before each whether they are still wanted."""
        samples: list[Any] = []
        numbers, dataset = self._meter.numbers, self._dataset
        for i in records:
            numbers[Board.place] = len(samples)
            if numbers[Board.stop]:
                raise Cancelled
            samples.append(dataset[i])
        return samples

    def _quickly(self, records: Any) -> list[Any]:
        """Return samples of a dataset that takes microseconds for each: all the same, but for that look."""
        samples: list[Any] = []
        numbers, place, dataset, append = self._meter.numbers, Board.place, self._dataset, samples.append
        for n, i in enumerate(records):
            numbers[place] = n
            append(dataset[i])
        return samples

    def state(self) -> dict[str, Any]:
        return {"dataset": self._dataset.state_dict()} if stateful(self._dataset) else {}

    @property
    def skipped(self) -> Sequence[tuple[Any, str]]:  # type: ignore[override]
        return getattr(self._work.collate, "skipped", ())


class IterableFetcher(Fetcher):
    """Batches of a dataset that is iterated over. A state of the dataset or its iterator is loaded; else, samples are skipped."""

    def __init__(self, work: Work, meter: Meter, state: Mapping[str, Any] | None = None) -> None:
        self._work, self._meter = work, meter
        state = state or {}
        self._read, self._ended = int(state.get("taken", 0)), bool(state.get("ended", False))
        self._begun: Mapping[str, Any] | None = state.get("begun")  # the random numbers before iter(), for one without a state
        skip = "iterator" not in state and "dataset" not in state and self._read > 0
        with randomness.undisturbed() if skip else contextlib.nullcontext():
            if skip and self._begun is not None:
                randomness.restore(randomness.decode(self._begun))
            if "dataset" in state:
                work.dataset.load_state_dict(state["dataset"])
            if self._begun is None:
                self._begun = randomness.encode(randomness.state())
            self._iterator = iter(work.dataset)
            if "iterator" in state:
                if not stateful(self._iterator):
                    raise Error("the state is of a dataset whose iterator has load_state_dict, and this one has none")
                self._iterator.load_state_dict(state["iterator"])
            if skip:
                _log.info("%s has no state_dict: its first %d samples are read again, and passed over", type(work.dataset).__name__, self._read)
                passed = sum(1 for _ in itertools.islice(self._iterator, self._read))
                if passed < self._read:
                    raise Error(f"the state is after {self._read} samples of a worker, and the dataset has {passed}: it is another dataset")

    def fetch(self, task: Task) -> Any:
        """Return the next batch; raise StopIteration after the last batch."""
        if self._ended:
            raise StopIteration
        meter, work = self._meter, self._work
        meter.start()
        samples: Any
        if work.batched:
            samples = self._samples(len(task.records))
        else:
            samples = next(self._iterator)
            self._read += 1
        meter.next(0)
        batch = work.collate(samples)
        meter.next(1)
        return batch

    def _samples(self, n: int) -> list[Any]:
        samples: list[Any] = []
        numbers = self._meter.numbers
        while len(samples) < n:
            numbers[Board.place] = len(samples)
            if numbers[Board.stop]:
                raise Cancelled
            try:
                samples.append(next(self._iterator))
            except StopIteration:
                self._ended = True
                break
            self._read += 1
        if not samples or (self._work.drop_last and len(samples) < n):
            raise StopIteration
        return samples

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {"taken": self._read, "ended": self._ended}
        if stateful(self._iterator):
            found["iterator"] = self._iterator.state_dict()
        if stateful(self._work.dataset) and self._iterator is not self._work.dataset:
            found["dataset"] = self._work.dataset.state_dict()
        return found if len(found) > 2 else {**found, "begun": self._begun}


class SeededFetcher(Fetcher):
    """Batches of a dataset that is indexed, with random numbers by record.

    A generator is seeded before each record if user code draws from it: in the first batch that is looked at. Later, one that
    was not drawn from is seeded once a batch, and if it has been drawn from after all, the records are asked for again with seeds.
    So a record always gets its own random numbers, and a dataset without randomness does not pay for seeds.
    """

    _CANDIDATES = 16  # how many other records are tried for a record that fails

    def __init__(self, work: Work, meter: Meter) -> None:
        assert work.seed is not None
        self._work, self._meter, self._dataset, self._seed = work, meter, work.dataset, work.seed
        self._generators = randomness.generators()
        self._drawn = [False] * len(self._generators)
        self._looked = False
        self._whole = bool(work.batched and work.on_error == "fail" and getattr(work.dataset, "__getitems__", None))
        self._pattern: Any = _BLANK  # a sample, for on_error="blank"
        self.skipped: list[tuple[Any, str]] = []

    @whole
    def fetch(self, task: Task) -> Any:
        meter, work = self._meter, self._work
        self.skipped = []
        meter.start()
        of_batch = randomness.record_seed(self._seed, task.epoch, task.step, work.rank, place=randomness.OF_BATCH)
        samples = self._samples(task, of_batch)
        meter.next(0)
        for generator, drawn in zip(self._generators, self._drawn):
            if drawn:
                generator.seed(of_batch)
        batch = work.collate(samples if work.batched else samples[0])
        meter.next(1)
        return batch

    def _samples(self, task: Task, of_batch: int) -> list[Any]:
        """Return the samples of records. They are asked for a second time if a generator turns out to be drawn from."""
        records, epoch = records_of(self._work, task), task.epoch
        while True:
            for generator in self._generators:
                generator.seed(of_batch)
            unseeded = [g for g, drawn in zip(self._generators, self._drawn) if not drawn]
            whole = self._whole and not any(self._drawn)
            looking = not (whole or self._looked)
            before = [] if looking else [g.state() for g in unseeded]
            self.skipped = []
            if whole:
                samples = list(self._dataset.__getitems__(records))
            else:
                ask = self._look if looking else self._sample
                with _one_at_a_time(self._work, task, self._meter.numbers):
                    samples = [ask(i, n, epoch) for n, i in enumerate(records)]
                self._looked = True
            changed = [g for g, state in zip(unseeded, before) if g.state() != state]
            if not changed or (whole and not hasattr(self._dataset, "__getitem__")):
                return self._filled(samples, epoch)
            self._drawn = [drawn or g in changed for g, drawn in zip(self._generators, self._drawn)]

    def _look(self, i: int, place: int, epoch: int) -> Any:
        """Return a sample, and see which generators it draws from."""
        number = randomness.record_seed(self._seed, epoch, i)
        for generator in self._generators:
            generator.seed(number)
        before = [None if drawn else g.state() for g, drawn in zip(self._generators, self._drawn)]
        sample = self._sample(i, place, epoch)
        self._drawn = [drawn or g.state() != state for g, drawn, state in zip(self._generators, self._drawn, before)]
        return sample

    def _sample(self, i: int, place: int, epoch: int) -> Any:
        """Return a sample, with the random numbers of its record, or what on_error puts in its place."""
        numbers = self._meter.numbers
        numbers[Board.place] = place
        if numbers[Board.stop]:
            raise Cancelled
        if True in self._drawn:
            number = randomness.record_seed(self._seed, epoch, i)
            for generator, drawn in zip(self._generators, self._drawn):
                if drawn:
                    generator.seed(number)
        try:
            return self._dataset[i]
        except Exception as e:
            if self._work.on_error == "fail":
                raise
            self.skipped.append((i, f"{type(e).__name__}: {e}"))
            return _BLANK if self._work.on_error == "blank" else self._other(i, epoch, e)

    def _other(self, i: int, epoch: int, why: Exception) -> Any:
        """Return the sample of another record in place of a record that failed: the choice is a function of the seed and the
        epoch.
        """
        n = len(self._dataset)
        for k in range(self._CANDIDATES):
            number = randomness.record_seed(self._seed, epoch, i, k, place=randomness.OF_OTHER)
            randomness.seed_random(number)
            try:
                return self._dataset[number % n]
            except Exception as e:
                self.skipped.append((number % n, f"{type(e).__name__}: {e}"))
        raise why

    def _filled(self, samples: list[Any], epoch: int) -> list[Any]:
        """Put zeros in the place of samples that failed."""
        if self._work.on_error != "blank":
            return samples
        good = next((s for s in samples if s is not _BLANK), self._pattern)
        if good is _BLANK:
            i, text = self.skipped[0]
            good = self._other(i, epoch, Error(f"record {i}: {text}; no record could be read that says what zeros to put in its place"))
        self._pattern = good
        return [zeros(good) if s is _BLANK else s for s in samples]


#: Stands for a sample that failed.
_BLANK = object()


def zeros(sample: Any) -> Any:
    """Return a sample of the same types and shapes, with zeros for numbers, and empty strings."""
    if isinstance(sample, np.ndarray):
        return np.zeros_like(sample)
    if type(sample).__module__.partition(".")[0] == "torch" and hasattr(sample, "new_zeros"):
        return sample.new_zeros(sample.shape)
    if sample is None or isinstance(sample, (bool, int, float, str, bytes, np.bool_, np.number)):
        return None if sample is None else type(sample)()
    if isinstance(sample, Mapping):
        return {key: zeros(value) for key, value in sample.items()}
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*map(zeros, sample))
    if isinstance(sample, (list, tuple)):
        return type(sample)(map(zeros, sample))
    raise Error(f'on_error="blank" zeroes arrays, tensors and numbers, not {type(sample).__name__}; use "backfill"')
