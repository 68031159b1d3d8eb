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
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from . import launcher, process, samplers, subject
from .batch import LoaderBatch
from .dataset import Dataset, open
from .errors import Error, NotFoundError
from .field import STORAGE, Field, chosen, from_json
from .filters import to_json
from .options import count, flag
from .pack import Pack
from .ragged import Ragged
from .shared import Lent, Pinning, Rows, SharedMemory, Slot
from .wire import Malformed, Wire, number, part, text

VERSION = 3

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


class _Fixed:
    """An attribute that says what a DataLoader was made with, and cannot be set."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, loader: DataLoader | None, _: type) -> Any:
        return self if loader is None else loader._fixed[self._name]

    def __set__(self, _: DataLoader, value: object) -> NoReturn:
        raise AttributeError(
            f"{self._name} of a DataLoader cannot be set: the feeding process works with the one that it was made with. Make a new DataLoader with another "
            f"{self._name}; load_state_dict(loader.state_dict()) has it continue where this one is, if the order is the same"
        )


class _Missing(_Fixed):
    """A parameter of torch's DataLoader that this one does not have."""

    def __get__(self, loader: DataLoader | None, _: type) -> Any:
        if loader is None:
            return self
        raise AttributeError(f"a DataLoader of penstock has no {self._name}")

    def __set__(self, _: DataLoader, value: object) -> NoReturn:
        raise AttributeError(f"a DataLoader of penstock has no {self._name}: a feeding process, which runs no Python, makes its batches")


class DataLoader:
    """An iterable over the batches of a dataset, as torch.utils.data.DataLoader is.

    ::

        loader = penstock.DataLoader("photos", 256, shuffle=True, transforms=train, num_workers=4)
        for epoch in range(10):
            for batch in loader:
                train_step(batch["images"], batch["labels"])

    Parameters that torch's DataLoader has too mean the same, but for ``num_workers``, where 0 finds the number, and for
    ``shuffle``, whose order is the same in each run until ``seed`` is another. Batches are dicts.

    Args:
        dataset: The path or URL (s3://, gs://, azblob://, hdfs://, https://, hf://) of a dataset that
            preprocess made, or a penstock.Dataset; or several with the same fields and classes,
            whose records follow each other: see samplers.Mix. Of torch's, it may be a Subset, what
            random_split returns, or a ConcatDataset of these, and a TorchDataset without transform:
            its records alone are loaded, in its order or, with ``shuffle``, in another one each time.
            The feeding process reads the files: a Dataset with mode="c" is refused, as what is
            written to its arrays is not there.
        batch_size: Records of a batch of this process.
        shuffle: Visit every record once an epoch, in another order each time.
        sampler: One of penstock.samplers, of torch.utils.data, or a sequence of record numbers. Those
            of torch say which records are visited, and how they are drawn; the draws are those of
            ``seed``. The rank, world size and seed of a DistributedSampler are taken where they are not
            given, and so is the epoch of its set_epoch.
        num_workers: Threads of the feeding process that make batches. 0 finds the number with which the
            loop is fastest, and gives cores back that training needs.
        prefetch_factor: Batches for each worker that wait here, ready; None means 2 in all.
        pin_memory: Page-lock the shared memory, so that ``.to("cuda", non_blocking=True)`` does not
            block. Copies that were queued on the current stream of any device before the next batch was
            asked for are awaited before memory is used again, also where a batch was dropped at once.
            ``device`` does it automatically.
        drop_last: Leave out a last batch that is not full. Otherwise, with several ranks, it repeats
            records from the start of the epoch where it cannot be divided evenly: see LoaderBatch.mask.
        timeout: The longest wait for a batch, in seconds, that the loader takes before it reports what
            it waits for; 0 means no limit. A feeding process that is silent for 10 seconds more is
            given up.
        in_order: False yields batches as they are ready.
        transforms: A penstock.transforms.Compose, a torchvision Compose, or JSON, for all image fields;
            or a dict of those by field. Image files that a dataset keeps are decoded by it. Boxes, points
            and masks do not follow an image: a field that may be one of these is an error next to an
            image that is resized, cropped or flipped. Masks with a pipeline of their own, of the same
            geometry before all else that is random, are moved alike.
        independent: Names of fields that do not lie on what other image fields show: numbers that are
            not boxes or points, the picture of another camera.
        batch_transforms: MixUp, CutMix, LabelSmoothing or RandomChoice of penstock.transforms, or a
            list of them.
        rank, world_size: Which slice of the global batch, ``batch_size * world_size`` records, this
            process gets: what a DistributedSampler is for. ``rank="auto"`` takes both from
            torch.distributed, if it is initialized, or from the environment of the launcher (torchrun,
            Accelerate, Slurm, MPI, Kubernetes); without either, it is rank 0 of 1. None is rank 0 of 1,
            all of the data, with a warning where a launcher started several processes.
        seed: Of the order and of all random choices: 64 bits. None means 0.
        device: "cuda", "cuda:1" or a torch.device: batches are on that device, as tensors for the
            current stream. Two batches are copied there, by a stream of their own, while the device
            works on an earlier one. Transforms that make floats of images at the end of ``transforms``
            (ToTensor, ToDtype, Normalize) are done there, so that bytes are copied, with the same
            results to the last bit. With output="jax" it is a jax.Device, a Sharding or "cuda". Without
            a CUDA device, batches are those of the CPU, and the logger "penstock" says so once.
        output: "torch", "numpy" or "jax". Fields of variable length are penstock.torch.Jagged,
            penstock.Ragged or penstock.jax.Jagged: ``batch["boxes"][0]`` are the rows of record 0,
            ``len`` is the number of records, and ``values`` and ``offsets`` are all of them. Texts are
            lists of str.
        fields, split: The fields and the split to load; None means all.
        filters: Records to keep: a list of (field, op, value) that must all hold, with one of ==, !=,
            <, <=, >, >=, "in" and "not in", on fields of single numbers; classes may be named. Integers
            compare exactly. On a field of floats the value is rounded to the field's type, as NumPy does.
            NaN equals nothing, but "in" finds it, as isin of pandas does.
        pack: A Pack: several records of variable length in each row.
        verify: Compare records with their checksums: "off", "first" (when a block is read for the first
            time), "always", or the part of the blocks, from 0 to 1.
        on_error: Treatment of a record that cannot be read or decoded: "fail" raises Error, "backfill"
            puts another one in its place, "blank" zeros that no transform changes (an error with MixUp and
            CutMix, which would mix them into others). Those that were passed over are logged (logger
            "penstock") and counted in stats(), and ``mask`` is False for them.
        cache_dir, cache_size: Where records of a URL are kept that were fetched, and how many bytes of
            them ("500GiB").
        socket: The path where a ``penstock feed DATASET --socket PATH`` listens, in place of a dataset:
            processes of one host share it.
        command: The program feed; by default $PENSTOCK_FEED, or feed or penstock in PATH.

    Each loop over it is an epoch; ``set_epoch`` says which, and without it they count up. A loop
    begins when its first batch is asked for. It ends an older one, and is the next epoch if that
    one was left early. Ctrl-C leaves the DataLoader as it is after the last batch. ``state_dict``
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
        independent: Iterable[str] = (),
        batch_transforms: Any = None,
        drop_last: bool = False,
        num_workers: int = 0,
        prefetch_factor: int | None = None,
        pin_memory: bool = False,
        timeout: float = 0,
        in_order: bool = True,
        rank: int | str | None = None,
        world_size: int | None = None,
        seed: int | None = None,
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
        if pack is not None and not isinstance(pack, Pack):
            raise TypeError(f"pack is {pack!r:.60}; it must be a penstock.Pack, such as penstock.Pack(length)")
        if (dataset is None) == (socket is None):
            raise ValueError("a DataLoader needs either a dataset or the socket of a feed")
        if shuffle and sampler is not None:
            raise ValueError("sampler decides the order: leave shuffle out")
        self._convert, self._device, self._ahead = _converter(output, device)
        self._subject = of = subject.resolve(dataset, chosen(fields), split)
        narrowed = filters is not None or pack is not None
        if narrowed and of.indices is not None:
            raise ValueError("filters and pack number the records anew, and the dataset is a Subset; give the path, and sampler= one of penstock.samplers")
        batch_size, drop_last = count("batch_size", batch_size, 1, _MAX_BATCH), flag("drop_last", drop_last)
        order: samplers.Sampler = samplers.Shuffle() if shuffle is not None and flag("shuffle", shuffle) else samplers.Sequential()
        implied: Mapping[str, Any] = {}
        if sampler is not None:
            order, implied = samplers.translate(sampler, of.count, not narrowed, batch_size, drop_last)
        order = of.ordered(order)
        rank, world_size = _ranks(rank, world_size, implied)
        workers = count("num_workers", num_workers, 0, _MAX_WORKERS)
        self._in_order = flag("in_order", in_order)
        self._given = self._exact = None
        if of.records is not None:  # objects that say what they have
            self._given = None if isinstance(dataset, (list, tuple)) else dataset
            self._exact = of.records if pack is None and (sampler is not None or of.indices is not None) else None
        options: dict[str, Any] = {
            "batch_size": batch_size, "num_workers": workers, "slots": _slots(prefetch_factor, workers), "rank": rank, "world_size": world_size,
            "seed": _seed(seed, implied), "fields": of.fields, "split": of.split or "",
            "drop_last": implied.get("drop_last", drop_last), "in_order": self._in_order,
            "filters": to_json(filters), "timeout": _timeout(timeout),
            "transforms": _by_field(_normalizing(of, transforms)), "batch_transforms": _of_batches(batch_transforms),
            "independent": chosen(independent, "independent"), "verify": _verify(verify), "on_error": on_error,
        }  # fmt: skip
        if self._device is not None:
            options["as_bytes"] = True
        # Python's pickle, and frameworks that look at the DataLoader, get the values that hold.
        self._arguments |= {name: options[name] for name in ("rank", "world_size", "seed")}
        self._fixed = {**self._arguments, "sampler": order if sampler is None else sampler, "drop_last": options["drop_last"], "batch_sampler": None}
        self._distributed, self._said = (sampler, 0) if "rank" in implied else (None, 0)
        self._paths = of.paths
        self._pinning, self._copies = _pinning(flag("pin_memory", pin_memory), output, self._device)
        self._process = os.getpid()
        self._talking = threading.RLock()
        self._pending: deque[dict[str, Any]] = deque()
        self._freed: deque[Lent] = deque()
        self._failure = ""  # why no batch comes, once the pending ones are used
        self._held = self._copied = self._skipped = 0
        self._number = self._answered = 0  # of the last request, and of the last that was answered
        self._staged = False
        self._loop: object = None  # the one that is under way
        self._wanted: int | None = None  # the epoch of the next loop, said during one
        with _ArrayFile() as arrays:
            options["sampler"] = order.to_json(arrays)
            options["pack"] = None if pack is None else pack.to_json(arrays)
            self._open(options, arrays, socket, cache_dir, cache_size, command)

    batch_size, shuffle, sampler, transforms, batch_transforms, drop_last = _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed()
    num_workers, prefetch_factor, pin_memory, timeout, in_order = _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed()
    rank, world_size, seed, device, output, split, filters, pack = _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed()
    verify, on_error, cache_dir, cache_size, socket, command = _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed(), _Fixed()
    batch_sampler = _Fixed()  # None, as frameworks ask for it
    collate_fn, worker_init_fn, generator, multiprocessing_context, persistent_workers = _Missing(), _Missing(), _Missing(), _Missing(), _Missing()

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
        for given in self._subject.opened:
            given.check_place()
        if self._exact not in (None, self.records):
            raise Error(f"{self._wire.name} has {self.records} records, and had {self._exact} when it was opened here; open it again")
        self._at = _position(0, 0)  # of the batch that comes next
        self._stream: dict[str, Any] | None = None  # of the one that the feeding process sends next
        self._resumed = True  # whether the next loop begins at _at, and not with another epoch

    @property
    def dataset(self) -> Any:
        """The dataset that was given or, of a path, opened in this process too: for its length, its classes or single records."""
        if self._given is not None:
            return self._given
        if len(self._paths) != 1:
            raise AttributeError(f"a DataLoader of {len(self._paths)} datasets has no one dataset")
        try:
            return open(self._paths[0], split=self._subject.split)
        except Error as e:  # of a URL, for example, which frameworks ask for by hasattr
            raise AttributeError(f"the dataset cannot be opened in this process: {e}") from e

    @dataset.setter
    def dataset(self, value: object) -> None:
        raise AttributeError("dataset of a DataLoader cannot be set; make a new DataLoader")

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
        return self._iterate(stage, ahead)

    def _begin(self) -> dict[str, Any]:
        """Return where a loop begins."""
        if self._distributed is not None and self._distributed.epoch != self._said:
            self._said = self._distributed.epoch
            self.set_epoch(self._said)
        if self._wanted is not None:
            return _position(self._wanted, 0)
        if self._resumed:
            return self._at
        return _position(self.epoch + (self._at["step"] > 0), 0)

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

    def _iterate(self, stage: Any, ahead: int) -> Iterator[LoaderBatch]:
        self._alive()
        at, self._loop = self._begin(), (loop := object())
        epoch, waiting, received = at["epoch"], deque[tuple[Any, dict[str, Any]]](), 0
        failure: Error | None = None
        begun = False
        try:
            if self._stream is not None:
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
                batch, after = waiting.popleft()
                if stage is not None:
                    batch = stage.take(batch)
                if not begun:
                    begun, self._resumed, self._wanted = True, False, None
                self._at = after
                yield batch
                del batch  # so that the caller alone keeps it
                if self._loop is not loop:
                    raise Error("this loop was ended by a new one over the same DataLoader, or by load_state_dict; make a DataLoader for each loop")
            if failure is not None:
                raise failure
            if not begun:
                self._resumed, self._wanted = False, None
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

        ``loader`` has the numbers of Go's loader.Stats, such as ``Workers``, ``Cores`` (this process's
        share) and ``LocalSize`` (processes of this host that share its cores, as torchrun, MPI or
        Slurm say), ``diagnose`` says in a sentence what limits
        the loop, ``copied`` counts batches that were copied because the others were still referred
        to, ``skipped`` those records that on_error passed over, and ``pinned`` says whether memory
        is page-locked, or why not.
        """
        pinned = "not asked for" if self._pinning is None else self._pinning.state
        with self._alone(), self._checking():
            self._alive()
            stream, self._stream = self._stream, None
            number = self._ask({"stats": True})
            stats = self._receive("stats", number, self._patience())
            text(part({"stats": stats}, "stats", dict), "diagnose")
            self._stream = stream
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

    # Where batches come from is known, by _stream, while nothing is under way: whatever is asked of the feeding process
    # sets it to None until it is done. So after an interrupt (Ctrl-C) the next batch begins with a start, which numbers
    # itself, and says which slots are in use here: what was on the way then is nobody's.

    def _start(self, state: Mapping[str, Any]) -> None:
        """Have the feeding process send the batches from a position on, and forget those it sent."""
        with self._alone():
            self._begin_stream(state)

    def _begin_stream(self, state: Mapping[str, Any]) -> None:
        self._alive()
        self._stream = None
        if self._copies is not None:
            self._copies.wait()
        held = self._memory.held()
        self._pending.clear()
        for _ in range(len(self._freed)):  # it takes back all but those that are held
            if (lent := self._freed.popleft()).number in held:
                self._freed.append(lent)
        self._held = len(held)
        asked = self._ask({"start": dict(state), "held": held})
        with self._checking():
            answer = part({"started": self._receive("started", asked, self._patience())}, "started", dict)
            self._failure = ""  # of batches that nobody wants any more
            if answer.get("error"):
                raise Error(text(answer, "error"))
            self._stream = _position(number(answer, "epoch"), number(answer, "step"), _done(answer))

    def _ask(self, message: dict[str, Any]) -> int:
        """Send a request, and return the number that its answer will have."""
        self._number += 1
        self._wire.send({**message, "number": self._number})
        return self._number

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
        with self._alone():
            return self._take(at)

    def _take(self, at: dict[str, Any]) -> tuple[LoaderBatch, dict[str, Any]]:
        self._alive()
        if self._stream != at:
            self._start({**self._identity, **at})
        self._stream = None
        if 2 * len(self._freed) >= self._slots or self._held >= self._slots:
            self._give_back()
        if not self._pending and self._failure:
            self._fail()
        with self._checking():
            message = self._pending.popleft() if self._pending else self._receive("batch", seconds=self._patience())
            epoch, step = number(message, "epoch", at["epoch"], at["epoch"]), number(message, "step", 0, self._batches - 1)
            following = part(message, "next", list)
            last = step + 1 if self._in_order and "done" not in at else self._batches  # some were yielded before
            if following != [epoch + 1, 0] and not (len(following) == 2 and following[0] == epoch and at["step"] <= following[1] <= last):
                raise Malformed(f"batch {step} of epoch {epoch} is not followed by {following!r:.100}")
            stream, batch = _position(following[0], following[1], _done(message)), self._batch(message)
            self._stream = stream
            return batch, stream if following[0] == epoch else _position(epoch, self._batches)

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
            batch._message = {"epoch": batch.epoch, "step": batch.step, "indices": batch.indices.copy(), "mask": batch.mask.copy()}
            batch._slot = None
        batch.update(self._convert(self.fields, values))
        return batch

    def _fail(self) -> None:
        """Raise why the next batch does not come. A new loop may begin after that."""
        failure, self._failure, self._stream = self._failure, "", None
        raise Error(failure)

    def _give_back(self) -> None:
        with self._alone():
            self._release()

    def _release(self) -> None:
        stream, self._stream = self._stream, None
        slots = [self._freed.popleft().number for _ in range(len(self._freed))]
        if self._copies is not None:  # a Stage has waited for its own
            staged, slots = (slots, []) if self._staged else ([], slots)
            slots = staged + self._copies.settled(slots, wait=not staged and self._held >= self._slots)
        if slots:
            self._held -= len(slots)
            self._wire.send({"release": slots})
        self._stream = stream

    def _patience(self) -> float | None:
        """Return the seconds to wait for an answer; None is without limit."""
        return self.timeout + _GRACE if self.timeout > 0 else None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise Error if another thread waits for the feeding process: each would take the answers to the other."""
        if not self._talking.acquire(blocking=False):
            raise Error(
                "another thread uses this DataLoader now, which is for one thread: make a DataLoader for each, or have one thread put batches into a queue"
            )
        try:
            yield
        finally:
            self._talking.release()

    @contextmanager
    def _checking(self) -> Iterator[None]:
        """Close the DataLoader, and say why, if a message is none that a feeding process sends."""
        try:
            yield
        except Malformed as e:
            self._refuse(e)

    def _refuse(self, e: Malformed) -> NoReturn:
        self.close()
        raise Error(f"{self._wire.name}: unexpected message from feed: {e}") from None

    def _receive(self, kind: str, asked: int | None = None, seconds: float | None = None) -> Any:
        """Wait for a message of a kind: for the answer to a request, if that has a number.

        Batches that come before an answer are for later, but before a start they are nobody's.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        passed = 0
        while True:
            message = self._wire.receive(deadline)
            if "error" in message:
                self.close()
                there = all("://" in path or os.path.lexists(path) for path in self._paths)
                raise (Error if there else NotFoundError)(text(message, "error"))
            if kind in message and (asked is None or message.get("number") == asked):
                self._answered = asked or self._answered
                return message[kind]
            if "failed" in message:
                if kind == "batch":
                    raise Error(text(message, "failed"))
                self._failure = text(message, "failed")  # after the batches that are pending
            elif "skipped" in message:
                self._skipped += 1
                _log.warning("%s", text(message, "skipped"))
            elif "batch" in message and asked is not None:
                passed += 1
                if passed > self._slots * (self._number - self._answered):
                    raise Malformed(f"more than the {self._slots} batches that there is memory for")
                if kind == "stats":
                    self._pending.append(message["batch"])
            elif asked is None or not ("stats" in message or "started" in message) or number(message, "number") >= self._number:
                raise Malformed(f"{kind} was asked for")  # else it answers what was interrupted


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
        return _arrays, None, 0
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


def _arrays(_: object, values: dict[str, Any]) -> dict[str, Any]:
    """Return NumPy arrays as they are, and texts as lists of str."""
    return {name: list(v) if isinstance(v, Ragged) and v.is_text else v for name, v in values.items()}


def _ranks(rank: Any, world_size: Any, implied: Mapping[str, Any]) -> tuple[int, int]:
    """Return rank and world size: those that are given, that a sampler implies, or that the launcher says."""
    world_size = None if world_size is None else count("world_size", world_size, 1, _MAX_WORLD)
    if isinstance(rank, str):
        if rank != "auto":
            raise ValueError(f'rank is {rank!r}; it must be an integer or "auto"')
        rank, world_size = launcher.automatic(world_size)
    for name, value in (("rank", rank), ("world_size", world_size)):
        if name in implied and value not in (None, implied[name]):
            raise ValueError(f"{name} is {value}, and that of the DistributedSampler is {implied[name]}; leave one of the two out")
    if "rank" in implied:
        rank, world_size = implied["rank"], implied["world_size"]
    if rank is None and world_size is None:
        launcher.warn_of_others()
    if rank is None and world_size not in (None, 1):
        raise ValueError(f'world_size is {world_size}: give rank, too, or rank="auto"')
    world_size = world_size or 1
    return count("rank", rank or 0, 0, world_size - 1, f", as world_size is {world_size}"), world_size


def _seed(seed: Any, implied: Mapping[str, Any]) -> int:
    """Return the seed that is given, or that of a DistributedSampler, whose default is 0."""
    if seed is None:
        return count("seed", implied.get("seed", 0), 0, samplers.MAX_SEED)
    seed = count("seed", seed, 0, samplers.MAX_SEED)
    if implied.get("seed", 0) not in (0, seed):
        raise ValueError(f"seed is {seed}, and that of the DistributedSampler is {implied['seed']}; leave one of the two out")
    return seed


def _normalizing(of: subject.Subject, transforms: Any) -> Any:
    """Return the transforms that are given, or those of a TorchDataset that normalizes."""
    if of.transforms is not None and transforms is not None:
        raise ValueError("the TorchDataset normalizes, and transforms= are given; leave normalize out, and end transforms with ToTensor and Normalize")
    return of.transforms if transforms is None else transforms


def _timeout(seconds: Any) -> float:
    timeout = float(seconds)
    if not timeout >= 0:
        raise ValueError(f"timeout is {seconds!r}; it must be 0 or more seconds")
    return timeout


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
