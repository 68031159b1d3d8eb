"""Records of a dataset that waits for a network or a disk: several at a time, by threads, or by tasks of one event loop.

``DataLoader(concurrency=...)`` uses it in each process, and ``async def __getitem__`` always.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Callable

from .._base.errors import Error
from . import randomness
from .fetch import Cancelled, Fetcher, MapFetcher, Meter, SeededFetcher, Task, Work, records_of, seed_of, whole
from .memory import Board

_Seed = Callable[[], int]


class _Threads:
    """Threads that end with the process, whatever they wait for, or when this is dropped."""

    def __init__(self, number: int) -> None:
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for k in range(number):
            threading.Thread(target=_work, args=(self._tasks,), daemon=True, name=f"penstock_record_{k}").start()
        weakref.finalize(self, _end, self._tasks, number)

    def submit(self, dataset: Any, records: Iterable[tuple[Any, _Seed]]) -> list[Future[Any]]:
        """Have records of a dataset made, each with what finds its seed."""
        items: list[tuple[Future[Any], Any, Any, _Seed]] = [(Future(), dataset, record, seed) for record, seed in records]
        for item in items:
            self._tasks.put(item)
        return [future for future, *_ in items]

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Leave out records that no thread has begun with."""
        for future in futures:
            future.cancel()


def _work(tasks: queue.SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        future, dataset, record, seed = task
        if not future.set_running_or_notify_cancel():
            continue
        randomness.making(seed)
        try:
            future.set_result(dataset[record])
        except BaseException as e:
            future.set_exception(e)
        del task, future, dataset


def _end(tasks: queue.SimpleQueue[Any], number: int) -> None:
    for _ in range(number):
        tasks.put(None)


class _Tasks:
    """Tasks of an event loop, in a thread of its own: at most a number of tasks, each of which makes one record after another.

    The loop is woken once for a batch: a task, a wake-up and a future of asyncio for each record cost as much as several records.
    """

    def __init__(self, number: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._queue = _Queue(number)
        threading.Thread(target=_run, args=(self._loop,), daemon=True, name="penstock_records").start()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def submit(self, dataset: Any, records: Iterable[tuple[Any, _Seed]]) -> list[Future[Any]]:
        """Have records of a dataset made, each with what finds its seed."""
        items: list[tuple[Future[Any], Any, Any, _Seed]] = [(Future(), dataset, record, seed) for record, seed in records]
        self._loop.call_soon_threadsafe(self._queue.add, items)
        return [future for future, *_ in items]

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Leave out records, and stop tasks that make them."""
        for future in futures:
            future.cancel()
        self._loop.call_soon_threadsafe(self._queue.stop, futures)


class _Queue:
    """Records that tasks of an event loop make. All of it runs in the loop's thread."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._items: deque[Any] = deque()
        self._tasks = set[asyncio.Task[None]]()
        self._making: dict[Future[Any], asyncio.Task[None]] = {}

    def add(self, items: Iterable[Any]) -> None:
        self._items.extend(items)
        for _ in range(min(self._number - len(self._tasks), len(self._items))):
            task = asyncio.get_running_loop().create_task(self._work())
            self._tasks.add(task)

    def stop(self, futures: Iterable[Future[Any]]) -> None:
        for future in futures:
            if future in self._making:
                self._making[future].cancel()

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            while self._items:
                future, dataset, record, seed = self._items.popleft()
                if not future.set_running_or_notify_cancel():
                    continue
                self._making[future] = task
                randomness.making(seed)
                try:
                    future.set_result(await dataset[record])
                except BaseException as e:
                    future.set_exception(e)
                del self._making[future], future, dataset
        finally:
            self._tasks.discard(task)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


class ThreadsFetcher(Fetcher):
    """Batches of a dataset that is indexed, by threads: ``begin`` has them begin with a batch that is due later."""

    def __init__(self, work: Work, meter: Meter) -> None:
        self._work, self._meter = work, meter
        self._begun: dict[int, list[Future[Any]]] = {}
        self._pool: _Threads | _Tasks | None = None
        self._owner = 0
        self._states = randomness.state()

    def begin(self, task: Task) -> None:
        """Have threads begin with the records of a task."""
        if self._owner != os.getpid():  # a fork has no threads
            kind = _Tasks if _waits(self._work.dataset) else _Threads
            self._pool, self._owner, self._begun = kind(self._work.concurrency), os.getpid(), {}
        assert self._pool is not None
        work = self._work
        self._begun[task.number] = self._pool.submit(work.dataset, [(i, partial(seed_of, work, task, i)) for i in records_of(work, task)])

    @whole
    def fetch(self, task: Task) -> Any:
        meter = self._meter
        meter.start()
        if task.number not in self._begun or self._owner != os.getpid():
            self._states = randomness.state()
            self.begin(task)
        samples = self._samples(self._begun.pop(task.number))
        now = randomness.state()
        if len(now) == len(self._states) and any(was is not None and was != is_ for was, is_ in zip(self._states, now)):
            raise Error(
                "the dataset draws from the global generator of random, numpy.random or torch, which all threads share, so that its numbers would "
                "depend on their timing; take penstock.rng() in __getitem__, or concurrency=1"
            )
        meter.next(0)
        batch = self._work.collate(samples if self._work.batched else samples[0])
        meter.next(1)
        self._states = randomness.state()
        return batch

    def _samples(self, futures: list[Future[Any]]) -> list[Any]:
        numbers, samples = self._meter.numbers, list[Any]()
        try:
            for place, future in enumerate(futures):
                numbers[Board.place] = place
                while not future.done():
                    wait(futures[place:], _LOOK)
                    if numbers[Board.stop]:
                        raise Cancelled
                samples.append(future.result())
        except BaseException:
            if self._pool is not None:
                self._pool.cancel(futures)
            raise
        return samples


def _waits(dataset: Any) -> bool:
    return inspect.iscoroutinefunction(getattr(type(dataset), "__getitem__", None))


def indexed(work: Work, meter: Meter) -> Any:
    """Return what makes batches of a dataset that is indexed."""
    if work.concurrency > 1 or (_waits(work.dataset) and work.on_error == "fail"):
        return ThreadsFetcher(work, meter)
    return MapFetcher(work, meter) if work.seed is None else SeededFetcher(work, meter)


#: Seconds after which a fetcher looks whether its batch is still wanted.
_LOOK = 0.2
