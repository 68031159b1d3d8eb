"""The main loop of a worker process: tasks from the loader, user code, results into slots, until the loader closes the connection.

pool.py has the other end. Results are packed by packing.py into the memory of memory.py.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._base.forks import leaving
from .._engine.sharedfile import SharedFile
from . import collate, failure, info, packing, profile, randomness
from .channel import Channel, ChannelClosed
from .fetch import Cancelled, IterableFetcher, Meter, Task, Work
from .memory import DUMP, Board, Writer
from .threads import indexed

#: Kinds of replies.
DATA, FAILED, ENDED, RESUMED = range(4)
#: The parts of a state that a worker sends only when they change.
CARRIED = ("random", "begun")
_WATCH_SECONDS = 1.0
_LOOKS = round(_WATCH_SECONDS / profile.EVERY)


class Reply(NamedTuple):
    """The answer to a task."""

    number: int
    kind: int
    #: A packing.Packed, a failure.Failure, or None.
    payload: Any = None
    #: Nanoseconds in the dataset, in collate, and in copying.
    times: tuple[int, ...] = (0, 0, 0, 0)
    #: A pickled state of the worker after the task, if it was asked for.
    snapshot: bytes | None = None
    #: The records that on_error passed over, and why.
    skipped: tuple[tuple[Any, str], ...] = ()
    #: How often each stack of user code was seen since the last reply; None if no stack was seen.
    stacks: dict[profile.Stack, int] | None = None


def run(work: Work, worker_id: int, file: SharedFile, end: socket.socket, state: Mapping[str, Any] | None, parent: int | None) -> None:
    """Run a worker, until the loader closes the connection or its process ends. ``parent`` is that process if it forked this one."""
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader gets it, too, and ends its workers
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as comm:
        comm.write("penstock_worker")
    _dump_stacks(file)
    seen = profile.Profile()
    _watch(parent, seen)
    end.setblocking(True)
    worker = _Worker(work, worker_id, file, seen)
    channel = Channel(end)
    leaving(worker, _leave, channel)
    with contextlib.suppress(ChannelClosed, Cancelled):
        worker.begin(state)
        waiting = deque[Any]()
        while True:
            message = channel.receive()
            assert message is not None
            waiting.append(pickle.loads(message))
            if worker.begin_with(waiting[-1]) and channel.ready():
                continue
            while waiting:
                for reply in worker.answer(waiting.popleft()):
                    channel.send(reply)
                if waiting and channel.ready():
                    break


def _leave(channel: Channel) -> None:
    """Cease to be a worker, in a fork of a worker by user code: the fork has no memory that it shares with the loader."""
    channel.leave()
    collate.room = None
    faulthandler.disable()
    if hasattr(faulthandler, "unregister"):
        faulthandler.unregister(signal.SIGUSR1)


class _Worker:
    """One worker, and what it has of the dataset."""

    def __init__(self, work: Work, worker_id: int, file: SharedFile, seen: profile.Profile) -> None:
        self._work, self._id, self._profile = work, worker_id, seen
        self._where = f"in DataLoader worker process {worker_id}"
        self._board, self._writer = Board(file), Writer(file)
        self._meter = Meter(self._board.numbers)
        self._size = 0  # bytes of the last batch
        self._failed: failure.Failure | None = None  # of worker_init_fn, or of iter(dataset)
        self._fetcher: Any = None
        # The random states that were sent to the loader: after the last batch, and before iter() of an iterable dataset.
        self._states: tuple[Any, ...] = ()
        self._begun: Any = None
        self._ended = False

    def begin(self, state: Mapping[str, Any] | None) -> None:
        """Seed, and call worker_init_fn, as torch does; then go to a state."""
        work = self._work
        seed = randomness.seed_worker(work.base_seed, self._id)
        info.announce(info.WorkerInfo(self._id, work.num_workers, seed, work.dataset))
        collate.into_slot()
        try:
            if work.worker_init_fn is not None:
                self._board.numbers[Board.phase] = 1
                work.worker_init_fn(self._id)
            self._fetcher = self._make(state)
            if state and "random" in state:
                randomness.restore(randomness.decode(state["random"]))
        except Exception as e:
            self._failed = failure.caught(e, self._where)
        self._meter.stop()

    def _make(self, state: Mapping[str, Any] | None = None) -> Any:
        work = self._work
        self._ended = False
        if work.iterable:
            return IterableFetcher(work, self._meter, state)
        if state and "dataset" in state:
            work.dataset.load_state_dict(state["dataset"])
        return indexed(work, self._meter)

    def begin_with(self, message: Any) -> bool:
        """Have threads begin with the records that a message asks for, and return whether there are threads."""
        begin = getattr(self._fetcher, "begin", None)
        if begin is not None and message[0] is not None and self._failed is None:
            begin(Task(*message[0]))
        return begin is not None

    def answer(self, message: Any) -> list[bytes]:
        """Do the task that the loader asks for, and return the reply: nothing after the end of an iterable dataset."""
        asked, freed, more = message
        self._writer.give_back(freed)
        if asked is None:
            return [self._resume(more)]
        if self._ended:
            return []
        task = Task(*asked)
        self._board.numbers[Board.task] = task.number
        return [pickle.dumps(tuple(self._reply(task)), 5)]

    def _resume(self, epoch: int | None) -> bytes:
        """Begin another epoch with the same process."""
        if epoch is not None and callable(getattr(self._work.dataset, "set_epoch", None)):
            self._work.dataset.set_epoch(epoch)
        if self._failed is None:
            try:
                self._fetcher = self._make()
            except Exception as e:
                self._failed = failure.caught(e, self._where)
        self._states, self._begun = (), None  # the messages about them that the loader was sent may have been dropped
        snapshot = self._snapshot() if self._failed is None else None
        return pickle.dumps(tuple(Reply(-1, RESUMED, snapshot=snapshot)), 5)

    def _reply(self, task: Task) -> Reply:
        """Make a batch, and return the reply."""
        if self._failed is not None:
            return Reply(task.number, FAILED, self._failed)
        info.to_torch()
        room = collate.room = self._writer.room(self._size) if self._size else None
        try:
            payload, kind = self._fetcher.fetch(task), DATA
        except Cancelled:
            raise
        except Exception as e:
            self._ended = isinstance(e, StopIteration) and self._work.iterable
            payload, kind = (None, ENDED) if self._ended else (self._caught(task, e), FAILED)
        finally:
            collate.room = None
        if kind == DATA:
            payload, kind = self._packed(task, payload, room)
        elif room is not None:
            self._writer.give_back([room.number])
        self._meter.stop()
        snapshot = self._snapshot() if task.snapshot else None
        return Reply(task.number, kind, payload, tuple(self._meter.times), snapshot, tuple(self._fetcher.skipped), self._profile.take())

    def _caught(self, task: Task, e: Exception) -> Any:
        _, place, phase = self._board.read()
        if phase == "dataset":
            return failure.caught(e, self._where, f"{of_task(self._work, task, place)}, batch {task.number}")
        return failure.caught(e, self._where, f"{phase} of batch {task.number}")

    def _packed(self, task: Task, batch: Any, room: Any) -> tuple[Any, int]:
        began = time.perf_counter_ns()
        try:
            packed = packing.pack(batch, room, self._writer)
        except Exception as e:
            if room is not None:
                self._writer.give_back([room.number])
            return failure.unpicklable(e, self._where, f"batch {task.number}"), FAILED
        self._size = max(self._size, sum(-(-n // 64) * 64 for _, _, n in packed.buffers))
        self._meter.times[2] = time.perf_counter_ns() - began
        return tuple(packed), DATA

    def _snapshot(self) -> bytes:
        """Return the state of the worker: its random numbers, if they are others than before, and what user code has."""
        found = dict(self._fetcher.state())
        states = randomness.state()
        if states != self._states:
            self._states, found["random"] = states, randomness.encode(states)
        if found.get("begun") is self._begun:
            found.pop("begun", None)
        self._begun = found.get("begun", self._begun)
        return pickle.dumps(found, 5)


def of_task(work: Any, task: Any, place: int) -> str:
    """Return which record of a task a place in it is."""
    if work.iterable:
        return f"sample {place} of the batch"
    if not work.batched:
        return failure.records(task.records)
    try:
        return failure.record(task.records[place])
    except (TypeError, IndexError, KeyError):
        return f"place {place}"


def _dump_stacks(file: SharedFile) -> None:
    """Have this process write its stack into the file when the loader asks for it, or when it ends by a fault."""
    with contextlib.suppress(Exception):
        os.lseek(file.fd, DUMP, os.SEEK_SET)
        faulthandler.enable(file=file.fd)
        if hasattr(faulthandler, "register") and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            faulthandler.register(signal.SIGUSR1, file=file.fd)


def _watch(parent: int | None, seen: profile.Profile) -> None:
    """Look at the stack from time to time, and end this process when the loader's process has ended, whatever this process does
    then.

    User code that never returns ends, too.
    """

    def alive() -> bool:
        if parent is not None:
            return os.getppid() == parent
        above = multiprocessing.parent_process()
        return above is None or above.is_alive()

    def follow() -> None:
        while alive():
            for _ in range(_LOOKS):
                time.sleep(profile.EVERY)
                seen.look()
        os._exit(1)

    threading.Thread(target=follow, daemon=True, name="penstock_watch").start()
