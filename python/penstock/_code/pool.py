"""The worker processes of a loader: they are started, given tasks, listened to, and ended.

A Pool belongs to the process that made it and to one thread at a time. In a fork of that process the workers are only let go of:
ending them there would end them for the parent. When a pool ends, each worker finishes the record that it has begun, and is ended
after some seconds if it does not.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._base import forks
from .._base.errors import Error
from .._base.program import uninterrupted
from . import channel, failure, worker
from .channel import ChannelClosed
from .fetch import Task, Work
from .memory import Board, Reader, memory_file
from .worker import Reply

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

#: How long a worker that is asked to end may take to finish the record that it has begun.
_PATIENCE = 5.0
_LOOK = 1.0
_DUMP_SECONDS = 5.0


class _Handle:
    """One worker process, as the loader has it."""

    def __init__(self) -> None:
        self._file = memory_file()
        self.channel, self._theirs = channel.pair()
        self.board, self.reader = Board(self._file), Reader(self._file)
        self.process: Any = None
        #: The tasks that it has not answered, in order.
        self.tasks: deque[Task] = deque()
        self.ended: RuntimeError | None = None

    def start(self, work: Work, context: Any, number: int, state: Mapping[str, Any] | None) -> None:
        """Start the process. It gets its own copies of descriptors, as a forked process closes the parent's."""
        forked = context.get_start_method() == "fork"
        file = self._file.copy()
        try:
            process = context.Process(target=worker.run, args=(work, number, file, self._theirs, state, os.getpid() if forked else None), daemon=True)
            process.start()
            self.process = process
        except (TypeError, AttributeError, pickle.PicklingError):
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. This might be because the worker Process arguments are not picklable. "
                "Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms to 'forkserver', which requires the worker Process "
                "arguments to be picklable. You can also try multiprocessing.set_start_method('fork').",
                stacklevel=2,
            )
            raise
        finally:
            file.close()
            self._theirs.close()


class Pool:
    """Worker processes. It is for the process that made it, and for one thread at a time."""

    def __init__(self, work: Work, context: Any = None, states: Sequence[Mapping[str, Any] | None] = ()) -> None:
        self._work, self._owner = work, forks.Owner()
        self._kills = failure.out_of_memory_kills()
        self._workers: list[_Handle] = []
        self._replies: deque[tuple[int, Reply]] = deque()
        self._finalizer = forks.finalize(self, _end, self._workers, leave=_leave)
        context = context or multiprocessing.get_context()
        try:
            for i in range(work.num_workers):
                self._workers.append(handle := _Handle())
                with uninterrupted():
                    handle.start(work, context, i, states[i] if i < len(states) else None)
        except BaseException:
            self.close()
            raise

    @property
    def open(self) -> bool:
        """Whether the pool is not closed and all of its workers are running."""
        return self._finalizer.alive and not any(w.ended for w in self._workers)

    def send(self, number: int, task: Task) -> None:
        """Give a task to a worker, and the slots back that nothing refers to."""
        self.alive()
        at = self._workers[number]
        asked = (task.number, task.records, task.epoch, task.step, task.snapshot)
        try:
            message = pickle.dumps((asked, at.reader.freed(), None), 5)
        except Exception as e:
            raise Error(f"the sampler gave {failure.records(task.records)}, which cannot go to a worker: {type(e).__name__}: {e}") from e
        at.tasks.append(task)
        self._tell(at, message)

    def resume(self, epoch: int | None) -> list[bytes | None]:
        """Have the workers begin another epoch, and return their states. Batches of the last epoch that they still make are
        dropped.
        """
        for at in self._workers:
            self._tell(at, pickle.dumps((None, at.reader.freed(), epoch), 5))
        states: list[bytes | None] = [None] * len(self._workers)
        missing = set(range(len(self._workers)))
        while missing:
            number, reply = self.receive(None, missing)
            if reply.kind == worker.RESUMED:
                missing.discard(number)
                states[number] = reply.snapshot
                self._workers[number].tasks.clear()
            else:
                self.drop(number, reply)
        return states

    def receive(self, seconds: float | None, needed: Sequence[int] | set[int]) -> tuple[int, Reply]:
        """Return a reply, and the worker that it is from. Raise RuntimeError if no reply comes in that time, or a worker that
        is needed has ended.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        self.alive()
        while not self._replies:
            self.alive()
            for number in needed:
                ended = self._workers[number].ended
                if ended is not None:
                    raise ended
            left = _LOOK if deadline is None else min(_LOOK, deadline - time.monotonic())
            if left <= 0:
                raise RuntimeError(self._late(seconds or 0, needed))
            self._listen(left)
        return self._replies.popleft()

    def ready(self) -> bool:
        """Return whether there is a reply."""
        self.alive()
        if not self._replies:
            self._listen(0)
        return bool(self._replies)

    def unpacked(self, number: int, reply: Reply) -> Any:
        """Return the batch of a reply."""
        from . import packing

        return packing.unpack(packing.Packed(*reply.payload), self._workers[number].reader)

    def drop(self, number: int, reply: Reply) -> None:
        """Give the memory of a batch back that nobody wants."""
        if reply.kind == worker.DATA:
            self._workers[number].reader.unused(slot[0] for slot in reply.payload[0])

    def close(self) -> None:
        """End the workers. Batches that they made stay as they are as long as something refers to it."""
        self._replies.clear()
        with uninterrupted():
            self._finalizer()

    def alive(self) -> None:
        """Raise Error in a fork of the process that made this, and after the end of the workers."""
        if not self._owner.here:
            raise Error(
                f"this loop belongs to process {self._owner.pid}, and this is process {os.getpid()}, forked from it: two processes cannot share "
                "workers; begin a loop here"
            )
        if not self._finalizer.alive:
            raise Error("the workers were ended: the loader was closed, or began another loop; begin a new loop")

    def _tell(self, at: _Handle, message: bytes) -> None:
        if at.ended is None:
            with contextlib.suppress(ChannelClosed):  # it has ended, which is seen when it is listened to
                at.channel.send(message)

    def _listen(self, seconds: float) -> None:
        """Take what workers have sent, and see who has ended."""
        there = [w for w in self._workers if w.ended is None]
        by_channel = {id(w.channel): w for w in there}
        ready = [by_channel[id(c)] for c in channel.wait([w.channel for w in there], seconds)]
        for at in ready or [w for w in there if not w.process.is_alive()]:  # a process of its own may have kept its connection
            try:
                while (message := at.channel.receive()) is not None:
                    self._take(at, Reply(*pickle.loads(message)))
                if ready:
                    continue
            except ChannelClosed:
                pass
            at.ended = self._post_mortem(at)

    def _take(self, at: _Handle, reply: Reply) -> None:
        if reply.kind != worker.RESUMED and at.tasks and at.tasks[0].number == reply.number:
            at.tasks.popleft()
        self._replies.append((self._workers.index(at), reply))

    def _doing(self, at: _Handle) -> str:
        """Return what a worker does, or did when it ended."""
        number, place, phase = at.board.read()
        if phase in ("waiting", "worker_init_fn"):
            return "" if phase == "waiting" else phase
        task = next((t for t in at.tasks if t.number == number), None)
        if task is None:
            return phase
        return f"{phase}, {worker.of_task(self._work, task, place)} of batch {number}" if phase == "dataset" else f"{phase} of batch {number}"

    def _post_mortem(self, at: _Handle) -> RuntimeError:
        at.process.join(_PATIENCE)
        code, doing, more = at.process.exitcode, self._doing(at), ""
        if code == -getattr(signal, "SIGKILL", 9) and failure.out_of_memory_kills() > self._kills:
            more = " The kernel ended it because memory ran out: use fewer workers, or smaller batches."
        elif code is not None and code < 0 and (stack := at.reader.dump()):
            more = f"\n{stack}"
        return failure.ended(at.process.pid, code, doing, more)

    def _late(self, seconds: float, needed: Sequence[int] | set[int]) -> str:
        """Return the message for a batch that did not come in time: which worker is waited for, what the worker does, and its
        stack.
        """
        text = f"DataLoader timed out after {seconds:g} seconds"
        for number in sorted(needed):
            at = self._workers[number]
            doing = self._doing(at) or "nothing"
            text += f"\nworker {number} (pid {at.process.pid}) is in {doing}\n{self._stack(at)}"
        return text.rstrip()

    def _stack(self, at: _Handle) -> str:
        """Have a worker dump its stack, and return it; nothing where it cannot."""
        if not hasattr(signal, "SIGUSR1"):
            return ""
        at.reader.clear_dump()
        with contextlib.suppress(OSError):
            os.kill(at.process.pid, signal.SIGUSR1)
        before, end = "", time.monotonic() + _DUMP_SECONDS
        while time.monotonic() < end:
            time.sleep(0.05)
            now = at.reader.dump()
            if now and now == before:
                break
            before = now
        return before

    def __iter__(self) -> Iterator[BaseProcess]:
        """Iterate over the processes."""
        return (w.process for w in self._workers)


def _leave(workers: list[_Handle]) -> None:
    """Let go of workers in a fork of the loader's process."""
    for at in workers:
        at.channel.leave()
        at.reader.leave()
    forks.disown(at.process for at in workers)  # which would be ended at the exit


@uninterrupted()
def _end(workers: list[_Handle]) -> None:
    """End the processes of a pool: each finishes the record that it has begun, or is ended after some seconds."""
    for at in workers:
        with contextlib.suppress(ValueError):
            at.board.numbers[Board.stop] = 1
        at.channel.close()
        at.reader.close()
    deadline = time.monotonic() + _PATIENCE
    started = [at.process for at in workers if at.process is not None]
    for process in started:
        process.join(max(0, deadline - time.monotonic()))
    for end in ("terminate", "kill"):
        left = [process for process in started if process.is_alive()]
        for process in left:
            getattr(process, end)()
        for process in left:
            process.join(_PATIENCE)
    for process in started:
        process._popen.close()  # its descriptors: programs may ask the process for its exit code later, which ``close`` of it forgets
    workers.clear()
