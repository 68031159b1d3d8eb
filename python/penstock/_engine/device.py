"""Batches of tensors on a device: of CUDA, copied on a stream of their own while the device works on earlier ones."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from .._base.errors import Error
from .._base.forks import finalize
from .._base.options import count
from .._read.field import Field, Normalization
from .batch import LoaderBatch
from .jagged import Jagged

_cuda: Any = torch.cuda  # torch has no types for its streams and events
_log = logging.getLogger("penstock")
_said: set[str] = set()

#: Batches that are copied or being copied, in addition to the batch that the loop works on.
AHEAD = 2
_MAX_AHEAD = 64

# Batches of the host that are held at a time: one is being copied, and the next is queued after it.
_COPYING = 2

Finish = Callable[[torch.Tensor], torch.Tensor]


#: Kinds of devices that batches are copied to. Copies to others than CUDA devices have no stream of their own.
_KINDS = ("cuda", "mps", "xpu", "hpu")


def resolve(device: Any) -> torch.device:
    """Return the device that is meant; the CPU, and say so once, where it is of a kind that torch finds none of."""
    found: torch.device | None = None
    with contextlib.suppress(RuntimeError, TypeError):
        found = torch.device(device)
    if found is None or found.type not in ("cpu", *_KINDS):
        raise ValueError(f'device is {device!r}; it is a device of kind {", ".join(_KINDS)}, such as "cuda" or "cuda:1", or "cpu"')
    if found.type == "cpu":
        return found
    backend: Any = torch.backends.mps if found.type == "mps" else getattr(torch, found.type, None)
    if backend is None or not backend.is_available():
        if str(found) not in _said:
            _said.add(str(found))
            _log.warning("device is %s, and torch finds no %s device: batches stay in the CPU's memory", found, found.type.upper())
        return torch.device("cpu")
    return found if found.index is not None or found.type == "mps" else torch.device(found.type, backend.current_device())


class Normalizer:
    """Converts bytes to floats as the pipeline of a feeding process does, to the last bit."""

    def __init__(self, field: Field, dtype: str = "float32", layout: str | None = None) -> None:
        n = field.normalization or Normalization(False, 1.0, (0.0,), (1.0,))
        self._axes = None if layout in (None, field.layout) else (0, 3, 1, 2) if layout == "CHW" else (0, 2, 3, 1)
        self._dtype: torch.dtype = getattr(torch, dtype)
        column = (1, -1, 1, 1) if (layout or field.layout) == "CHW" else (1, 1, 1, -1)
        steps = (("div_", (n.scale,)), ("sub_", n.mean), ("div_", n.std))
        self._steps = [(op, torch.tensor(x).reshape(column)) for op, x in steps if any(v != (op == "div_") for v in x)]

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        if self._axes is not None:
            values = values.permute(self._axes)
        out = values.to(torch.float32, memory_format=torch.contiguous_format)
        for i, (op, x) in enumerate(self._steps):
            if x.device != out.device:  # a number of the host would be multiplied by its reciprocal, whose last bit differs
                self._steps[i] = (op, x := x.to(out.device))
            getattr(out, op)(x)
        return out.to(self._dtype)


class Stage:
    """Copies batches to a device, on a separate stream, and converts bytes to floats there.

    Batches of the host are held until their copies are done. A loop that is ahead of its device by more than a few batches
    waits for the device, so that these few batches bound the memory of the device.
    """

    def __init__(self, device: torch.device, finish: Mapping[str, Finish], ahead: int = AHEAD) -> None:
        self._device, self._finish, self._ahead = device, finish, ahead
        self._stream = _cuda.Stream(device)
        self._copied: deque[tuple[Any, Any]] = deque()
        self._used: deque[Any] = deque()
        finalize(self, _drain, self._copied, 0)

    def put(self, batch: Any) -> tuple[Any, Any]:
        """Queue the copies of a batch."""
        while self._copied and self._copied[0][0].query():
            self._copied.popleft()
        _drain(self._copied, _COPYING - 1)
        event = _cuda.Event(blocking=True)
        try:
            with _cuda.stream(self._stream):
                values = _finished(_each(batch, lambda t: t.to(self._device, non_blocking=True)), self._finish)
        finally:  # what was queued before an error reads the batch, too
            event.record(self._stream)
            self._copied.append((event, batch))
        return values, event

    def take(self, staged: tuple[Any, Any]) -> Any:
        """Return a batch for the current stream, which waits for its copies; the host does not."""
        values, event = staged
        consumer = _cuda.current_stream(self._device)
        used = _cuda.Event(blocking=True)
        used.record(consumer)
        self._used.append(used)
        while len(self._used) > self._ahead + 1:
            self._used.popleft().synchronize()
        consumer.wait_event(event)
        for t in _tensors(values):
            t.record_stream(consumer)
        return values


class DirectStage:
    """Copies batches to a device when they are put, where torch has no streams that are known here: MPS, XPU, HPU."""

    def __init__(self, device: torch.device, finish: Mapping[str, Finish]) -> None:
        self._device, self._finish = device, finish

    def put(self, batch: Any) -> Any:
        """Return a batch whose memory on the host may be used again."""
        return _finished(_each(batch, lambda t: t.to(self._device)), self._finish)

    def take(self, staged: Any) -> Any:
        """Return a batch that was put."""
        return staged


def stage_of(device: torch.device, finish: Mapping[str, Finish], ahead: int = AHEAD) -> Stage | DirectStage:
    """Return what copies batches to a device."""
    return Stage(device, finish, ahead) if device.type == "cuda" else DirectStage(device, finish)


class Prefetcher:
    """An iterable over a loader's batches on a device.

    ::

        for batch in penstock.torch.Prefetcher(loader, "cuda"):
            train_step(batch["images"], batch["labels"])

    Tensors may be kept, and used by other streams after ``record_stream``, as all of torch.

    Args:
        loader: A DataLoader of penstock or of torch, or any iterable of tensors, or dicts, lists and
            tuples of them; with ``pin_memory=True``, so that copies do not block.
        device: "cuda", "cuda:1", "mps", "xpu", "hpu" or a torch.device.
        ahead: Batches that are copied in addition to the one that the loop works on.
        normalize: Convert images to floats on the device, so that a quarter of the bytes is copied:
            in each field of a penstock DataLoader for which the dataset has a mean and std.

    It has no thread. Copies to a CUDA device run beside its work; to others, before the batch is
    yielded. Without the device, batches stay on the CPU, and the logger "penstock" says so
    once. ``penstock.DataLoader(..., device="cuda")`` does the same, and leaves the last steps of
    its transforms to the device.
    """

    def __init__(self, loader: Iterable[Any], device: Any = "cuda", ahead: int = AHEAD, normalize: bool = False) -> None:
        self.loader, self.device = loader, resolve(device)
        self._ahead = count("ahead", ahead, 1, _MAX_AHEAD)
        self._finish: dict[str, Finish] = {}
        if normalize:
            fields: Mapping[str, Field] = getattr(loader, "fields", None) or {}
            self._finish = {name: Normalizer(f) for name, f in fields.items() if f.pending and f.is_image}
            if not self._finish:
                raise Error(
                    "normalize is True, and the loader has no field of uint8 images with a mean and std: penstock preprocess normalize notes them"
                )
        self._state: Any = None

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if self.device.type == "cpu":
            self._state = None
            return (_finished(batch, self._finish) for batch in self.loader)
        stage = stage_of(self.device, self._finish, self._ahead)
        # Of a DataLoader over a prepared dataset, whose memory is filled again.
        staged = getattr(getattr(self.loader, "_engine", None), "staged", None)
        return self._iterate(stage) if staged is None else staged(stage, self._ahead)

    def _iterate(self, stage: Stage | DirectStage) -> Iterator[Any]:
        self._state = None
        waiting: deque[tuple[Any, Any]] = deque()
        failure: Exception | None = None
        batches = iter(self.loader)
        while True:
            while failure is None and len(waiting) <= self._ahead:
                try:
                    waiting.append((stage.put(next(batches)), self._position()))
                except Exception as e:  # StopIteration too: it is raised after the batches before it, like other errors
                    failure = e
            if not waiting:
                break
            staged, self._state = waiting.popleft()
            yield stage.take(staged)
            del staged
        self._state = None
        if not isinstance(failure, StopIteration):
            try:
                raise failure  # type: ignore[misc]
            finally:
                failure = None  # whose traceback has this frame

    def _position(self) -> Any:
        return self.loader.state_dict() if hasattr(self.loader, "state_dict") else None

    def state_dict(self) -> Any:
        """Return the state of the loader after the batch that was yielded last."""
        return self._position() if self._state is None else self._state

    def load_state_dict(self, state_dict: Any) -> None:
        """Have the loader go to where state_dict was taken."""
        self._state = None
        self.loader.load_state_dict(state_dict)  # type: ignore[attr-defined]

    def set_epoch(self, epoch: int) -> None:
        """Call the loader's set_epoch."""
        self.loader.set_epoch(epoch)  # type: ignore[attr-defined]


class PendingCopies:
    """Knows when copies are done that the trainer queued from batches of page-locked memory."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[list[Any], list[int]]] = deque()

    def settled(self, slots: list[int], wait: bool) -> list[int]:
        """Take slots that nothing refers to, and return those whose copies are done; with waiting, at least some."""
        if slots:
            self._waiting.append((_events(), slots))
        done: list[int] = []
        while self._waiting and (all(event.query() for event in self._waiting[0][0]) or (wait and not done)):
            for event in self._waiting[0][0]:
                event.synchronize()
            done += self._waiting.popleft()[1]
        return done

    def wait(self) -> None:
        """Wait until all copies are done that were queued until now."""
        for event in _events():
            event.synchronize()
        self._waiting.clear()


def _events() -> list[Any]:
    """Return an event of the current stream of each device that is in use."""
    events = []
    for index in range(_cuda.device_count()):
        if _in_use(index):
            event = _cuda.Event(blocking=True)
            event.record(_cuda.current_stream(index))
            events.append(event)
    return events


def _in_use(index: int) -> bool:
    """Return whether torch has begun to use a device: an event on another would take about 500 MB of its memory."""
    known: Callable[[int], bool] | None = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    return known is None or known(index)


def _drain(copied: deque[tuple[Any, Any]], most: int) -> None:
    """Wait until at most that many batches are not copied yet."""
    while len(copied) > most:
        copied[0][0].synchronize()
        copied.popleft()


def _each(values: Any, f: Callable[[torch.Tensor], Any]) -> Any:
    """Return a batch with f applied to each of its tensors."""
    if isinstance(values, torch.Tensor):
        return f(values)
    if isinstance(values, Jagged):
        return values.map(f)
    if isinstance(values, LoaderBatch):
        return values.holding({name: _each(v, f) for name, v in values.items()})
    if isinstance(values, Mapping):
        return {name: _each(v, f) for name, v in values.items()}
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*(_each(v, f) for v in values))
    if isinstance(values, (list, tuple)):
        return type(values)(_each(v, f) for v in values)
    return values


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a batch."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, Jagged):
        yield from (values.values, values.offsets)
    elif isinstance(values, (Mapping, list, tuple)):
        for v in values.values() if isinstance(values, Mapping) else values:
            yield from _tensors(v)


def _finished(batch: Any, finish: Mapping[str, Finish]) -> Any:
    """Return a batch in which the fields are finished that are to be."""
    if not finish:
        return batch
    values = {**dict(batch.items()), **{name: f(batch[name]) for name, f in finish.items()}}
    return batch.holding(values) if isinstance(batch, LoaderBatch) else values
