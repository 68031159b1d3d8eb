"""Several processes that do the tasks of one function, whose results come in order."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Union

from .._base.errors import Error
from .._base.forks import disown, finalize
from .._write import codec

if TYPE_CHECKING:
    from multiprocessing import connection
    from multiprocessing.process import BaseProcess

#: The number of its first record, and what makes the records.
Task = tuple[int, Any]

#: The task's first record, the bytes of records, their number, and the error that ended them.
Answer = tuple[int, bytes, int, Union[str, None]]

#: How many tasks a worker may have before the first of them is done.
_AHEAD = 2


class Made:
    """The bytes of records, and their number."""

    __slots__ = ("data", "records")

    def __init__(self) -> None:
        self.data = bytearray()
        self.records = 0

    def add(self, parts: Iterable[codec.Buffer], records: int = 1) -> None:
        """Add records that these parts are the bytes of, one after the other."""
        for part in parts:
            self.data += part if isinstance(part, bytes) else part.data.cast("B") if part.size else b""
        self.records += records


class Work:
    """The work of one process. A kind of work has ``make`` and ``failure``."""

    def make(self, first: int, task: Any, made: Made) -> None:
        """Add the records of a task, from number first on. Those before an exception are kept."""
        raise NotImplementedError

    def failure(self, e: Exception) -> str:
        """Return the text of the error of a record."""
        raise NotImplementedError

    def do(self, task: Task) -> Answer:
        """Make the records of a task, up to the first that fails."""
        made, failed = Made(), None
        try:
            self.make(*task, made)
        except Exception as e:
            failed = self.failure(e)
        return task[0], bytes(made.data), made.records, failed


def answers(work: Work, tasks: Iterator[Task], workers: int) -> Generator[Answer, None, None]:
    """Do tasks, by several processes or, with 0 of them, by this one, and yield their answers in order."""
    return (work.do(task) for task in tasks) if workers == 0 else _shared(work, tasks, workers)


def _work(work: Work, tasks: connection.Connection) -> None:
    """Run a worker, until its parent closes the connection or ends."""
    import multiprocessing
    import threading
    from multiprocessing import connection

    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    while (task := tasks.recv()) is not None:
        tasks.send(work.do(task))


def _shared(work: Work, tasks: Iterator[Task], n: int) -> Generator[Answer, None, None]:
    """Have n processes do the tasks."""
    import multiprocessing

    workers: list[tuple[BaseProcess, connection.Connection]] = []
    finalizer = finalize(work, _end, workers, leave=_leave)
    try:
        for _ in range(n):
            ours, theirs = multiprocessing.Pipe()
            process: BaseProcess = multiprocessing.Process(target=_work, args=(work, theirs), daemon=True)
            process.start()
            theirs.close()
            workers.append((process, ours))
        yield from _in_order(workers, tasks)
        for _, pipe in workers:
            pipe.send(None)
    finally:
        finalizer()


def _leave(workers: list[tuple[BaseProcess, connection.Connection]]) -> None:
    """Let go of workers in a fork of their parent."""
    for process, pipe in workers:
        pipe.close()
        disown([process])
    workers.clear()


def _end(workers: list[tuple[BaseProcess, connection.Connection]]) -> None:
    for process, pipe in workers:
        pipe.close()
        process.terminate()
        process.join()


def _in_order(workers: list[tuple[BaseProcess, connection.Connection]], tasks: Iterator[Task]) -> Iterator[Answer]:
    """Give tasks to workers that have few, and yield answers in the order of tasks. At most 4 a worker are under way or wait for their turn."""
    from multiprocessing import connection

    process = {pipe: p for p, pipe in workers}
    under_way: dict[connection.Connection, list[int]] = {pipe: [] for _, pipe in workers}
    waiting: dict[int, Answer] = {}
    order: list[int] = []  # first inputs of the tasks that were given out and not yielded

    def give() -> None:
        while len(order) < 2 * _AHEAD * len(workers):
            pipe = min(under_way, key=lambda p: len(under_way[p]))
            if len(under_way[pipe]) >= _AHEAD:
                return
            task = next(tasks, None)
            if task is None:
                return
            try:
                pipe.send(task)
            except (BrokenPipeError, ConnectionResetError):
                raise _died(process[pipe], [*under_way[pipe], task[0]][0]) from None
            under_way[pipe].append(task[0])
            order.append(task[0])

    give()
    while order:
        for ready in connection.wait([p for p, list_ in under_way.items() if list_]):
            assert isinstance(ready, connection.Connection)
            try:
                answer: Answer = ready.recv()
            except (EOFError, ConnectionResetError):
                raise _died(process[ready], under_way[ready][0]) from None
            under_way[ready].remove(answer[0])
            waiting[answer[0]] = answer
        give()
        while order and order[0] in waiting:
            yield waiting.pop(order.pop(0))
            give()


def _died(process: BaseProcess, first: int) -> Error:
    process.join(5)
    code = process.exitcode
    how = (
        f"was killed by signal {-code}, as the system does when memory runs out" if code is not None and code < 0 else f"ended with exit code {code}"
    )
    return Error(f"the worker process that had inputs[{first}] {how}; use resume=True to continue, and fewer workers if it was memory")
