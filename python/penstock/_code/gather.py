"""Batches of arrays and tensors in memory: a fetch is a take, in this process.

Rows are gathered with numpy.take into memory that is used again once nothing refers to the batches in it any more. Small batches are
gathered several at a time, so rows are read a little before the loop gets them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .._base.errors import Error
from .._engine.threads import divided
from . import collate
from .arrays import Columns, columns
from .fetch import Task, Work
from .loops import Loop, Place
from .measure import Measures
from .plan import Plan

#: About as many bytes are gathered at a time, and at most as many batches.
_GROUP_BYTES = 1 << 20
_MAX_GROUP = 64

#: As many bytes, at least, are worth a thread.
_THREAD_BYTES = 1 << 21

#: The most buffers that are kept to be used again.
_MAX_BUFFERS = 8


class Gather:
    """A dataset in memory as its rows, which are gathered into buffers. Batches are views of these."""

    def __init__(self, dataset: Any, output: str, threads: int) -> None:
        self._dataset, self._threads, self._output = dataset, threads, output
        #: Memory of batches that was filled before, column by column.
        self.buffers: list[list[np.ndarray]] = []
        #: Groups of batches whose memory was new, as all buffers were in use.
        self.unpooled = 0
        self._rows: list[tuple[np.dtype, tuple[int, ...]]] = []
        self.look()

    def look(self) -> None:
        """Take the arrays of the dataset as they are now: torch indexes it at each iter()."""
        of = columns(self._dataset)
        if of is None:
            raise Error("the dataset has columns that have ceased to be arrays; make a new DataLoader")
        self._of: Columns = of
        self._build, self._indices = of.build, of.indices
        pairs = [_source(a, self._output) for a in of.arrays]
        self._sources, self._wrap = [source for source, _ in pairs], [wrap for _, wrap in pairs]
        self._records = len(of)
        #: Bytes of one record.
        self.row_bytes = sum(a.dtype.itemsize * math.prod(a.shape[1:]) for a in self._sources)
        self._whole = [a.flags.c_contiguous and a.flags.aligned for a in self._sources]
        rows = [(a.dtype, a.shape[1:]) for a in self._sources]
        if rows != self._rows:
            self._rows, self.buffers = rows, []
        self._plainly = self._output != "torch" or _collates_plainly()

    def __len__(self) -> int:
        return self._records

    @property
    def source(self) -> Any:
        """The object that torch samplers are over: the dataset, if its length is its number of rows."""
        return self._dataset if hasattr(self._dataset, "__len__") and len(self._dataset) == self._records else self

    def stats(self, batches: int) -> dict[str, Any]:
        """Return how many batches were yielded, and how much memory they are made in."""
        said = f"batches are gathered from arrays in this process: {batches} were; time outside the loop's body is spent on copying rows"
        return {"batches": batches, "buffers": len(self.buffers), "unpooled": self.unpooled, "diagnose": said}

    def batches(self, found: list[Any], checked: bool) -> list[Any]:
        """Return the batches of these records, whose numbers are checked if they were not."""
        if not self._plainly:
            return [self._collated(batch.tolist() if isinstance(batch, np.ndarray) else batch) for batch in found]
        if not checked:
            (batch,) = found
            numbers = _numbers(batch)
            if numbers is None:
                return [self._collated(batch)]
            found = [numbers]
        index = found[0] if len(found) == 1 else np.concatenate(found)
        if not checked:
            index = self._valid(index)
        if self._indices is not None:
            index = self._indices[index]
        rows = len(index)
        values = self._buffer(rows)
        for source, whole, out in zip(self._sources, self._whole, values):
            if whole:
                self._take(source, index, out)
            else:  # take would copy all of the source first
                out[...] = source[index]
        if len(found) == 1:
            return [self._build([wrap(v[:rows]) for wrap, v in zip(self._wrap, values)])]
        made, at = [], 0
        for batch in found:
            end = at + len(batch)
            made.append(self._build([wrap(v[at:end]) for wrap, v in zip(self._wrap, values)]))
            at = end
        return made

    def _collated(self, batch: Any) -> Any:
        """Return the batch that torch's rules make of samples by indices of any kind."""
        return collate.default(True, self._output == "torch")(self._of.samples(batch))

    def _valid(self, index: np.ndarray) -> np.ndarray:
        """Return record numbers from 0 on; numbers below 0 count from the end."""
        if index.size == 0:
            return index
        low, high = index.min(), index.max()
        if low < -self._records or high >= self._records:
            wrong = index[(index < -self._records) | (index >= self._records)][0]
            raise IndexError(f"index {wrong} is out of bounds for {self._records} records")
        return np.where(index < 0, index + self._records, index) if low < 0 else index

    def _take(self, source: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        """Gather rows; with threads where there are enough rows. mode="raise" would copy twice, and the numbers are checked."""
        rows = len(index)
        parts = min(self._threads, out.nbytes // _THREAD_BYTES, rows)
        if parts < 2:
            source.take(index, 0, out, "clip")
            return
        divided(lambda a, b: source.take(index[a:b], 0, out[a:b], "clip"), rows, parts)

    def _buffer(self, rows: int) -> list[np.ndarray]:
        """Return memory for a number of rows, to which nothing refers."""
        for buffer in self.buffers:
            if len(buffer[0]) >= rows and all(sys.getrefcount(buffer[k]) == _ALONE for k in range(len(buffer))):
                return buffer if len(buffer[0]) == rows else [a[:rows] for a in buffer]
        new = [np.empty((rows, *a.shape[1:]), a.dtype) for a in self._sources]
        if _ALONE and len(self.buffers) < _MAX_BUFFERS:
            self.buffers.append(new)
        elif self.buffers and len(self.buffers[0][0]) < rows:
            self.buffers[0] = new  # of batches that have grown
        else:
            self.unpooled += 1
        return new


class GatherLoop(Loop):
    """Batches of a Gather. ``num_workers`` is how far samplers are asked ahead, as torch asks them for its workers; a Gather
    has no workers.
    """

    #: As the loops of persistent workers have them.
    open = True

    def __init__(self, plan: Plan, work: Work, measures: Measures, options: Any, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(plan, work, measures, options)
        self._ahead = options.num_workers * (options.prefetch_factor or 0)
        self._size = options.batch_size or 1
        self._begin()

    def again(self, plan: Plan, epoch: int | None) -> None:
        """Begin another epoch."""
        self._plan, self.place = plan, Place(plan, self._work.num_workers, 1)
        self._begin()

    def _begin(self) -> None:
        states: list[Any] = [{}] * max(1, self._work.num_workers)
        self.place.states = lambda: states
        if self._ahead:
            self._plan.begin()
        else:
            self._plan.begin_serial()
        early = self._plan.below is not None and self._plan.below <= len(self._work.dataset)
        self._batches = self._early() if early else self._due()

    def __next__(self) -> Any:
        return next(self._batches)

    def _early(self) -> Iterator[Any]:
        """Return the batches of an order that is known, some of which are gathered at a time."""
        batches = self._plan.arrays()
        if self._ahead:  # which draws the order now
            batches = itertools.chain(list(itertools.islice(batches, 1)), batches)
        group = max(1, min(_MAX_GROUP, _GROUP_BYTES // max(1, self._size * self._work.dataset.row_bytes)))
        return _gathered(self._plan, self.place, self._work.dataset, batches, group, self._measures, self._pins)

    def _due(self) -> Iterator[Any]:
        """Return the batches of a sampler that is asked for each when it is due."""
        tasks: deque[Task] = deque()
        _fill(tasks, self._ahead, self._plan)
        return _one_by_one(self._plan, self.place, self._work.dataset, tasks, self._ahead, self._measures, self._pins)


# The iterators do not refer to the loop, which is gone as soon as nothing else does.


def _gathered(plan: Plan, place: Place, gather: Gather, batches: Iterator[np.ndarray], group: int, measures: Measures, pins: Any) -> Iterator[Any]:
    """Yield the batches. No local variable refers to one while the caller has it, so that its memory is free when it is dropped."""
    while found := list(itertools.islice(batches, group)):
        made = gather.batches(found, checked=True)
        made.reverse()
        while made:
            plan.passed()
            measures.batches += 1
            yield made.pop() if pins is None else pins.pinned(made.pop())
    place.finish()


def _one_by_one(plan: Plan, place: Place, gather: Gather, tasks: deque[Task], ahead: int, measures: Measures, pins: Any) -> Iterator[Any]:
    while True:
        _fill(tasks, 1, plan)
        if not tasks:
            break
        task = tasks.popleft()
        if ahead:
            _fill(tasks, ahead, plan)
        made = gather.batches([task.records], checked=False)
        plan.delivered(task, 0)
        measures.batches += 1
        yield made.pop() if pins is None else pins.pinned(made.pop())
    place.finish()


def _fill(tasks: deque[Task], n: int, plan: Plan) -> None:
    """Ask for batches until there are n that are not gathered, or no more come."""
    with contextlib.suppress(StopIteration):
        while len(tasks) < n:
            tasks.append(plan.next())


def _alone() -> int:
    """Return the references that are counted of an array which a list alone has; 0 where the interpreter does not count exactly."""
    arrays = [np.empty(1)]
    return sys.getrefcount(arrays[0]) if getattr(sys, "_is_gil_enabled", lambda: True)() else 0


_ALONE = _alone()


def _source(a: Any, output: str) -> tuple[np.ndarray, Callable[[np.ndarray], Any]]:
    """Return the NumPy array over an array or a tensor, and the function that turns gathered rows into the caller's kind of
    array.
    """
    if isinstance(a, np.ndarray):
        a = a.view(np.ndarray)
        if output != "torch":
            return a, np.asarray
        import torch

        return a, torch.from_numpy
    import torch

    try:
        source, wrap = a.numpy(), torch.from_numpy  # type: Any, Callable[[np.ndarray], Any]
    except TypeError:  # a type that NumPy does not have
        like = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[a.dtype.itemsize]
        dtype = a.dtype
        source, wrap = a.view(like).numpy(), lambda rows: torch.from_numpy(rows).view(dtype)
    return source, wrap if output == "torch" else np.asarray


def _numbers(batch: Any) -> np.ndarray | None:
    """Return the record numbers of a batch; None if there are other indices among them, which NumPy would make numbers of."""
    if not isinstance(batch, np.ndarray):
        kinds = set(map(type, batch))
        torch = sys.modules.get("torch")
        if torch is not None and torch.Tensor in kinds:
            batch = [i.item() if type(i) is torch.Tensor and i.ndim == 0 else i for i in batch]
            kinds = set(map(type, batch))
        if not all(kind is int or issubclass(kind, np.integer) for kind in kinds):
            return None
    index = np.asarray(batch)
    return index.astype(np.int64, copy=False) if index.ndim == 1 and index.dtype.kind in "iu" else None


def _collates_plainly() -> bool:
    """Return whether torch's default_collate stacks arrays and tensors, which holds until the user changes
    default_collate_fn_map.
    """
    import torch
    from torch.utils.data import _utils

    made: Any = _utils.collate
    scalars = (np.bool_, np.number, np.object_)
    known = {torch.Tensor: made.collate_tensor_fn, np.ndarray: made.collate_numpy_array_fn, scalars: made.collate_numpy_scalar_fn}
    others = [kind for kind in made.default_collate_fn_map if kind not in known and kind not in (float, int, str, bytes)]
    types = (torch.Tensor, np.ndarray, np.int64, np.float64, dict, list, tuple)
    return all(made.default_collate_fn_map.get(kind) is function for kind, function in known.items()) and not any(
        issubclass(each, kind) for kind in others for each in types
    )
