"""Batches from a loader in another process: the client of the command feed.

docs/feed.md has the protocol.
"""

from __future__ import annotations

import gc
import operator
import os
import re
import socket
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .batch import Batch
from .errors import Error
from .field import Field, chosen, from_json
from .ragged import Ragged
from .shared import Rows, SharedMemory, Slot
from .wire import Wire

VERSION = 1

# Limits of options, which are those of package loader.
_MAX_BATCH = 1 << 30
_MAX_WORLD = 1 << 20
_MAX_SEED = (1 << 64) - 1
_MAX_EPOCHS = (1 << 63) - 1
_MAX_WORKERS = 1 << 12
_MAX_AHEAD = 256

_SIZE = re.compile(r"\s*[1-9][0-9]*(\.[0-9]+)?\s*([KMGTP]i?)?B?\s*", re.IGNORECASE)

_INT64 = Rows(np.dtype(np.int64))
_BOOL = Rows(np.dtype(np.bool_))


class FedBatch(Batch):
    """A batch in memory that is shared with the feeder.

    ``batch["images"]`` is an array over that memory, which may be written to. It is valid for
    as long as something refers to it: the batch, an array or a tensor over it. Then the feeder
    fills the memory anew. ``fields`` describe the arrays; ``epoch`` and ``step`` number the batch.
    """

    __slots__ = ("_message", "_slot", "epoch", "fields", "step")

    def __init__(self, slot: Slot, fields: Mapping[str, Field], rows: Iterable[Rows], message: Mapping[str, Any]) -> None:
        count = message["count"]
        places = zip(fields.values(), rows, message["fields"])
        self.fields = fields
        super().__init__({f.name: _values(slot, f, r, count, place) for f, r, place in places}, count)
        self.epoch: int = message["epoch"]
        self.step: int = message["step"]
        self._slot, self._message = slot, message

    @property
    def indices(self) -> np.ndarray:
        """The numbers of the records in the dataset, or in its split."""
        return self._slot.array(self._message["indices"], _INT64, len(self))

    @property
    def valid(self) -> np.ndarray:
        """False for records that only fill up the last batch of an epoch."""
        return self._slot.array(self._message["valid"], _BOOL, len(self))


def _values(slot: Slot, f: Field, rows: Rows, count: int, place: Mapping[str, int]) -> np.ndarray | Ragged:
    if not f.ragged:
        return slot.array(place["at"], rows, count)
    values = slot.array(place["at"], rows, place.get("rows", 0))
    return Ragged(values, slot.array(place["offsets"], _INT64, count + 1), f.content)


class Feeder:
    """An iterable of batches that the Go loader makes in a process of its own.

    ::

        with penstock.Feeder("data/train", batch_size=256, shuffle=True, normalize=True, flip=True) as feeder:
            for epoch in range(feeder.epoch, 10):
                for batch in feeder:
                    train_step(batch["images"], batch["labels"])

    Each loop over it is an epoch, or what is left of one; ``len`` is the batches of a whole
    one. At its end the first batches of the next are made already. A loop that is left early
    is gone on with by the next.

    ``path`` is a dataset, for which ``command`` is started, and ends with this object or this
    process, however that ends; or, with ``socket``, None: that is the path where a feed listens.

    ``epochs`` is the number of the first epoch that is not served; without it there is no end.
    ``normalize`` makes float32 of images that the dataset has a normalisation for, and ``flip``
    mirrors half of them. ``ahead`` is how many batches this process may have at a time, the
    ones that are ready for it included, from 2 on. ``state`` is what ``state()`` returned, of a
    run with the same options but ``workers``, ``ahead`` and ``epochs``, and ``rank`` and
    ``world`` where ``batch_size * world`` is the same.

    ``path`` may be a URL (``s3://bucket/key``): what is fetched stays in the folder ``cache_dir``,
    by default the user's cache folder, in which all datasets together take at most ``cache_size``
    bytes, as a number or as "500GiB", by default nine tenths of what is free.

    A Feeder is for one thread, and for the process that made it: in a child that was forked
    later it raises Error, and what the child keeps of a batch must be a copy. It needs Linux.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        batch_size: int = 1,
        *,
        fields: Iterable[str] | None = None,
        split: str | None = None,
        shuffle: bool = False,
        seed: int = 0,
        epochs: int | None = None,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        normalize: bool = False,
        flip: bool = False,
        ahead: int = 4,
        workers: int = 0,
        state: Mapping[str, Any] | None = None,
        socket: str | os.PathLike[str] | None = None,
        command: str | os.PathLike[str] = "feed",
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: int | str | None = None,
    ) -> None:
        if (path is None) == (socket is None):
            raise ValueError("a Feeder needs either the path of a dataset or the socket of a feed")
        self._pending: deque[dict[str, Any]] = deque()
        self._freed: deque[int] = deque()
        self._held = 0
        self._process = os.getpid()
        world = _count("world", world, 1, _MAX_WORLD)
        options = {
            "batch_size": _count("batch_size", batch_size, 1, _MAX_BATCH), "seed": _count("seed", seed, 0, _MAX_SEED),
            "epochs": 0 if epochs is None else _count("epochs", epochs, 1, _MAX_EPOCHS, "; None means no end"),
            "rank": _count("rank", rank, 0, world - 1, f", as world is {world}"), "world": world,
            "ahead": _count("ahead", ahead, 2, _MAX_AHEAD), "workers": _count("workers", workers, 0, _MAX_WORKERS),
            "fields": chosen(fields), "split": split or "", "shuffle": _flag("shuffle", shuffle),
            "drop_last": _flag("drop_last", drop_last), "normalize": _flag("normalize", normalize),
            "flip": _flag("flip", flip), "state": _state(state),
        }  # fmt: skip
        self._end = epochs
        where = os.fspath(path if socket is None else socket)  # type: ignore[arg-type]
        self._child: subprocess.Popen[bytes] | None
        cache = _cache(cache_dir, cache_size)
        if cache and path is None:
            raise ValueError("cache_dir and cache_size belong to the feed that listens: feed URL --socket PATH --cache-dir FOLDER --cache-size BYTES")
        self._child, connection = _connect(where) if path is None else _start(where, os.fspath(command), cache)
        self._wire = Wire(connection, where, self._child)
        self._finalizer = weakref.finalize(self, _end, self._wire, None, self._child)
        try:
            self._greet(options)
        except BaseException:
            self.close()
            raise

    def _greet(self, options: dict[str, Any]) -> None:
        self._wire.send({"hello": {"version": VERSION, "options": options}})
        welcome = self._receive("welcome")
        self._memory = SharedMemory(self._wire.take_descriptor())
        self._finalizer.detach()
        self._finalizer = weakref.finalize(self, _end, self._wire, self._memory, self._child)
        #: The fields by name, as batches have them.
        self.fields: dict[str, Field] = {f.name: f for f in map(from_json, welcome["fields"])}
        self._rows = [Rows(f.storage, f.shape) for f in self.fields.values()]
        #: Records of the dataset, or of its split.
        self.records: int = welcome["records"]
        self._batches: int = welcome["batches"]
        self._slots: int = welcome["slots"]
        self._state: dict[str, Any] = welcome["state"]

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch is of."""
        epoch: int = self._state["epoch"]
        return epoch

    @property
    def pid(self) -> int | None:
        """The process of a feeder that this one started."""
        return None if self._child is None else self._child.pid

    def __repr__(self) -> str:
        return f"<penstock feeder of {self.records} records: batch {self._state['step']} of {self._batches} in epoch {self.epoch}>"

    def __len__(self) -> int:
        return self._batches

    def __getitem__(self, key: object) -> FedBatch:
        raise TypeError("a Feeder makes whole batches in its own order, so it has no items and needs no DataLoader: for batch in feeder: ...")

    def __iter__(self) -> Iterator[FedBatch]:
        epoch = self.epoch
        while self.epoch == epoch:
            batch = self._next()
            if batch is None:
                return
            yield batch
            del batch  # so that the caller alone keeps it

    def state(self) -> dict[str, Any]:
        """Return where the run is: after the batch that was handed out last. It is JSON."""
        return dict(self._state)

    def stats(self) -> dict[str, Any]:
        """Return what the loader did, and a sentence about it, ``diagnose``. Times are nanoseconds."""
        self._check_usable()
        self._wire.send({"stats": True})
        stats: dict[str, Any] = self._receive("stats")
        return stats

    def close(self) -> None:
        """End the feeder. Batches that are still referred to stay as they are."""
        self._finalizer()

    def __enter__(self) -> Feeder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> None:
        raise TypeError("a Feeder cannot be sent to another process: make one there, with its rank or state()")

    def _next(self) -> FedBatch | None:
        if self._end is not None and self.epoch >= self._end:
            return None
        self._check_usable()
        # Half of the slots at a time: the feeder has the others meanwhile.
        if self._held == self._slots or 2 * len(self._freed) >= self._slots:
            self._give_back()
        if self._held == self._slots:
            gc.collect()  # batches may be in cycles
            self._give_back()
            if self._held == self._slots:
                raise Error(
                    f"all {self._slots} batches of the feeder are still referred to, by variables, arrays or tensors; "
                    "drop or copy some, or raise ahead"
                )
        message = self._pending.popleft() if self._pending else self._receive("batch")
        self._held += 1
        slot = Slot(self._memory.mapped(message["size"]), message["slot"], self._freed)
        self._state["epoch"], self._state["step"] = message["next"]
        self._state.pop("done", None)
        return FedBatch(slot, self.fields, self._rows, message)

    def _check_usable(self) -> None:
        """Raise Error if the feeder was closed, or belongs to another process."""
        if os.getpid() != self._process:
            raise Error(
                f"this Feeder belongs to process {self._process}, and this is process {os.getpid()}, forked from it: two processes cannot "
                "share one; make a Feeder here, with its own rank or with state="
            )
        if not self._finalizer.alive:
            raise Error("the feeder was closed; make a new one, with state= to continue where this one was")

    def _give_back(self) -> None:
        slots = [self._freed.popleft() for _ in range(len(self._freed))]
        if slots:
            self._held -= len(slots)
            self._wire.send({"release": slots})

    def _receive(self, kind: str) -> Any:
        """Wait for a message of a kind. Batches that come before it are for later."""
        while True:
            message = self._wire.receive()
            if "error" in message:
                raise Error(message["error"])
            if kind in message:
                return message[kind]
            if "batch" in message:
                self._pending.append(message["batch"])


def _count(name: str, value: Any, least: int, most: int, note: str = "") -> int:
    """Return an option that is an integer in [least, most], of any integer type."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        n: int = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer") from None
    if not least <= n <= most:
        raise ValueError(f"{name} is {n}; it must be from {least} to {most}{note}")
    return n


def _flag(name: str, value: Any) -> bool:
    """Return an option that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def _state(state: Any) -> dict[str, Any] | None:
    """Return the option state, which is what Feeder.state() returned."""
    if state is None:
        return None
    if not isinstance(state, Mapping):
        raise TypeError(f"state is {state!r}; it must be the dict that state() returned, or None")
    missing = [name for name in ("epoch", "step") if name not in state]
    if missing:
        raise ValueError(f"state has no {' and no '.join(map(repr, missing))}; it must be the dict that state() returned")
    return dict(state)


def _cache(folder: str | os.PathLike[str] | None, size: int | str | None) -> list[str]:
    """Return the flags of feed for where, and how much of, what it fetched is kept."""
    flags = [] if folder is None else ["--cache-dir", os.fspath(folder)]
    if size is None:
        return flags
    if isinstance(size, str):
        if not _SIZE.fullmatch(size):
            raise ValueError(f'cache_size is {size!r}; it must be bytes, as a number or like "500GiB"')
        return [*flags, "--cache-size", size]
    return [*flags, "--cache-size", str(_count("cache_size", size, 1, (1 << 63) - 1))]


def _start(path: str, command: str, flags: list[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a feeder for this process alone. It does not get the signals of a terminal: they
    are for the trainer, which may want a last batch."""
    if sys.platform != "linux":
        raise Error("a Feeder needs Linux; here, use penstock.open or penstock.torch.TorchDataset")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = str(theirs.fileno())
    try:
        child = subprocess.Popen(
            [command, "--fd", fd, *flags, "--", path], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
        )
    except FileNotFoundError:
        ours.close()
        raise Error(f"there is no command {command!r}: build it (make build), and put it in PATH or name it with command=") from None
    except OSError as e:
        ours.close()
        raise Error(f"{command}: it cannot be started: {e.strerror}; command= names the program feed") from None
    finally:
        theirs.close()
    return child, ours


def _connect(path: str) -> tuple[None, socket.socket]:
    """Connect to a feeder that listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError as e:
        connection.close()
        raise Error(f"{path}: no feed serves there: {e.strerror}; start one: feed DATASET --socket {path}") from None
    return None, connection


def _end(wire: Wire, memory: SharedMemory | None, child: subprocess.Popen[bytes] | None) -> None:
    """Give back what a Feeder has. A feeder ends when its client has gone."""
    wire.close()
    if memory is not None:
        memory.close()
    if child is not None:
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
