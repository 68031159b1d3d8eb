"""The processes that call functions, or this process in their place.

The feeding process inherits a socket to each worker, and memory that all share, and talks to them without this
process.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import select
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import reduction
from typing import Any

from .._base import forks
from .._base.errors import Error
from .._code.channel import ChannelClosed
from .._code.randomness import undisturbed
from .._engine.sharedfile import SharedFile
from .call import Call
from .worker import Worker

#: How many seconds workers have to exit on their own.
_ENDING = 2.0
_LOOK = 1.0


class Processes:
    """Workers in processes of their own, and the means by which the feeding process reaches them.

    ``descriptors`` are the descriptors that the feeding process inherits: of the memory, and of a socket to each worker. They
    are closed by ``handed_over``.
    """

    #: Called while this process waits for the feeding process.
    meanwhile = None

    @property
    def number(self) -> int:
        """The number of processes."""
        return len(self._processes)

    def __init__(self, calls: Sequence[Call], number: int, context: Any, init: Callable[[int], object] | None) -> None:
        context = context if context is not None and not isinstance(context, str) else multiprocessing.get_context(context)
        given = calls, init
        payload = (lambda: given) if context.get_start_method() == "fork" else functools.partial(pickle.loads, _pickled(given))
        self._processes: list[Any] = []
        self._ends: list[socket.socket] = []
        self._memory = SharedFile.create()
        self._finalizer = forks.finalize(self, _end, self._processes, self._ends, self._memory, leave=_leave)
        try:
            for i in range(number):
                ours, theirs = socket.socketpair()
                self._ends.append(ours)
                with theirs, contextlib.closing(self._memory.copy()) as memory:
                    arguments = (theirs, memory, payload, i, os.getpid())
                    process = context.Process(target=_work, args=arguments, daemon=True, name=f"penstock function {i}")
                    process.start()
                    self._processes.append(process)
        except BaseException:
            self.close()
            raise

    @property
    def descriptors(self) -> list[int]:
        return [self._memory.fd, *(end.fileno() for end in self._ends)]

    def handed_over(self) -> None:
        """Close what the feeding process has inherited."""
        _close(self._ends, self._memory)

    def ending(self, worker: int) -> str:
        """Say in words how a worker ended."""
        process = self._processes[worker]
        process.join(_ENDING)
        code = process.exitcode
        if code is None:
            return "it has closed its connection"
        if code >= 0:
            return f"exit code {code}"
        name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else f"signal {-code}"
        hint = ", as the kernel does with a process when memory is short: see dmesg" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"

    def hang_up(self) -> None:
        """Do nothing: the feeding process notices that this process has closed its connection, and then workers notice."""

    def close(self) -> None:
        """End the workers, which are idle once the feeding process has gone."""
        self._finalizer()


def _close(ends: list[socket.socket], memory: SharedFile) -> None:
    while ends:
        ends.pop().close()
    memory.close()


def _leave(processes: list[Any], ends: list[socket.socket], memory: SharedFile) -> None:
    """Let go of workers in a fork of their parent, such as another worker: the feeding process alone has the ends, so that its end is noticed."""
    _close(ends, memory)
    forks.disown(processes)
    processes.clear()


def _end(processes: list[Any], ends: list[socket.socket], memory: SharedFile) -> None:
    """End workers."""
    _close(ends, memory)
    deadline = time.monotonic() + _ENDING
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    for process in processes:
        if process.exitcode is None:
            process.kill()
            process.join()
        process.close()
    processes.clear()


class InProcess:
    """This process in place of workers, for a debugger and plain tracebacks: it calls functions while it waits for a batch."""

    number = 0

    def __init__(self, calls: Sequence[Call]) -> None:
        self._memory = SharedFile.create()
        self._theirs, self._connection = socket.socketpair()
        kept = self._memory.copy()
        self._worker, self._begun = Worker(self._connection, kept, calls), False
        self._finalizer = forks.finalize(self, _close, [self._connection], kept, leave=_close)
        self.exception: BaseException | None = None

    @property
    def descriptors(self) -> list[int]:
        return [self._memory.fd, self._theirs.fileno()]

    def handed_over(self) -> None:
        """Close what the feeding process has inherited."""
        self._theirs.close()
        self._memory.close()

    def ending(self, worker: int) -> str:
        return "it is this process"

    def hang_up(self) -> None:
        """End the connection."""
        self._connection.close()

    def close(self) -> None:
        """Forget the memory."""
        self._finalizer()

    def meanwhile(self, wire: socket.socket, deadline: float | None) -> None:
        """Call functions until something is to be received, or until a time of time.monotonic."""
        while wire.fileno() >= 0:
            sockets = [s for s in (wire, self._connection) if s.fileno() >= 0]
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = _readable(sockets, 0 if self._worker.ready else wait)
            if wire in ready or not (ready or self._worker.ready):
                return
            try:
                with undisturbed():
                    self._worker.raised = None
                    self._worker.step() if self._begun else self._worker.begin()
                    self._begun = True
                    self.exception = self._worker.raised or self.exception
            except ChannelClosed:
                self._connection.close()


def _pickled(what: Any) -> bytes:
    """Return functions as they go to a process that is spawned."""
    try:
        return reduction.ForkingPickler.dumps(what).tobytes()
    except Exception as e:  # pickle raises many kinds
        try:
            import cloudpickle
        except ImportError:
            raise Error(
                f"a function cannot be sent to a worker that is spawned: {e}; define it in a module by its name, take "
                'multiprocessing_context="fork", or install cloudpickle, which sends lambdas too'
            ) from e
        data: bytes = cloudpickle.dumps(what)
        return data


def _work(connection: socket.socket, memory: SharedFile, payload: Callable[[], Any], number: int, parent: int) -> None:
    """Be a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal, for the trainer
    threading.Thread(target=_watch, args=(connection, parent), daemon=True).start()
    worker = None
    with contextlib.suppress(ChannelClosed):
        try:
            calls, init = payload()
            _one_thread()
            worker = Worker(connection, memory, calls)
            if init is not None:
                init(number)
        except Exception as e:
            (worker or Worker(connection, memory, ())).begin(e)
            return
        worker.begin()
        while True:
            worker.step()


def _one_thread() -> None:
    """Have libraries compute in one thread: there is a worker for each core."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    cv2: Any = sys.modules.get("cv2")
    if cv2 is not None:
        cv2.setNumThreads(0)


#: Takes descriptors of any number, where the system has it.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


def _readable(sockets: Sequence[socket.socket], seconds: float | None) -> list[Any]:
    """Return the sockets with something to receive, or that are closed; none after some seconds."""
    with _Selector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(seconds)]


def _watch(connection: socket.socket, parent: int) -> None:
    """End this process soon after the feeding process, or the parent, has gone, whatever its function does."""
    if hasattr(select, "poll"):
        _until_ended(connection, parent)
    else:
        _until_ended_on_windows(connection)
    time.sleep(_ENDING / 2)
    os._exit(1)


def _until_ended(connection: socket.socket, parent: int) -> None:
    poll = select.poll()
    poll.register(connection, 0)  # its end is reported always
    starter, pidfd = os.getppid(), -1
    with contextlib.suppress(OSError, AttributeError):
        pidfd = os.pidfd_open(parent)
        poll.register(pidfd, select.POLLIN)
    while not poll.poll(None if pidfd >= 0 else 1000) and os.getppid() == starter:
        pass


def _until_ended_on_windows(connection: socket.socket) -> None:
    """Look each second: no call there waits for the end of a connection whose messages another thread receives."""
    parent = multiprocessing.parent_process()
    sentinels = [] if parent is None else [parent.sentinel]
    while not multiprocessing.connection.wait(sentinels, _LOOK):
        try:
            if _readable([connection], 0) and not connection.recv(1, socket.MSG_PEEK):
                return
        except OSError:
            return
