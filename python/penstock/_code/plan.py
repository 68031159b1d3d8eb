"""What a loop asks of the plan that it carries out, and a plan of tasks of any kind.

A Plan gives Tasks in order, is told which of them were delivered, and has the part of a loader's state that says so.
plans.py has the plans of datasets, _engine/recording.py the plans of batches that a feeding process makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .fetch import Task


class Plan:
    """The batches of one loop: none here."""

    #: Whether batch k is made by worker k modulo their number; else by any that has room.
    fixed = True
    #: Whether its states need nothing of the workers.
    light = False
    #: The seed of the workers.
    base_seed = 0
    #: How many batches of the epoch are yielded.
    steps = 0
    #: A bound of all record numbers, if they may be had as ``arrays``, before they are due; else None.
    below: int | None = None

    def __len__(self) -> int:
        raise NotImplementedError

    def begin(self) -> None:
        """Begin, with workers."""

    def begin_serial(self) -> None:
        """Begin, in this process."""

    def next(self) -> Task:
        """Return the batch that comes next; raise StopIteration after the last."""
        raise StopIteration

    def delivered(self, task: Task, number: int) -> None:
        """Take note that a batch, which a worker made, is yielded."""

    def arrays(self) -> Iterator[np.ndarray]:
        """Return the record numbers of all batches that come next."""
        raise NotImplementedError

    def passed(self) -> None:
        """Take note that the next batch of ``arrays`` is yielded."""
        self.steps += 1

    def state(self) -> dict[str, Any]:
        """Return where the loop is; nothing if the plan has no state."""
        return {}


class TaskPlan(Plan):
    """TaskPlan of any kind, for any worker that has room. ``due`` is the first part of the task whose result comes next: its number."""

    fixed = False

    def __init__(self, tasks: Iterator[Any]) -> None:
        self._tasks, self._given = tasks, list[Any]()

    def next(self) -> Task:
        task = next(self._tasks)
        self._given.append(task[0])
        return Task(0, task)

    def delivered(self, task: Task, number: int) -> None:
        del self._given[0]

    @property
    def due(self) -> Any:
        return self._given[0]
