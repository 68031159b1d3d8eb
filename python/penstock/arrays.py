"""Batches of arrays and tensors in memory, gathered in this process.

Rows are gathered with numpy.take into memory that is used again once nothing refers to the batches in it any more. Small batches are
gathered several at a time, so rows are read a little before the loop gets them.
"""

from __future__ import annotations

import copy
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import Error
from .options import count
from .order import Batches
from .samplers import Announced
from .signature import Signature, drawn
from .states import POSITION, check_identity, check_mapping, checking, only
from .threads import divided
from .wire import number, part
from .workers.states import Run

#: About as many bytes are gathered at a time, and at most as many batches.
_GROUP_BYTES = 1 << 20
_MAX_GROUP = 64

#: As many bytes, at least, are worth a thread.
_THREAD_BYTES = 1 << 21

#: The most buffers that are kept to be used again.
_MAX_BUFFERS = 8


@dataclass(frozen=True)
class Columns:
    """Arrays with as many rows each, and what a batch of their rows is."""

    arrays: list[Any]  # of NumPy, or tensors
    build: Callable[[list[Any]], Any]  # makes a batch of an array for each
    indices: np.ndarray | None = None  # the rows that count, by number; None means all
    dataset: Any = None  # of torch, which makes samples itself; None indexes each array

    def samples(self, indices: Any) -> Any:
        """Return the samples of indices of any kind, or raise what indexing raises."""
        if getattr(self.dataset, "__getitems__", None):
            return self.dataset.__getitems__(indices)
        if self.dataset is not None:
            return [self.dataset[i] for i in indices]
        return [self.build([a[i] for a in self.arrays]) for i in indices]

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.indices is None else len(self.indices)


def columns(dataset: Any) -> Columns | None:
    """Return the columns of a dataset in memory; None if it is not one of arrays alone.

    They are an array of NumPy or a tensor; a tuple, a named tuple or a dict of these; a TensorDataset or a StackDataset; a Subset
    of one of them; or a table of pandas, polars or Arrow whose columns are all numbers.
    """
    kind = type(dataset)
    if _is_array(dataset):
        return Columns([dataset], lambda values: values[0])
    if kind is tuple:
        return _several(list(dataset), list)
    if isinstance(dataset, tuple) and hasattr(kind, "_make"):
        return _several(list(dataset), kind._make)
    if kind is dict:
        return _named(dataset)
    utils = sys.modules.get("torch.utils.data")
    if kind is getattr(utils, "TensorDataset", None):
        return _sampled(_several(list(dataset.tensors), list), dataset)
    if kind is getattr(utils, "StackDataset", None):
        return _sampled(_named(dataset.datasets) if isinstance(dataset.datasets, dict) else _several(list(dataset.datasets), list), dataset)
    if kind is getattr(utils, "Subset", None):
        return _sampled(_subset(columns(dataset.dataset), dataset.indices), dataset)
    table = _table(dataset)
    return None if table is None else _named(table)


def _several(arrays: list[Any], build: Callable[[list[Any]], Any]) -> Columns | None:
    if not arrays or not all(map(_is_array, arrays)):
        return None
    lengths = [len(a) for a in arrays]
    if len(set(lengths)) != 1:
        raise ValueError(
            f"dataset has arrays of {', '.join(map(str, lengths[:8]))}{', ...' if len(lengths) > 8 else ''} records; give arrays of one length, or, "
            "if each array is a sample, a list of them"
        )
    return Columns(arrays, build)


def _named(arrays: Mapping[Any, Any]) -> Columns | None:
    names = list(arrays)
    return _several(list(arrays.values()), lambda values: dict(zip(names, values)))


def _sampled(found: Columns | None, dataset: Any) -> Columns | None:
    """Return columns whose samples are those of a dataset of torch."""
    return None if found is None else replace(found, dataset=dataset)


def _subset(of: Columns | None, indices: Any) -> Columns | None:
    if of is None or not len(indices):
        return None
    chosen = np.asarray(indices)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        return None
    n = len(of)
    if (chosen < -n).any() or (chosen >= n).any():
        return None  # its error is raised where it is indexed
    chosen = np.where(chosen < 0, chosen + n, chosen).astype(np.int64)
    return Columns(of.arrays, of.build, chosen if of.indices is None else of.indices[chosen])


def _is_array(value: Any) -> bool:
    """Return whether a value is an array or a tensor whose rows NumPy can gather and torch collates to the same type."""
    if type(value) in (np.ndarray, np.memmap):
        return bool(value.ndim and value.dtype.isnative and (value.dtype.kind in "biu" or value.dtype in _FLOATS))
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not torch.Tensor:
        return False
    return bool(
        value.ndim and value.device.type == "cpu" and value.layout is torch.strided and not value.requires_grad and not value.is_quantized
        and not value.is_conj() and not value.is_neg() and value.dtype.itemsize <= 16
    )  # fmt: skip


_FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")]


def _table(dataset: Any) -> dict[str, np.ndarray] | None:
    """Return the columns of a table of numbers; None if it is not one."""
    kind, module = type(dataset).__name__, type(dataset).__module__.partition(".")[0]
    if (module, kind) == ("pandas", "DataFrame") and dataset.columns.is_unique:
        found = {name: dataset[name].to_numpy() if isinstance(dataset[name].dtype, np.dtype) else None for name in dataset.columns}
    elif (module, kind) == ("polars", "DataFrame"):
        found = {s.name: s.to_numpy() if not s.null_count() else None for s in dataset.get_columns()}
    elif (module, kind) == ("pyarrow", "Table"):
        found = {name: _arrow(dataset.column(i)) for i, name in enumerate(dataset.column_names)}
    else:
        return None
    return {name: values for name, values in found.items() if values is not None} if all(v is not None for v in found.values()) else None


def _arrow(column: Any) -> np.ndarray | None:
    """Return a column of Arrow: of numbers or of lists of as many numbers each, without nulls."""
    import pyarrow as pa

    width, rows = 0, len(column)
    if pa.types.is_fixed_size_list(column.type) and not column.null_count:
        width, column = column.type.list_size, column.combine_chunks().flatten()
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        return None
    values: np.ndarray = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    return values.reshape(rows, width) if width else values


class ArrayLoader:
    """The engine of a DataLoader over arrays in memory; its interface is that of workers.UserLoader.

    Without a seed, order, draws from torch's generators and batches are those of torch's DataLoader. With one, the order is penstock's.
    """

    gathers = True  # whole batches, without a collate_fn

    def __init__(
        self,
        signature: Signature,
        *,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        last: str = "equal",
        output: str = "torch",
        threads: int = 1,
    ) -> None:
        self.signature, self.of_torch = signature, output == "torch"
        self._ordered = signature.sampler is not None or signature.batch_sampler is not None
        if seed is None and output != "torch" and not self._ordered:
            seed = 0 if signature.generator is None else drawn(None, signature.generator)
        self.gather = _Gather(self.columns, output, threads)
        self._seed, self._last, self.part = seed, last, (rank, world_size)
        self._seeded: Batches | None = None
        self._records = -1  # that its order is of
        self._announced: Announced | None = None  # a DistributedSampler, whose epoch is that of the next loop
        self._order_again()
        if seed is not None and self._ordered and type(signature.sampler).__name__ == "DistributedSampler":
            self._announced = Announced(signature.sampler)
        #: Rank and world size.
        self.part = (rank, world_size) if self._seeded is None else (self._seeded.rank, self._seeded.world_size)
        self.sampler, self.batch_sampler = _samplers(self) if output == "torch" else (signature.sampler, signature.batch_sampler)
        self._default = self.batch_sampler
        self._at: dict[str, Any] = {"epoch": 0, "step": 0}  # of the batch that comes next, if no loop is under way
        self.loop: _Loop | None = None  # that was made last
        self.yielded = 0
        self._started = False  # whether there was a loop, whose workers torch would keep

    @property
    def columns(self) -> Columns:
        """The columns of the dataset as it is now."""
        found = columns(self.signature.dataset)
        if found is None:
            raise Error("the dataset has columns that have ceased to be arrays; make a new DataLoader")
        return found

    def _order_again(self) -> None:
        """Have penstock's order, if there is a seed, be one of as many records as there are now."""
        n, s = len(self.gather), self.signature
        if self._seed is None or (self._seeded is not None and self._records == n):
            return
        self._records = n
        if self._ordered:
            from .workers.sampling import seeded

            self._seeded = seeded(replace(s, dataset=range(n)), self._seed, *self.part)
        else:
            assert s.batch_size is not None
            rank, world_size = self.part
            self._seeded = Batches(n, s.batch_size, self._seed, shuffle=s.shuffle, drop_last=s.drop_last, rank=rank, world_size=world_size)
        self._seeded.last = self._last

    @property
    def at(self) -> dict[str, Any]:
        """Where the run is: epoch, step, and what the order needs."""
        loop = self.loop
        return self._at if loop is None or not loop.begun else {**loop.at, "step": loop.step}

    @property
    def resumed(self) -> bool:
        """Whether the next loop begins at ``at``, and not with another epoch."""
        return self.loop is None or not self.loop.begun

    def ended(self, loop: _Loop) -> None:
        """Take that a loop has come to its end."""
        if self.loop is loop:
            self._at, self.loop = {"epoch": loop.at["epoch"] + 1, "step": 0}, None

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch is of: loops that began, without a seed."""
        epoch: int = self.at["epoch"]
        return epoch

    @property
    def records(self) -> int:
        """The number of rows."""
        return len(self.gather)

    @property
    def index_sampler(self) -> Any:
        """The sampler that gives the record numbers of each batch."""
        from .workers.sampling import Batched

        s = self.signature
        return self.batch_sampler if self.batch_sampler is not None else Batched(self.sampler, s.batch_size or 1, s.drop_last)

    @property
    def seeded(self) -> Batches | None:
        """The order of penstock; None where it is torch's, or a sampler's that was given."""
        return self._seeded if self.batch_sampler is self._default else None

    def __len__(self) -> int:
        if self.seeded is not None:
            self.seeded.set_epoch(0)
            return len(self.seeded)
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n, size = len(self.sampler), self.signature.batch_size or 1
        return n // size if self.signature.drop_last else -(-n // size)

    def __iter__(self) -> Iterator[Any]:
        self.gather.look(self.columns)  # again, as torch indexes the dataset as it is then
        self._order_again()
        said = None if self._announced is None else self._announced.said()
        if said is not None:
            self.set_epoch(said)
        if self.of_torch:
            self._draw()
        at = self.at if self.resumed else {"epoch": self.at["epoch"] + (self.at["step"] > 0), "step": 0}
        self._at = at
        self.loop = _Loop(self, at)
        return self.loop

    def _draw(self) -> None:
        """Draw what torch draws for its workers in each new iterator, and warn as it does."""
        import torch

        s = self.signature
        if not (self.resumed and self.at["step"]) and not (self._started and s.persistent_workers and s.num_workers):
            torch.empty((), dtype=torch.int64).random_(generator=s.generator)
        self._started = True
        if s.pin_memory and not _accelerated():
            import warnings

            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.", stacklevel=4)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next loop is; without a seed, to the sampler, if it wants to know."""
        if self.seeded is not None:
            epoch = count("epoch", epoch)
            if not (self.resumed and epoch == self.epoch):
                self._at, self.loop = {"epoch": epoch, "step": 0}, None
            return
        samplers: list[Any] = [self.batch_sampler, getattr(self.batch_sampler, "sampler", None), self.sampler]
        for sampler in samplers:
            if callable(getattr(sampler, "set_epoch", None)):
                sampler.set_epoch(epoch)
                return

    def state_dict(self) -> dict[str, Any]:
        """Return where the run is: after the batch that was yielded last. Numbers, and what samplers with a state say of theirs."""
        return {**self._identity(), **self.at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where state_dict was taken: the next loop yields the rest of that epoch."""
        identity = self._identity()
        check_mapping(state, *identity)
        check_identity(state, identity)
        with checking():
            self._check(state, [name for name in state if name not in identity])
        self._at, self.loop = {name: value for name, value in state.items() if name not in identity}, None

    def _check(self, state: Mapping[str, Any], names: Iterable[str]) -> None:
        """Raise Malformed for a position that this run cannot have."""
        number(state, "epoch")
        step = number(state, "step", 0, len(self))
        drawn = (
            self.of_torch
            and self.seeded is None
            and _is_torch(self.batch_sampler, "BatchSampler")
            and _is_torch(self.batch_sampler.sampler, "RandomSampler")
        )
        only(names, (*POSITION, *(("drawn",) if drawn else ("order",) if self.seeded is None else ())))
        if "order" in state:
            Run(self.signature, None, self.index_sampler, None, False).check_order(part(state, "order", dict), step)
        if drawn and (step or "drawn" in state):
            if self.batch_sampler.sampler.generator is None:
                number(state, "drawn")
            else:
                from .workers.randomness import check_torch

                check_torch(state.get("drawn"))

    def _identity(self) -> dict[str, Any]:
        """Return what does not change in a run."""
        s, order = self.signature, self.seeded
        if order is None:
            return {"v": 1, "records": len(self.gather), "batch_size": s.batch_size, "drop_last": s.drop_last}
        return {
            "v": 1, "records": order.n, "global_batch": order.batch_size * order.world_size, "drop_last": order.drop_last, "seed": order.seed,
            "shuffle": getattr(order, "name", order.shuffle),
        }  # fmt: skip

    def stats(self) -> dict[str, Any]:
        """Return how many batches were yielded, and how much memory they are made in."""
        g = self.gather
        said = f"batches are gathered from arrays in this process: {self.yielded} were; time that is not the loop's own is that of copying rows"
        return {"batches": self.yielded, "buffers": len(g.buffers), "unpooled": g.unpooled, "diagnose": said}

    def close(self) -> None:
        """Give back memory that no batch has. There is no process."""
        self.gather.buffers.clear()


class _Loop:
    """An epoch: an iterator. Several may be under way; the state of the engine is that of the one that was made last."""

    def __init__(self, engine: ArrayLoader, at: dict[str, Any]) -> None:
        self._engine = engine
        #: The position at which it began, and the number of batches of the epoch that were yielded.
        self.at, self.step, self.begun = at, at["step"], False
        self._drawn: deque[Any] = deque()
        self.orders: deque[Any] = deque()  # of a sampler that is asked for each batch: its states after the batches that were drawn
        s = engine.signature
        self._pinned = s.pin_memory and engine.of_torch and _accelerated()
        self._batches = self._run(None)
        if s.num_workers and engine.seeded is None:  # torch asks samplers for as many before the first batch is wanted
            indices, known = self._order()
            self._drawn.extend(batch for _, batch in zip(range(s.num_workers * (s.prefetch_factor or 0)), indices))
            self._batches = self._run((indices, known))

    #: As torch's iterators have them: no process makes batches.
    _workers: tuple[Any, ...] = ()

    def __iter__(self) -> _Loop:
        return self

    def __len__(self) -> int:
        return len(self._engine)

    def __next__(self) -> Any:
        return next(self._batches)

    def _order(self) -> tuple[Iterator[Any], bool]:
        """Return the batches of record numbers, and whether they may be asked for early."""
        e = self._engine
        if e.seeded is not None:
            e.seeded.set_epoch(self.at["epoch"], self.at["step"])
            return iter(e.seeded), True
        indices, known, said = _order(e, self.at, self.orders)
        self.at = {"epoch": self.at["epoch"], "step": self.at["step"], **said}
        return indices, known

    def _run(self, begun: tuple[Iterator[Any], bool] | None) -> Iterator[Any]:
        """Yield the batches. No local variable refers to one while the caller has it, so that its memory is free when it is dropped."""
        e = self._engine
        indices, known = self._order() if begun is None else begun
        group = max(1, min(_MAX_GROUP, _GROUP_BYTES // max(1, (e.signature.batch_size or 1) * e.gather.row_bytes))) if known else 1
        while found := self._some(indices, group):
            made = e.gather.batches(found, checked=known)
            made.reverse()
            while made:
                self.begun = True
                self.step += 1
                e.yielded += 1
                if self.orders:
                    self.at = {**self.at, "order": self.orders.popleft()}
                yield _pinned(made.pop()) if self._pinned else made.pop()
        e.ended(self)

    def _some(self, indices: Iterator[Any], wanted: int) -> list[Any]:
        """Return the record numbers of the batches that come next."""
        found: list[Any] = []
        while self._drawn and len(found) < wanted:
            found.append(self._drawn.popleft())
            self._drawn.extend(batch for _, batch in zip(range(1), indices))
        if not self._drawn:
            found.extend(batch for _, batch in zip(range(wanted - len(found)), indices))
        return found


class _Gather:
    """Gathers rows into buffers, and makes batches over these."""

    def __init__(self, of: Columns, output: str, threads: int) -> None:
        self._threads, self._output = threads, output
        #: Memory of batches that was filled before, column by column.
        self.buffers: list[list[np.ndarray]] = []
        #: Groups of batches whose memory was new, as all buffers were in use.
        self.unpooled = 0
        self._rows: list[tuple[np.dtype, tuple[int, ...]]] = []
        self.look(of)

    def look(self, of: Columns) -> None:
        """Take the arrays of a dataset as they are now."""
        self._of, self._build, self._indices = of, of.build, of.indices
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
        if self._output == "torch":
            from torch.utils.data import default_collate
        else:
            from .workers.collate import default_collate
        return default_collate(self._of.samples(batch))

    def _valid(self, index: np.ndarray) -> np.ndarray:
        """Return record numbers from 0 on; those below 0 count from the end."""
        if index.size == 0:
            return index
        low, high = index.min(), index.max()
        if low < -self._records or high >= self._records:
            wrong = index[(index < -self._records) | (index >= self._records)][0]
            raise IndexError(f"index {wrong} is out of bounds for {self._records} records")
        return np.where(index < 0, index + self._records, index) if low < 0 else index

    def _take(self, source: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        """Gather rows; with threads where there are enough of them. mode="raise" would copy twice, and the numbers are checked."""
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


def _alone() -> int:
    """Return the references that are counted of an array which a list alone has; 0 where the interpreter does not count exactly."""
    arrays = [np.empty(1)]
    return sys.getrefcount(arrays[0]) if getattr(sys, "_is_gil_enabled", lambda: True)() else 0


_ALONE = _alone()


def _source(a: Any, output: str) -> tuple[np.ndarray, Callable[[np.ndarray], Any]]:
    """Return an array or a tensor as what NumPy gathers, and what makes the caller's kind of array of rows."""
    if isinstance(a, np.ndarray):
        a = a.view(np.ndarray)
        if output != "torch":
            return a, _same
        import torch

        return a, torch.from_numpy
    import torch

    try:
        source, wrap = a.numpy(), torch.from_numpy  # type: Any, Callable[[np.ndarray], Any]
    except TypeError:  # a type that NumPy does not have
        like = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[a.dtype.itemsize]
        dtype = a.dtype
        source, wrap = a.view(like).numpy(), lambda rows: torch.from_numpy(rows).view(dtype)
    return source, wrap if output == "torch" else _same


def _same(rows: np.ndarray) -> np.ndarray:
    return rows


def _accelerated() -> bool:
    import torch

    return bool(torch.accelerator.is_available() if hasattr(torch, "accelerator") else torch.cuda.is_available())


def _pinned(batch: Any) -> Any:
    """Return a batch in page-locked memory."""
    from torch.utils.data._utils import pin_memory

    pin: Any = pin_memory.pin_memory  # which has no annotations
    return pin(batch)


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
    """Return whether torch's default_collate stacks arrays and tensors, as it does until the user changes default_collate_fn_map."""
    import torch
    from torch.utils.data._utils import collate

    made: Any = collate
    scalars = (np.bool_, np.number, np.object_)
    known = {torch.Tensor: made.collate_tensor_fn, np.ndarray: made.collate_numpy_array_fn, scalars: made.collate_numpy_scalar_fn}
    others = [kind for kind in made.default_collate_fn_map if kind not in known and kind not in (float, int, str, bytes)]
    types = (torch.Tensor, np.ndarray, np.int64, np.float64, dict, list, tuple)
    return all(made.default_collate_fn_map.get(kind) is function for kind, function in known.items()) and not any(
        issubclass(each, kind) for kind in others for each in types
    )


class _Rows:
    """The rows of a dataset, as many as there are when it is asked, for samplers of torch."""

    def __init__(self, gather: _Gather) -> None:
        self._gather = gather

    def __len__(self) -> int:
        return len(self._gather)


def _samplers(engine: ArrayLoader) -> tuple[Any, Any]:
    """Return the samplers that torch's DataLoader has."""
    from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

    signature, n = engine.signature, len(engine.gather)
    source: Any = signature.dataset if hasattr(signature.dataset, "__len__") and len(signature.dataset) == n else _Rows(engine.gather)
    sampler = signature.sampler
    if sampler is None:
        sampler = RandomSampler(source, generator=signature.generator) if signature.shuffle else SequentialSampler(source)
    if signature.batch_sampler is not None:
        return sampler, signature.batch_sampler
    assert signature.batch_size is not None
    return sampler, BatchSampler(sampler, signature.batch_size, signature.drop_last)


def _order(engine: ArrayLoader, at: Mapping[str, Any], orders: deque[Any]) -> tuple[Iterator[Any], bool, dict[str, Any]]:
    """Return the batches of record numbers from a position on, whether they may be asked for early, and what the state has to know of them.

    Of a sampler that is asked for each batch, its state after each is added to ``orders``.
    """
    batch_sampler, step = engine.batch_sampler, at["step"]
    inner: Any = getattr(batch_sampler, "sampler", None)
    if engine.of_torch and _is_torch(batch_sampler, "BatchSampler") and _is_torch(inner, "SequentialSampler"):
        return _cut(np.arange(len(inner.data_source)), batch_sampler.batch_size, batch_sampler.drop_last, step), True, {}
    if engine.of_torch and _is_torch(batch_sampler, "BatchSampler") and _is_torch(inner, "RandomSampler"):
        return _random(batch_sampler, step, at.get("drawn"))
    from .workers.sampling import Sampled

    sampled = Sampled(engine.index_sampler, engine.signature.generator)
    if "order" in at:
        sampled.load(at["order"])
    else:
        sampled.begin()

    def batches() -> Iterator[Any]:
        while True:
            try:
                batch = sampled.next()
            except StopIteration:
                return
            orders.append(sampled.state())
            yield batch

    return batches(), False, {}


def _from(batches: Iterable[Any], step: int) -> Iterator[Any]:
    """Return an iterator that begins with a batch."""
    found = iter(batches)
    for _ in zip(range(step), found):
        pass
    return found


def _is_torch(sampler: Any, name: str) -> bool:
    """Return whether a sampler is the very class of torch: what is derived of it may do anything."""
    import torch.utils.data

    return type(sampler) is getattr(torch.utils.data, name)


def _cut(order: np.ndarray, size: int, drop_last: bool, step: int) -> Iterator[np.ndarray]:
    end = len(order) // size * size if drop_last else len(order)
    return (order[at : min(at + size, end)] for at in range(step * size, end, size))


def _random(batch_sampler: Any, step: int, drawn: Any) -> tuple[Iterator[np.ndarray], bool, dict[str, Any]]:
    """Return the batches of torch's RandomSampler: the same draws and, of a permutation, without a list of Python's integers.

    ``drawn`` is the seed, or the state of the sampler's generator, that was drawn for an epoch that has already begun.
    """
    import torch

    sampler, size, drop_last = batch_sampler.sampler, batch_sampler.batch_size, batch_sampler.drop_last
    n, generator, given = len(sampler.data_source), sampler.generator, sampler.generator is not None
    if not given:
        drawn = int(torch.empty((), dtype=torch.int64).random_().item()) if drawn is None else drawn
        generator = torch.Generator().manual_seed(drawn)
    elif drawn is None:
        drawn = generator.get_state().numpy().tobytes()
    else:
        generator.set_state(torch.frombuffer(bytearray(drawn), dtype=torch.uint8))
    if sampler.replacement or sampler.num_samples != n:
        seeded = copy.copy(sampler)
        seeded.generator = generator
        batches = _from(type(batch_sampler)(seeded, size, drop_last), step)
        return (np.asarray(batch, np.int64) for batch in batches), not given, {"drawn": drawn}
    order = torch.randperm(n, generator=generator).numpy()
    if not given:
        return _cut(order, size, drop_last, step), True, {"drawn": drawn}

    def cut() -> Iterator[np.ndarray]:
        """Yield the batches, and draw again as torch's sampler does where it finds its end: with a batch that is not full, or after all."""
        whole = drop_last or n % size == 0
        if not whole and step * size >= n:
            torch.randperm(n, generator=generator)
        for batch in _cut(order, size, drop_last, step):
            if len(batch) < size:
                torch.randperm(n, generator=generator)
            yield batch
        if whole:
            torch.randperm(n, generator=generator)

    return cut(), False, {"drawn": drawn}
