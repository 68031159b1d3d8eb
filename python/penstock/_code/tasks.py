"""Tasks of one function, whose results come in order: the worker processes of a loader do them, or this process does.

``penstock.map`` and ``Dataset.add_column`` compute records by it: a kind of Work makes the bytes that preprocess
reads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Union

from .._base.errors import Error
from .._write import codec

#: The number of its first record, and what makes the records.
Task = tuple[int, Any]

#: The task's first record, the bytes of records, their number, and the error that ended them.
Answer = tuple[int, bytes, int, Union[str, None]]

#: How many tasks for each worker are under way or wait for their turn.
_AHEAD = 4


class EncodedRecords:
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

    def make(self, first: int, task: Any, made: EncodedRecords) -> None:
        """Add the records of a task, from number first on. Those before an exception are kept."""
        raise NotImplementedError

    def failure(self, e: Exception) -> str:
        """Return the text of the error of a record."""
        raise NotImplementedError

    def __getitem__(self, task: Task) -> Answer:
        """Make the records of a task, up to the first that fails."""
        made, failed = EncodedRecords(), None
        try:
            self.make(*task, made)
        except Exception as e:
            failed = self.failure(e)
        return task[0], bytes(made.data), made.records, failed


def answers(work: Work, tasks: Iterator[Task], workers: int) -> Generator[Answer, None, None]:
    """Do tasks, by several processes or, with 0 of them, by this one, and yield their answers in order."""
    if workers == 0:
        yield from map(work.__getitem__, tasks)
        return
    import random  # with the modules of loaders, which a process that only opens datasets does without

    from . import randomness
    from .fetch import Work as Workers
    from .loops import ParallelLoop
    from .measure import Measures
    from .plan import TaskPlan

    with randomness.undisturbed():
        seed = random.getrandbits(62)
    plan, shared = TaskPlan(tasks), Workers(work, False, False, _as_it_is, False, workers, base_seed=seed)
    options = SimpleNamespace(
        num_workers=workers, prefetch_factor=_AHEAD, multiprocessing_context=None, timeout=0, in_order=True, memory=None, persistent_workers=False,
        snapshot_every_n_steps=1, pin_memory=False,
    )  # fmt: skip
    with contextlib.closing(ParallelLoop(plan, shared, Measures(), options)) as loop:
        try:
            yield from loop
        except RuntimeError:
            code = next((p.exitcode for p in loop._workers if p.exitcode is not None), None)  # 0 after sys.exit in the function
            if code is None:
                raise
            how = f"was killed by signal {-code}, as the system does when memory runs out" if code < 0 else f"ended with exit code {code}"
            raise Error(
                f"a worker process {how}, at inputs[{plan.due}] or one of those after it; use resume=True to continue, and fewer workers if it was "
                "memory"
            ) from None


def _as_it_is(answer: Answer) -> Answer:
    return answer
