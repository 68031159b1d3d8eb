"""The DataLoader: batches that the Go loader makes, in a process of its own.

A DataLoader starts the command feed, or connects to one, and says in a first message which
datasets, order, transforms and batches it wants. The feeding process writes batches to memory
that both processes map, and sends a few numbers for each: no byte of a batch is copied or
pickled on its way. Memory is in slots, one a batch; a slot is given back when nothing in this
process refers to its batch any more. The messages are in docs/feed.md.

The order of records, random crops and everything else that batches hold are functions of the
options, and of nothing else: not of num_workers, prefetch_factor, or where a run was resumed.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from . import process, samplers
from .dataset import Dataset, open
from .errors import Error, NotFoundError
from .field import STORAGE, Field, chosen, from_json
from .filters import to_json
from .options import count, flag
from .pack import Pack
from .ragged import Ragged
from .shared import Pinning, Rows, SharedMemory, Slot
from .wire import Malformed, Wire, number, part, text

VERSION = 2

# Limits of options, which are those of package loader.
_MAX_BATCH = 1 << 30
_MAX_WORLD = 1 << 20
_MAX_WORKERS = 1 << 12
_MAX_SLOTS = 256

# How many seconds a feeding process has to open its datasets, and to say that a batch takes longer than timeout.
_OPENING = 1800.0
_GRACE = 10.0

_INT32 = Rows(np.dtype(np.int32))
_INT64 = Rows(np.dtype(np.int64))
_BOOL = Rows(np.dtype(np.bool_))
_POSITION = ("epoch", "step", "done")
_SIZE = re.compile(r"\s*[1-9][0-9]*(\.[0-9]+)?\s*([KMGTP]i?)?B?\s*", re.IGNORECASE)
_log = logging.getLogger("penstock")


class LoaderBatch(dict[str, Any]):
    """A batch: its fields by name, as torch tensors, NumPy or JAX arrays.

    Arrays are over memory that is shared with the feeding process, and may be written to. The
    memory is theirs for as long as something refers to it: the batch, an array or a tensor over
    it. ``epoch`` and ``step`` number the batch.
    """

    __slots__ = ("_message", "_slot", "epoch", "step")

    epoch: int
    step: int
    _slot: Slot | None
    _message: Mapping[str, Any]

    @property
    def indices(self) -> np.ndarray:
        """The numbers of the records in the dataset or its split, or of the rows that were packed."""
        return self._array("indices", _INT64)

    @property
    def mask(self) -> np.ndarray:
        """False for records that only fill up a batch: see drop_last, and on_error. Evaluations leave them out."""
        return self._array("mask", _BOOL)

    def holding(self, values: Mapping[str, Any]) -> LoaderBatch:
        """Return the same batch with other values, and no part of the shared memory."""
        batch = LoaderBatch(values)
        batch.epoch, batch.step, batch._slot = self.epoch, self.step, None
        batch._message = {"indices": self.indices.copy(), "mask": self.mask.copy()}
        return batch

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"no field {name!r}; there are: {', '.join(self)}")

    def _array(self, name: str, rows: Rows) -> np.ndarray:
        if self._slot is None:
            values: np.ndarray = self._message[name]
            return values
        return self._slot.array(self._message[name], rows, self._message["count"])


class DataLoader:
    """An iterable over the batches of a dataset, as torch.utils.data.DataLoader is.

    ::

        loader = penstock.DataLoader("photos", 256, shuffle=True, transforms=train, num_workers=4)
        for epoch in range(10):
            for batch in loader:
                train_step(batch["images"], batch["labels"])

    Parameters of torch's DataLoader mean what they mean there; those from transforms on are of penstock.

    Args:
        dataset: The path or URL (s3://, gs://, azblob://, hdfs://, https://, hf://) of a dataset that
            preprocess made, or a penstock.Dataset; or several with the same fields and classes,
            whose records follow each other: see samplers.Mix.
        batch_size: Records of a batch of this process.
        shuffle: Visit every record once an epoch, in another order each time.
        sampler: One of penstock.samplers, of torch.utils.data, or a sequence of record numbers.
        num_workers: Threads of the feeding process that make batches. 0 finds the number with which the
            loop is fastest, and gives cores back that training needs.
        prefetch_factor: Batches for each worker that wait here, ready; None means 2 in all.
        pin_memory: Page-lock the shared memory, so that ``.to("cuda", non_blocking=True)`` does not
            block. Copies that were queued on the current stream before the next batch was asked for are
            awaited before memory is used again, also where a batch was dropped at once. ``device`` does
            it by itself.
        drop_last: Leave out a last batch that is not full. Otherwise, with several ranks, it repeats
            records from the start of the epoch where it cannot be divided evenly: see LoaderBatch.mask.
        timeout: The longest wait for a batch, in seconds, that the loader takes before it reports what
            it waits for; 0 means no limit. A feeding process that is silent for 10 seconds more is
            given up.
        in_order: False yields batches as they are ready.
        transforms: A penstock.transforms.Compose, a torchvision Compose, or JSON, for all image fields;
            or a dict of those by field. Image files that a dataset keeps are decoded by it.
        batch_transforms: MixUp, CutMix, LabelSmoothing or RandomChoice of penstock.transforms, or a
            list of them.
        rank, world_size: Which slice of the global batch, ``batch_size * world_size`` records, this
            process gets: what a DistributedSampler is for.
        seed: Of the order and of all random choices: 64 bits.
        device: "cuda", "cuda:1" or a torch.device: batches are on that device, as tensors for the
            current stream. Two batches are copied there, by a stream of their own, while the device
            works on an earlier one. Transforms that make floats of images at the end of ``transforms``
            (ToTensor, ToDtype, Normalize) is done there, so that bytes are copied, with the same
            results to the last bit. With output="jax" it is a jax.Device, a Sharding or "cuda". Without
            a CUDA device, batches are those of the CPU, and the logger "penstock" says so once.
        output: "torch", "numpy" or "jax". Fields of variable length are penstock.torch.Jagged,
            penstock.Ragged or penstock.jax.Jagged, and texts are lists of str.
        fields, split: The fields and the split to load; None means all.
        filters: Records to keep: a list of (field, op, value) that must all hold, with one of ==, !=,
            <, <=, >, >=, "in" and "not in", on fields of single numbers; classes may be named. Integers
            compare exactly. On a field of floats the value is rounded to the field's type, as NumPy does.
            NaN equals nothing, but "in" finds it, as isin of pandas does.
        pack: A Pack: several records of variable length in each row.
        verify: Compare records with their checksums: "off", "first" (when a block is read for the first
            time), "always", or the part of the blocks, from 0 to 1.
        on_error: Treatment of a record that cannot be read or decoded: "fail" raises Error, "backfill"
            puts another one in its place, "blank" zeros. Those that were passed over are logged (logger
            "penstock") and counted in stats(), and ``mask`` is False for them.
        cache_dir, cache_size: Where records of a URL are kept that were fetched, and how many bytes of
            them ("500GiB").
        socket: The path where a ``penstock feed DATASET --socket PATH`` listens, in place of a dataset:
            processes of one host share it.
        command: The program feed; by default $PENSTOCK_FEED, or feed or penstock in PATH.

    Each loop over it is an epoch; ``set_epoch`` says which, and without it they count up. A new
    loop ends an older one, and starts the next epoch if that one was left early. ``state_dict``
    is where the run is, after the batch that was yielded last, in a loop and after it; a
    DataLoader with the same options that has loaded it yields the batches that come next. It may
    have another num_workers and prefetch_factor, and other ranks if ``batch_size * world_size`` is
    the same.

    One that is pickled starts a feeding process of its own, at the same place. A DataLoader is
    for one thread. Errors are penstock.Error, ValueError and TypeError. It needs Linux.
    """

    def __init__(
        self,
        dataset: str | os.PathLike[str] | Dataset | Sequence[Any] | None = None,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        *,
        transforms: Any = None,
        batch_transforms: Any = None,
        drop_last: bool = False,
        num_workers: int = 0,
        prefetch_factor: int | None = None,
        pin_memory: bool = False,
        timeout: float = 0,
        in_order: bool = True,
        rank: int = 0,
        world_size: int = 1,
        seed: int = 0,
        device: Any = None,
        output: str = "torch",
        fields: Iterable[str] | None = None,
        split: str | None = None,
        filters: Iterable[tuple[str, str, Any]] | None = None,
        pack: Pack | None = None,
        verify: str | float = "off",
        on_error: str = "fail",
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: str | int | None = None,
        socket: str | os.PathLike[str] | None = None,
        command: str | os.PathLike[str] | None = None,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        if (dataset is None) == (socket is None):
            raise ValueError("a DataLoader needs either a dataset or the socket of a feed")
        if shuffle and sampler is not None:
            raise ValueError("sampler decides the order: leave shuffle out")
        self._convert, self._device, self._ahead = _converter(output, device)
        paths, fields, split = _datasets(dataset, chosen(fields), split)
        arrays = _ArrayFile()
        order: samplers.Sampler = samplers.Shuffle() if shuffle is not None and flag("shuffle", shuffle) else samplers.Sequential()
        implied: Mapping[str, Any] = {}
        if sampler is not None:
            order, implied = samplers.translate(sampler)
        rank, world_size = implied.get("rank", rank), implied.get("world_size", world_size)
        seed, drop_last = implied.get("seed", seed), implied.get("drop_last", drop_last)
        workers = count("num_workers", num_workers, 0, _MAX_WORKERS)
        slots = _slots(prefetch_factor, workers)
        world_size = count("world_size", world_size, 1, _MAX_WORLD)
        self._in_order = flag("in_order", in_order)
        options: dict[str, Any] = {
            "batch_size": count("batch_size", batch_size, 1, _MAX_BATCH), "num_workers": workers, "slots": slots,
            "rank": count("rank", rank, 0, world_size - 1, f", as world_size is {world_size}"), "world_size": world_size,
            "seed": count("seed", seed, 0, samplers.MAX_SEED), "fields": fields, "split": split or "",
            "drop_last": flag("drop_last", drop_last), "in_order": self._in_order,
            "sampler": order.to_json(arrays), "filters": to_json(filters), "timeout": float(timeout),
            "transforms": _by_field(transforms), "batch_transforms": _of_batches(batch_transforms),
            "pack": None if pack is None else pack.to_json(arrays), "verify": _verify(verify), "on_error": on_error,
        }  # fmt: skip
        if self._device is not None:
            options["as_bytes"] = True
        self.batch_size, self.sampler, self.drop_last = options["batch_size"], order, options["drop_last"]
        self.num_workers, self.prefetch_factor, self.pin_memory, self.timeout = workers, prefetch_factor, pin_memory, timeout
        self.rank, self.world_size, self.seed = options["rank"], options["world_size"], options["seed"]
        self._paths, self._split = paths, split
        self._pinning, self._copies = _pinning(flag("pin_memory", pin_memory), output, self._device)
        self._process = os.getpid()
        self._pending: deque[dict[str, Any]] = deque()
        self._freed: deque[int] = deque()
        self._failure = ""  # why no batch comes, once the pending ones are used
        self._held = self._copied = self._skipped = 0
        self._staged = False
        self._loop: object = None  # the one that is under way
        self._wanted: int | None = None  # the epoch of the next loop, said during one
        self._open(options, arrays, socket, cache_dir, cache_size, command)

    def _open(self, options: dict[str, Any], arrays: _ArrayFile, socket: Any, cache_dir: Any, cache_size: Any, command: Any) -> None:
        """Start the feeding process, or connect to it, and ask for what the options say."""
        self._child = None
        if socket is not None:
            if cache_dir is not None or cache_size is not None:
                raise ValueError(
                    "cache_dir and cache_size belong to the feed that listens: penstock feed URL --socket PATH --cache-dir FOLDER --cache-size BYTES"
                )
            name = os.fspath(socket)
            connection = process.connect(name)
        else:
            flags = _cache(cache_dir, cache_size)
            name = ", ".join(self._paths)
            self._child, connection = process.start(self._paths, flags, None if command is None else os.fspath(command))
        self._wire = Wire(connection, name, self._child)
        self._finalizer = weakref.finalize(self, _end, self._wire, None, self._child)
        try:
            self._greet(options, arrays)
        except BaseException:
            self.close()
            raise

    def _greet(self, options: dict[str, Any], arrays: _ArrayFile) -> None:
        with arrays:
            self._wire.send({"hello": {"version": VERSION, "options": options}}, arrays.descriptor())
        with self._checking():
            welcome = part({"welcome": self._receive("welcome", seconds=_OPENING)}, "welcome", dict)
            self._memory = SharedMemory(self._wire.take_descriptor(), self._pinning)
            self._finalizer.detach()
            self._finalizer = weakref.finalize(self, _end, self._wire, self._memory, self._child)
            fields = [from_json(entry) for entry in part(welcome, "fields", list)]
            #: The fields by name, as batches have them.
            self.fields: dict[str, Field] = {f.name: f for f in fields}
            if len(self.fields) != len(fields):
                raise Malformed("two fields of one name")
            self._rows = [Rows(f.storage, f.shape) for f in fields]
            self._stage = self._staging(welcome)
            #: Records of the dataset, or rows if they are packed.
            self.records: int = number(welcome, "records")
            self._batches: int = number(welcome, "batches")
            self._slots: int = number(welcome, "slots", 2, _MAX_SLOTS)
            self._identity = {name: value for name, value in part(welcome, "state", dict).items() if name not in _POSITION}
        self._at = _position(0, 0)  # of the batch that comes next
        self._stream: dict[str, Any] | None = None  # of the one that the feeding process sends next
        self._resumed = True  # whether the next loop begins at _at, and not with another epoch

    @property
    def dataset(self) -> Dataset:
        """The dataset, opened in this process too: for its length, its classes or single records."""
        if len(self._paths) != 1:
            raise AttributeError(f"a DataLoader of {len(self._paths)} datasets has no one dataset")
        return open(self._paths[0], split=self._split)

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch is of."""
        epoch: int = self._at["epoch"]
        return epoch

    @property
    def pid(self) -> int | None:
        """The feeding process, if this one started it."""
        return None if self._child is None else self._child.pid

    def __repr__(self) -> str:
        return f"<penstock DataLoader of {self.records} records: batch {self._at['step']} of {self._batches} in epoch {self.epoch}>"

    def __len__(self) -> int:
        return self._batches

    def __getitem__(self, key: object) -> LoaderBatch:
        raise TypeError("a DataLoader makes whole batches in its own order, and has no items: for batch in loader: ...")

    def __iter__(self) -> Iterator[LoaderBatch]:
        return self.staged(self._stage, self._ahead)

    def staged(self, stage: Any, ahead: int) -> Iterator[LoaderBatch]:
        """Return an iterator over the next epoch whose batches go through a Stage: what a Prefetcher is."""
        if self._wanted is not None:
            self._at = _position(self._wanted, 0)
        elif not self._resumed:
            self._at = _position(self.epoch + (self._at["step"] > 0), 0)
        self._resumed, self._wanted = False, None
        self._loop = loop = object()
        return self._iterate(loop, stage, ahead)

    def _staging(self, welcome: Any) -> Any:
        """Return what copies batches to the device; None if nothing does."""
        if self._device is None:
            return None
        from .device import Normalizer, Stage

        finish = welcome.get("finish", {})
        names = {name: (text(to, "dtype"), text(to, "layout")) for name, to in finish.items()} if isinstance(finish, dict) else {}
        for name, (dtype, layout) in names.items():
            if name not in self.fields or not self.fields[name].is_image or dtype not in STORAGE or layout not in ("CHW", "HWC"):
                raise Malformed(f"{name!r:.100} of {dtype!r:.100} and {layout!r:.100} is no field of images to be finished")
        return Stage(self._device, {name: Normalizer(self.fields[name], *to) for name, to in names.items()})

    def _iterate(self, loop: object, stage: Any, ahead: int) -> Iterator[LoaderBatch]:
        epoch, at, waiting = self.epoch, self._at, deque[tuple[Any, dict[str, Any]]]()
        received = 0
        failure: Error | None = None
        try:
            self._alive()
            self._give_back()
            self._staged = stage is not None
            while True:
                self._alive()
                while failure is None and at["step"] < self._batches and self._wants(len(waiting), ahead):
                    received += 1
                    if received > self._batches:
                        self._refuse(Malformed(f"more than {self._batches} batches of epoch {epoch}"))
                    try:
                        batch, at = self._next(at)
                        waiting.append((batch if stage is None else stage.put(batch), at))
                        del batch
                    except Error as e:
                        failure = e  # comes after the batches before it
                if not waiting:
                    break
                batch, self._at = waiting.popleft()
                if stage is not None:
                    batch = stage.take(batch)
                yield batch
                del batch  # so that the caller alone keeps it
                if self._loop is not loop:
                    raise Error("this loop was ended by a new one over the same DataLoader, or by load_state_dict; make a DataLoader for each loop")
            if failure is not None:
                raise failure
            self._at = _position(epoch + 1, 0)
        finally:
            failure = None  # whose traceback has this frame
            if self._loop is loop:
                self._loop = None

    def _wants(self, waiting: int, ahead: int) -> bool:
        """Return whether to receive a batch now: the one that the loop needs, or one ahead of it that is there."""
        return waiting == 0 or (waiting <= ahead and (len(self._pending) > 0 or self._wire.ready()))

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next loop is. A position in that epoch that was loaded stays as it is."""
        epoch = count("epoch", epoch)
        if self._loop is not None:
            self._wanted = epoch
        elif not (self._resumed and epoch == self.epoch):
            self._at, self._resumed = _position(epoch, 0), True

    def state_dict(self) -> dict[str, Any]:
        """Return where the run is: after the batch that was yielded last. It is JSON, some 300 bytes."""
        return {**self._identity, **self._at}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where state_dict was taken: the next loop yields the rest of that epoch.

        Raise Error, with what differs, if it is of another dataset, order, seed, global batch or
        transforms; this DataLoader then is where it was.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"state_dict is {state_dict!r:.60}; it must be what state_dict() returned")
        if not {"epoch", "step", "v"} <= state_dict.keys():
            raise ValueError(f"this is not what state_dict() returned: it has {', '.join(map(repr, state_dict)) or 'nothing'}")
        state = dict(state_dict)
        self._start(state)
        self._at = {name: state[name] for name in _POSITION if name in state}
        self._resumed, self._loop, self._wanted = True, None, None

    def stats(self) -> dict[str, Any]:
        """Return what the loader did since it was made. Times are nanoseconds.

        ``loader`` has the numbers of Go's loader.Stats, ``diagnose`` says in a sentence what limits
        the loop, ``copied`` counts batches that were copied because the others were still referred
        to, ``skipped`` those records that on_error passed over, and ``pinned`` says whether memory
        is page-locked, or why not.
        """
        self._alive()
        self._wire.send({"stats": True})
        pinned = "not asked for" if self._pinning is None else self._pinning.state
        with self._checking():
            stats = self._receive("stats", seconds=self._patience())
            text(part({"stats": stats}, "stats", dict), "diagnose")
        return {**stats, "copied": self._copied, "skipped": self._skipped, "pinned": pinned}

    def diagnose(self) -> str:
        """Return a sentence that says what limits the loop over this DataLoader, and what to do."""
        sentence: str = self.stats()["diagnose"]
        return sentence

    def close(self) -> None:
        """End the feeding process. Batches that are still referred to stay as they are."""
        self._finalizer()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._arguments, self.state_dict(), self._resumed)

    def _start(self, state: Mapping[str, Any]) -> None:
        """Have the feeding process send the batches from a position on, and forget those it sent."""
        self._alive()
        self._stream = None
        self._wire.send({"start": dict(state)})
        with self._checking():
            answer = part({"started": self._receive("started", keep=False, seconds=self._patience())}, "started", dict)
            self._failure = ""  # of batches that nobody wants any more
            if answer.get("error"):
                raise Error(text(answer, "error"))
            self._stream = _position(number(answer, "epoch"), number(answer, "step"), _done(answer))

    def _alive(self) -> None:
        """Raise Error if the DataLoader was closed, or belongs to another process."""
        if os.getpid() != self._process:
            raise Error(
                f"this DataLoader belongs to process {self._process}, and this is process {os.getpid()}, forked from it: two processes "
                "cannot share one; make a DataLoader here"
            )
        if not self._finalizer.alive:
            raise Error("the DataLoader was closed; make a new one, and load_state_dict to continue where this one was")

    def _next(self, at: dict[str, Any]) -> tuple[LoaderBatch, dict[str, Any]]:
        """Return the batch at a position, and the position after it."""
        self._alive()
        if self._stream != at:
            self._start({**self._identity, **at})
        if 2 * len(self._freed) >= self._slots or self._held >= self._slots:
            self._give_back()
        if not self._pending and self._failure:
            self._fail()
        with self._checking():
            message = self._pending.popleft() if self._pending else self._receive("batch", seconds=self._patience())
            epoch, step = number(message, "epoch", at["epoch"], at["epoch"]), number(message, "step", 0, self._batches - 1)
            following = part(message, "next", list)
            if following != [epoch + 1, 0] and not (len(following) == 2 and following[0] == epoch and at["step"] <= following[1] <= (step + 1 if self._in_order else self._batches)):
                raise Malformed(f"batch {step} of epoch {epoch} is not followed by {following!r:.100}")
            self._stream = _position(following[0], following[1], _done(message))
            return self._batch(message), self._stream if following[0] == epoch else _position(epoch, self._batches)

    def _batch(self, message: dict[str, Any]) -> LoaderBatch:
        self._held += 1
        if self._held > self._slots:
            raise Malformed(f"more than the {self._slots} batches that there is memory for")
        count = number(message, "count", 0, self.batch_size)
        places = part(message, "fields", list)
        if len(places) != len(self._rows):
            raise Malformed(f"{len(places)} arrays for {len(self._rows)} fields")
        copy = self._held - len(self._freed) >= self._slots  # none would be left to be filled
        slot = Slot(self._memory.mapped(number(message, "size")), number(message, "slot", 0, self._slots - 1), self._freed)
        batch = LoaderBatch()
        batch.epoch, batch.step = message["epoch"], message["step"]
        batch._slot, batch._message = slot, message
        values = {f.name: _values(slot, f, r, count, place) for f, r, place in zip(self.fields.values(), self._rows, places)}
        slot.array(number(message, "indices"), _INT64, count)  # both are made when they are asked for
        slot.array(number(message, "mask"), _BOOL, count)
        if "cu_seqlens" in message:
            lengths = message["cu_seqlens"]
            longest = count * min((f.shape[0] for f in self.fields.values() if f.shape), default=0)
            values["cu_seqlens"] = _ends(slot.array(number(lengths, "at"), _INT32, number(lengths, "rows")), longest)
        if copy:
            self._copied += 1
            values = {name: v.copy() for name, v in values.items()}
            batch._message = {"indices": batch.indices.copy(), "mask": batch.mask.copy()}
            batch._slot = None
        batch.update(self._convert(self.fields, values))
        return batch

    def _fail(self) -> None:
        """Raise why the next batch does not come. A new loop may begin after that."""
        failure, self._failure, self._stream = self._failure, "", None
        raise Error(failure)

    def _give_back(self) -> None:
        slots = [self._freed.popleft() for _ in range(len(self._freed))]
        if self._copies is not None:  # a Stage has waited for its own
            staged, slots = (slots, []) if self._staged else ([], slots)
            slots = staged + self._copies.settled(slots, wait=not staged and self._held >= self._slots)
        if slots:
            self._held -= len(slots)
            self._wire.send({"release": slots})

    def _patience(self) -> float | None:
        """Return the seconds to wait for an answer; None is without limit."""
        return self.timeout + _GRACE if self.timeout > 0 else None

    @contextmanager
    def _checking(self) -> Iterator[None]:
        """Close the DataLoader, and say why, if a message is none that a feeding process sends."""
        try:
            yield
        except Malformed as e:
            self._refuse(e)

    def _refuse(self, e: Malformed) -> NoReturn:
        self.close()
        raise Error(f"{self._wire.name}: a message that no feed sends: {e}") from None

    def _receive(self, kind: str, keep: bool = True, seconds: float | None = None) -> Any:
        """Wait for a message of a kind. Batches that come before it are for later, or given back."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            if not keep and self._pending:
                self._wire.send({"release": [number(m, "slot", 0, self._slots - 1) for m in self._pending]})
                self._pending.clear()
            message = self._wire.receive(deadline)
            if "error" in message:
                self.close()
                there = all("://" in path or os.path.lexists(path) for path in self._paths)
                raise (Error if there else NotFoundError)(text(message, "error"))
            if "failed" in message:
                self._failure = text(message, "failed")  # after the batches that are pending
                if kind == "batch":
                    self._fail()
            elif "skipped" in message:
                self._skipped += 1
                _log.warning("%s", text(message, "skipped"))
            elif kind in message:
                return message[kind]
            elif "batch" in message and kind != "welcome":
                self._pending.append(message["batch"])
                if len(self._pending) > self._slots:
                    raise Malformed(f"more than the {self._slots} batches that there is memory for")
            else:
                raise Malformed(f"{kind} was asked for")


def _values(slot: Slot, f: Field, rows: Rows, count: int, place: Any) -> np.ndarray | Ragged:
    at = number(place, "at")
    if not f.ragged:
        return slot.array(at, rows, count)
    total = number(place, "rows") if "rows" in place else 0
    return Ragged(slot.array(at, rows, total), _ends(slot.array(number(place, "offsets"), _INT64, count + 1), total), f.content)


def _ends(offsets: np.ndarray, last: int) -> np.ndarray:
    """Return offsets of rows, from 0 to last at most, if they are that."""
    if not len(offsets) or offsets[0] or offsets[-1] > last or (offsets[1:] < offsets[:-1]).any():
        raise Malformed(f"offsets that do not go from 0 to {last}")
    return offsets


def _done(message: Any) -> str | None:
    return part(message, "done", str) if "done" in message else None


def _position(epoch: int, step: int, done: str | None = None) -> dict[str, Any]:
    return {"epoch": epoch, "step": step, "done": done} if done else {"epoch": epoch, "step": step}


def _converter(output: str, device: Any) -> tuple[Any, Any, int]:
    """Return what makes of a batch's arrays what the caller asked for, the CUDA device where tensors go, and how many batches ahead."""
    if output == "numpy":
        if device is not None:
            raise ValueError('device is for output="torch" and "jax": NumPy has no arrays on devices')
        return (lambda _, values: values), None, 0
    if output == "jax":
        from . import jax

        return jax.converter(device), None, 0 if device is None else jax.AHEAD
    if output != "torch":
        raise ValueError(f'output is {output!r}; it is "torch", "numpy" or "jax"')
    try:
        from . import torch
    except ImportError as e:
        raise Error(f'output="torch" needs PyTorch, which cannot be imported ({e}); install it, or take output="numpy"') from e
    if device is None:
        return torch.convert, None, 0
    from .device import AHEAD, resolve

    found = resolve(device)
    return torch.convert, *((found, AHEAD) if found.type == "cuda" else (None, 0))


def _pinning(asked: bool, output: str, device: Any) -> tuple[Pinning | None, Any]:
    """Return what page-locks memory, and what knows when copies from it are done that are not the DataLoader's own."""
    if not asked and device is None:
        return None, None
    from .pinned import Pinning, Unpinned

    if output != "torch":
        return Pinning(0), None
    import torch

    if not torch.cuda.is_available():
        return Unpinned("torch finds no CUDA device"), None
    from .device import Copies

    if device is None:
        return Pinning(torch.cuda.current_device()), Copies()
    return Pinning(device.index), None


def _datasets(dataset: Any, fields: Any, split: str | None) -> tuple[list[str], Any, str | None]:
    """Return the paths of one dataset or several, and the fields and the split that these were opened with."""
    if dataset is None:
        return [], fields, split
    if split is not None and not isinstance(split, str):
        raise TypeError(f"split is {split!r:.60}; it must be the name of a split")
    several = dataset if isinstance(dataset, (list, tuple)) else [dataset]
    if not several:
        raise ValueError("dataset is an empty list")
    paths = []
    for d in several:
        d = getattr(d, "dataset", d)  # of a TorchDataset
        if isinstance(d, Dataset):
            if split not in (None, d.split) and d.split is not None:
                raise ValueError(f"{d.path} was opened with the split {d.split!r}, and split is {split!r}; give one of the two")
            fields, split, d = fields or d._chosen, split or d.split, d.path
        try:
            paths.append(os.fsdecode(d))
        except TypeError:
            raise TypeError(
                f"dataset is a {type(d).__name__}; it is the path or URL of a dataset that preprocess made, or penstock.open of it. "
                "For other datasets, torch's DataLoader serves"
            ) from None
    return paths, fields, split


def _by_field(transforms: Any) -> dict[str, list[dict[str, Any]]]:
    """Return pipelines by the name of the field; "" stands for all image fields."""
    if transforms is None:
        return {}
    from . import transforms as T

    if isinstance(transforms, Mapping) and "op" not in transforms:
        return {name: T.translate(t) for name, t in transforms.items()}
    return {"": T.translate(transforms)}


def _of_batches(transforms: Any) -> list[dict[str, Any]]:
    """Return transforms of batches as JSON."""
    if transforms is None:
        return []
    from . import transforms as T

    return T.translate(transforms, T._BATCH)


def _cache(folder: str | os.PathLike[str] | None, size: int | str | None) -> list[str]:
    """Return the flags of feed for where, and how much of, what it fetched is kept."""
    flags = [] if folder is None else ["--cache-dir", os.fspath(folder)]
    if size is None:
        return flags
    if isinstance(size, str):
        if not _SIZE.fullmatch(size):
            raise ValueError(f'cache_size is {size!r}; it must be bytes, as a number or like "500GiB"')
        return [*flags, "--cache-size", size]
    return [*flags, "--cache-size", str(count("cache_size", size, 1))]


def _verify(verify: str | float) -> float:
    """Return the part of blocks that are compared; -1 is when they are first read."""
    named = {"off": 0.0, "first": -1.0, "always": 1.0}
    if isinstance(verify, str):
        if verify not in named:
            raise ValueError(f'verify is {verify!r}; it is "off", "first", "always" or a number from 0 to 1')
        return named[verify]
    if not 0 <= verify <= 1:
        raise ValueError(f"verify is {verify}; it must be from 0 to 1")
    return float(verify)


def _slots(prefetch_factor: Any, workers: int) -> int:
    """Return how many batches this process may have at a time: two in use, and those that wait."""
    if prefetch_factor is None:
        return 4
    return min(2 + count("prefetch_factor", prefetch_factor, 1, _MAX_SLOTS) * max(1, workers), _MAX_SLOTS)


def _again(arguments: dict[str, Any], state: dict[str, Any], resumed: bool) -> DataLoader:
    """Make a DataLoader that was pickled."""
    loader = DataLoader(**arguments)
    loader.load_state_dict(state)
    loader._resumed = resumed
    return loader


class _ArrayFile:
    """The arrays that go to the feeding process, in one anonymous file."""

    def __init__(self) -> None:
        self._fd, self._size = -1, 0

    def add(self, values: np.ndarray) -> dict[str, int]:
        if self._fd < 0:
            if sys.platform != "linux":
                raise Error("a DataLoader needs Linux")
            self._fd = os.memfd_create("penstock-arrays")
        at = self._size
        data = values.reshape(-1).view(np.uint8).data
        while data:
            data = data[os.write(self._fd, data) :]
        self._size += values.nbytes
        return {"at": at, "count": values.size}

    def descriptor(self) -> int | None:
        return None if self._fd < 0 else self._fd

    def __enter__(self) -> _ArrayFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


def _end(wire: Wire, memory: SharedMemory | None, child: Any) -> None:
    """Give back what a DataLoader has. A feeding process ends when its client has gone."""
    wire.close()
    if memory is not None:
        memory.close()
    if child is not None:
        process.wait(child)
