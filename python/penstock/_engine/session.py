"""A session with a feeding process: the handshake, requests, and the memory in which batches come.

docs/feed.md has the protocol. Batches of fields of fixed size are announced in shared memory (positions.py), others
by messages (wire.py).
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from .._base import forks
from .._base.errors import CorruptError, Error, NotFoundError
from .._base.parameters import in_python
from .._base.program import uninterrupted
from .._base.urls import redacted
from .._read.field import STORAGE, Field, from_json, shape_of
from .._read.formats import exists
from .._read.ragged import Ragged, batch_of, numbered
from . import process
from .batch import BOOL, INT64, BatchDict, BatchTuple, LoaderBatch, made
from .positions import FIXED, Positions
from .request import MAX_SLOTS, ManyRows, Request
from .shared import Layout, Lent, Rows, SharedMemory, Slot
from .sharedfile import SharedFile, transport
from .viewed import Files
from .waits import Waits
from .wire import Malformed, Wire, number, part, text

VERSION = 4

# How many seconds a feeding process has to open its datasets, and to say that a batch takes longer than timeout.
_OPENING = 1800.0
_GRACE = 10.0

# Errors that a feed of another release returns for a hello; older ones name only the part of the message.
_OTHER_RELEASE = ("json: unknown field", "which this feed does not know", "of the protocol, and this feed")

_BUSY = "another thread uses this DataLoader now, which is for one thread: make a DataLoader for each, or have one thread put batches into a queue"

_INT32 = Rows(np.dtype(np.int32))
#: Layouts of batches that are known at most: each pair of a slot and a buffer has one.
_MOST_LAYOUTS = 1024

#: The members of a state that are the position; all other members identify the batches.
POSITION = ("epoch", "step", "done")


class Session:
    """A feeding process that was asked for batches. It is for one thread, and for the process that began it.

    ``order`` is the sampler, ``fields`` are the fields by name, ``records`` the number of records, ``batches`` the number of batches of an epoch,
    ``identity`` is the part of a state that stays as it is unless weights are set, and ``stream`` the position of the batch that the feeding
    process sends next, None if that is not known.
    """

    def __init__(self, request: Request) -> None:
        self._paths, self._copies, self._convert, self._each = request.subject.paths, request.copies, request.convert, request.each
        self._batch_size, self._in_order, self._timeout = request.options["batch_size"], request.options["in_order"], request.timeout
        self.kind = request.kind
        self._pipelines = request.options["transforms"]
        self._owner, self._closed = forks.Owner(), False
        self._talking = forks.lock()
        self._pending: deque[dict[str, Any]] = deque()
        self._freed: deque[Lent] = deque()
        self._failure: Error | None = None  # why no batch comes, once the pending ones are used
        self.copied = self.viewed = self.skipped = 0
        self.waits = Waits()
        self._files = Files()
        self._layouts: dict[bytes, Layout] = {}
        self._slots_in_use = 0
        self._number = self._answered = 0  # of the last request, and of the last that was answered
        self._positions: Positions | None = None  # where batches are shown, if they do not come as messages
        # Of the position after a ticket, where later batches were yielded; None while a start is not answered.
        self._done: dict[int, str] | None = {}
        self.staged = False  # whether batches are copied to a device by a Stage, which waits for its own copies
        #: The feeding process, if it was started here.
        self.child: Any = None
        self._workers: Any = None  # of functions
        with _ArrayFile() as arrays:
            hello = {
                **request.options,
                "sampler": request.order.to_json(arrays),
                "pack": None if request.pack is None else request.pack.to_json(arrays),
            }
            try:
                with uninterrupted():
                    connection, memory = self._open(request, arrays)
                    self._wire = Wire(connection, redacted(request.socket or ", ".join(self._paths)), self.child, passes=memory is None)
                    self._finalizer = forks.finalize(self, _end, self._wire, memory, self.child, self._workers, leave=_leave)
                if self._workers is not None:
                    self._wire.meanwhile = self._workers.meanwhile
                self._greet(request, hello, arrays, memory)
            except BaseException:
                if hasattr(self, "_finalizer"):
                    self.close()
                raise

    def _open(self, request: Request, arrays: _ArrayFile) -> tuple[socket.socket, SharedMemory | None]:
        """Start the feeding process, or connect to it. Return the memory, if the feeding process does not pass it."""
        if request.socket is not None:
            return process.connect(request.socket), None
        files = {}
        if transport() == "portable":
            files["memory"] = SharedFile.create()
            if arrays.file is not None:
                files["arrays"] = arrays.file
        try:
            self.child, connection = self._begin(request, files)
        except BaseException:
            if files:
                files["memory"].close()
            raise
        return connection, SharedMemory(files["memory"], request.pinning) if files else None

    def _begin(self, request: Request, files: Mapping[str, SharedFile]) -> tuple[Any, socket.socket]:
        """Start the workers of functions, if there are any, and the feeding process."""
        if request.functions is None:
            return process.start(self._paths, request.flags, request.command, files)
        self._workers = request.functions.start()
        try:
            return process.start(self._paths, request.flags, request.command, files, self._workers.descriptors)
        except BaseException:
            self._workers.close()
            raise
        finally:
            self._workers.handed_over()

    def _greet(self, request: Request, options: dict[str, Any], arrays: _ArrayFile, memory: SharedMemory | None) -> None:
        descriptor = None if memory is not None or arrays.file is None else arrays.file.fd
        hello = {"version": VERSION, "options": options, "positions": True}
        if memory is None and request.viewing:
            hello["files"] = True
        self._wire.send({"hello": hello}, descriptor)
        with self._checking():
            message = self._welcomed()
            welcome = part(message, "welcome", dict)
            if memory is None:
                memory = SharedMemory(SharedFile.passed(self._wire.descriptor(message)), request.pinning)
                with uninterrupted():
                    self._finalizer.detach()
                    self._finalizer = forks.finalize(self, _end, self._wire, memory, self.child, self._workers, leave=_leave)
            self._memory = memory
            fields = [from_json(entry) for entry in part(welcome, "fields", list)]
            self.fields: dict[str, Field] = {f.name: f for f in fields}
            if len(self.fields) != len(fields):
                raise Malformed("two fields of one name")
            self._rows = [Rows(f.numpy, f.shape) for f in fields]
            self._built = None if self._each is None else self.kind.builder(tuple(self.fields))  # type: ignore[attr-defined]
            self._converters = [self._each(f) for f in fields if not f.ragged] if self._each is not None else []
            if None in self._converters:
                self._converters = []
            self.stage = self._staging(welcome, request.device)
            self.records: int = number(welcome, "records")
            self.batches: int = number(welcome, "batches")
            self.repeats = "repeats" in welcome and bool(part(welcome, "repeats", bool))
            self._slots: int = number(welcome, "slots", 2, MAX_SLOTS)
            if "positions" in welcome:
                if any(f.ragged for f in fields):
                    raise Malformed("positions of fields of variable length")
                areas = self._memory.mapped(number(welcome, "size"))
                self._positions = Positions(areas.bytes(), welcome["positions"], self._slots, len(fields))
            self.identity = {name: value for name, value in part(welcome, "state", dict).items() if name not in POSITION}
            warning = text(welcome, "warning") if "warning" in welcome else ""
        if warning:
            advice = "sampler=penstock.samplers.ChunkShuffle(MEMORY) reads them in another random order"
            warnings.warn(f"{self._wire.name}: {warning}: {advice}", RuntimeWarning, stacklevel=8)
        for given in request.subject.opened:
            given.check_place()
        if request.exact not in (None, self.records):
            raise Error(f"{self._wire.name} has {self.records} records, and had {request.exact} when it was opened here; open it again")
        self.stream: dict[str, Any] | None = None

    def _welcomed(self) -> Any:
        """Wait for the message that answers the hello. A feed of another release does not know every member of the hello; the
        error then says that the releases differ.
        """
        try:
            return self._receive("welcome", seconds=_OPENING)
        except Error as e:
            if not any(sign in str(e) for sign in _OTHER_RELEASE):
                raise
            from .. import __version__

            feed = process.version_of(self.child) if self.child is not None else f"the one that serves {self._wire.name}"
            raise Error(
                f"{e}. The Python package is penstock {__version__} (version {VERSION} of the protocol), and its feed is {feed}: install both from "
                "the same release, and see that PENSTOCK_FEED, command= or socket= does not name a feed of another one"
            ) from None

    def _staging(self, welcome: Any, device: Any) -> Any:
        """Return what copies batches to the device; None if nothing does."""
        if device is None:
            return None
        from .device import Normalizer, stage_of

        finish = welcome.get("finish", {})
        names = {name: (text(to, "dtype"), text(to, "layout")) for name, to in finish.items()} if isinstance(finish, dict) else {}
        for name, (dtype, layout) in names.items():
            if name not in self.fields or not self.fields[name].is_image or dtype not in STORAGE or layout not in ("CHW", "HWC"):
                raise Malformed(f"{name!r:.100} of {dtype!r:.100} and {layout!r:.100} is no field of images to be finished")
        return stage_of(device, {name: Normalizer(self.fields[name], *to) for name, to in names.items()})

    def close(self) -> None:
        """End the feeding process. Batches that are still referred to stay as they are."""
        self._closed = True
        with uninterrupted():
            self._finalizer()
        self._layouts.clear()
        self._files.clear()
        self._positions = None  # which maps the memory

    def stats(self, **more: Any) -> dict[str, Any]:
        """Return the numbers of the feeding process; more is asked for by name."""
        with self._alone(), self._checking():
            self.alive()
            stream, self.stream = self.stream, None
            number = self._ask({"stats": True, **more, **self.waits.times()})
            stats = self._receive("stats", number, self._patience())
            text(part({"stats": stats}, "stats", dict), "diagnose")
            self.stream = stream
        if self._workers is None:
            return dict(stats)
        from ..functions.costs import diagnose

        return {**stats, "diagnose": diagnose(stats, self._workers.number)}

    def explain(self, more: Sequence[tuple[str, str, str, str]] = ()) -> str:
        """Return a table of the steps of pipelines, where each runs, and its cost; ``more`` are rows of the steps that run
        after the pipelines.
        """
        from ..functions.costs import table

        device = [] if self.stage is None else [f.name for f in self.fields.values() if f.pending]
        return table(self._pipelines, self.stats(), 0 if self._workers is None else self._workers.number, device, more)

    # The position of the batches is known, by stream, between requests: each request to the feeding process
    # sets it to None until it is done. So after an interrupt (Ctrl-C) the next batch begins with a start, which has a
    # new number and names the slots in use here: messages that were on the way then are ignored.

    def start(self, state: Mapping[str, Any]) -> None:
        """Have the feeding process send the batches from a position on, and forget the batches that it sent before."""
        with self._alone():
            self._begin_stream(state)

    def _begin_stream(self, state: Mapping[str, Any]) -> None:
        self.alive()
        self.stream = None
        if self._copies is not None:
            self._copies.wait()
        used = self._memory.used()
        self._pending.clear()
        for _ in range(len(self._freed)):  # it takes back all slots but the slots that are held
            if (lent := self._freed.popleft()).number in used:
                self._freed.append(lent)
        self._slots_in_use = len(used)
        self._done = None  # what comes before the answer is nobody's
        asked = self._ask({"start": dict(state), "held": used})
        with self._checking():
            answer = part({"started": self._receive("started", asked, self._patience())}, "started", dict)
            self._failure = None  # of batches that nobody wants any more
            self._done = {}
            self._files.clear()
            if answer.get("error"):
                raise Error(text(answer, "error"))
            if self._positions is not None:
                self._positions.ticket = number(answer, "ticket") if "ticket" in answer else 0
            if "weights" in answer:
                self.identity["weights"] = part(answer, "weights", list)
            else:
                self.identity.pop("weights", None)
            self.stream = position(number(answer, "epoch"), number(answer, "step"), _done(answer))

    def _ask(self, message: dict[str, Any]) -> int:
        """Send a request, and return the number that its answer will have."""
        self._number += 1
        self._wire.send({**message, "number": self._number})
        return self._number

    def alive(self) -> None:
        """Raise Error if the DataLoader was closed, or belongs to another process."""
        if not self._owner.here:
            raise Error(
                f"this DataLoader belongs to process {self._owner.pid}, and this is process {os.getpid()}, forked from it: two processes "
                "cannot share one; make a DataLoader here"
            )
        if self._closed:
            raise Error("the DataLoader was closed; make a new one, and load_state_dict to continue where this one was")

    def next_batch(self, at: dict[str, Any]) -> tuple[LoaderBatch, dict[str, Any]]:
        """Return the batch at a position, and the position after it."""
        try:  # from before it is taken: an interrupt may come right after
            if not self._talking.acquire(blocking=False):
                raise Error(_BUSY)
            found = self._take(at)
            self.alive()  # or a signal came meanwhile, whose handler forked, and this is the child, with memory of its own
            return found
        finally:
            try:  # noqa: SIM105 - at once: a call of Python code could be interrupted before
                self._talking.release()
            except RuntimeError:  # this thread has not taken it
                pass

    def _take(self, at: dict[str, Any]) -> tuple[LoaderBatch, dict[str, Any]]:
        self.alive()
        if self.stream is not at and self.stream != at:
            self.start({**self.identity, **at})
        self.stream = None
        if 2 * len(self._freed) >= self._slots or self._slots_in_use >= self._slots:
            self._release()
        if self._positions is not None:
            try:
                return self._take_shown(self._positions, at)
            except Malformed as e:
                self.refuse(e)
        if not self._pending and self._failure is not None:
            self._fail()
        with self._checking():
            if self._pending:
                message = self._pending.popleft()
            else:
                since = time.monotonic_ns()
                message = self._receive("batch", seconds=self._patience())
                self.waits.waited(since, at)
            epoch, step = number(message, "epoch", at["epoch"], at["epoch"]), number(message, "step", 0, self.batches - 1)
            following = part(message, "next", list)
            last = step + 1 if self._in_order and "done" not in at else self.batches  # some were yielded before
            if following != [epoch + 1, 0] and not (len(following) == 2 and following[0] == epoch and at["step"] <= following[1] <= last):
                raise Malformed(f"batch {step} of epoch {epoch} is not followed by {following!r:.100}")
            stream, batch = position(following[0], following[1], _done(message)), self._batch(message)
            self.stream = stream
            return batch, stream if following[0] == epoch else position(epoch, self.batches)

    def _take_shown(self, shown: Positions, at: dict[str, Any]) -> tuple[LoaderBatch, dict[str, Any]]:
        """Return the batch at a position, and the position after it, which the shared memory has."""
        if not shown.ready():
            since = time.monotonic_ns()
            self._await(shown)
            self.waits.waited(since, at)
        slot, (epoch, step, epoch_after, step_after, count, messages, where) = shown.header()
        while self._wire.received < messages:  # that came before the batch
            self._receive("sent", seconds=self._patience())
        done = None if self._done is None else self._done.pop(shown.ticket, None)
        first, last = at["step"], self.batches
        follows = (epoch_after, step_after) == ((epoch, step + 1) if step + 1 < last else (epoch + 1, 0))
        skips = "done" in at and ((epoch_after == epoch and first <= step_after <= last) or (epoch_after, step_after) == (epoch + 1, 0))
        if epoch != at["epoch"] or not ((step == first and follows) or (first <= step < last and skips)):
            raise Malformed(f"batch {step} of epoch {epoch}, followed by {(epoch_after, step_after)}, in place of batch {first} of {at['epoch']}")
        layout: Layout | tuple[int, ...] | None = self._layouts.get(where)
        if not isinstance(layout, Layout) or layout.count != count:
            layout = self._layout(count, where, shown.numbers(where))
        message: dict[str, Any] = {"epoch": epoch, "step": step, "count": count}
        shown.ticket += 1
        batch = self._shown(slot, layout, message) if isinstance(layout, Layout) else self._of_files(slot, count, layout, message)
        self.stream = stream = position(epoch_after, step_after, done) if done else {"epoch": epoch_after, "step": step_after}
        return batch, stream if epoch_after == epoch else {"epoch": epoch, "step": last}

    def _await(self, shown: Positions) -> None:
        """Wait for the next batch."""
        deadline = None if (seconds := self._patience()) is None else time.monotonic() + seconds
        while shown.sleep():
            if self._failure is not None:
                self._fail()
            self._receive("awake", deadline=deadline)

    def _hold(self) -> bool:
        """Count a slot that the feeding process filled, and return whether its batch has to be copied: no slot would be left to fill."""
        self._slots_in_use += 1
        if self._slots_in_use > self._slots:
            raise self._too_many()
        return self._slots_in_use - len(self._freed) >= self._slots

    def _too_many(self) -> Malformed:
        return Malformed(f"more batches than the shared memory has slots for, which are {self._slots}")

    def _layout(self, count: int, where: bytes, numbers: tuple[int, ...]) -> Layout | tuple[int, ...]:
        """Return the layout of a batch that is at such a place, or the numbers of this if it has fields in files."""
        size, indices, mask = numbers[:FIXED]
        if not 0 <= count <= self._batch_size or not 0 <= size < 1 << 62:
            raise Malformed(f"a batch of {count} records in {size} bytes")
        if not (0 <= indices <= size - 8 * count and 0 <= mask <= size - count):
            raise Malformed(f"indices at byte {indices} and a mask at byte {mask} of {size} of the shared memory")
        if any(numbers[FIXED + 1 :: 2]):
            return numbers
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        layout = self._layouts[where] = Layout(self._memory.mapped(size), count, list(zip(numbers[FIXED::2], self._rows)), indices, mask)
        return layout

    def _shown(self, number: int, layout: Layout, message: dict[str, Any]) -> LoaderBatch:
        copy = self._hold()
        slot = Slot.of(layout, number, self._freed)
        message["indices"], message["mask"] = layout.indices, layout.mask  # made arrays when they are asked for, in a forked child perhaps
        if copy or layout.places is None or self._built is None:
            return self._made(slot, layout, message, copy)
        arrays = [np.ndarray(shape, dtype, slot, at) for shape, dtype, at in layout.places]
        if self._converters:
            arrays = [convert(a) for a, convert in zip(arrays, self._converters)]
        batch: BatchDict | BatchTuple = self._built(arrays)
        batch._slot, batch._message = slot, message
        return batch

    def _made(self, slot: Slot, layout: Layout, message: dict[str, Any], copy: bool) -> LoaderBatch:
        """Return a batch in a slot, or a copy of it."""
        count = layout.count
        values = {name: slot.array(at, rows, count) for name, rows, at in zip(self.fields, self._rows, layout.offsets)}
        if copy:
            self.copied += 1
            values = {name: v.copy() for name, v in values.items()}
            message["indices"] = slot.array(message["indices"], INT64, count).copy()
            message["mask"] = slot.array(message["mask"], BOOL, count).copy()
        batch: LoaderBatch = made(self.kind, self._convert(self.fields, values), message, None if copy else slot)
        return batch

    def _of_files(self, number: int, count: int, numbers: tuple[int, ...], message: dict[str, Any]) -> LoaderBatch:
        """Return a batch with fields that are bytes of files. It keeps its slot only if it has other fields."""
        copy = self._hold() or all(numbers[FIXED + 1 :: 2])
        size, indices, mask = numbers[:FIXED]
        lent = Slot(self._memory.mapped(size), number, self._freed, indices)
        values, copied = {}, self._files.copied
        for i, (name, rows) in enumerate(zip(self.fields, self._rows)):
            at, file = numbers[FIXED + 2 * i : FIXED + 2 * i + 2]
            if file:
                values[name] = self._files.array(i, file, at, rows, count)
            else:
                values[name] = lent.array(at, rows, count).copy() if copy else lent.array(at, rows, count)
        message["indices"], message["mask"] = lent.array(indices, INT64, count).copy(), lent.array(mask, BOOL, count).copy()
        if self._files.copied > copied:
            self.copied += 1
        else:
            self.viewed += 1
        batch: LoaderBatch = made(self.kind, self._convert(self.fields, values), message, None)
        return batch

    def _batch(self, message: dict[str, Any]) -> LoaderBatch:
        copy = self._hold()
        count = number(message, "count", 0, self._batch_size)
        places = part(message, "fields", list)
        if len(places) != len(self._rows):
            raise Malformed(f"{len(places)} arrays for {len(self._rows)} fields")
        areas, at = self._memory.mapped(number(message, "size")), number(message, "indices")
        slot = Slot(areas, number(message, "slot", 0, self._slots - 1), self._freed, at)
        numbers: dict[str, Any] = message
        indices = slot.array(at, INT64, count)
        mask = slot.array(number(message, "mask"), BOOL, count)
        values = {f.name: _values(slot, f, r, count, place) for f, r, place in zip(self.fields.values(), self._rows, places)}
        for name, v in values.items():
            if isinstance(v, Ragged) and v.is_images:
                numbered(v, name, indices.tolist())
        if "cu_seqlens" in message:
            lengths = message["cu_seqlens"]
            longest = count * min((f.shape[0] for f in self.fields.values() if f.shape), default=0)
            values["cu_seqlens"] = _ends(slot.array(number(lengths, "at"), _INT32, number(lengths, "rows")), longest)
        if copy:
            self.copied += 1
            values = {name: v.copy() for name, v in values.items()}
            numbers = {"epoch": message["epoch"], "step": message["step"], "indices": indices.copy(), "mask": mask.copy()}
        batch: LoaderBatch = made(self.kind, self._convert(self.fields, values), numbers, None if copy else slot)
        return batch

    def _fail(self) -> None:
        """Raise why the next batch does not come. A new loop may begin after that."""
        failure, self._failure, self.stream = self._failure, None, None
        if failure is not None:
            raise failure

    def _failed(self, message: Any, name: str = "failed") -> Error:
        """Return why no batch comes."""
        if self._workers is None:
            return Error(in_python(text(message, name)))
        from ..functions.running import failure

        return failure(in_python(text(message, name)), message.get("raised"), self._workers)

    def has_next(self) -> bool:
        """Return whether a message of the feeding process has arrived."""
        if self._positions is not None:
            return self._positions.ready() or self._failure is not None
        return len(self._pending) > 0 or self._wire.ready()

    def give_back(self) -> None:
        with self._alone():
            self._release()

    def _release(self) -> None:
        stream, self.stream = self.stream, None
        slots = [self._freed.popleft().number for _ in range(len(self._freed))]
        if self._copies is not None:  # a Stage has waited for its own
            staged, slots = (slots, []) if self.staged else ([], slots)
            slots = staged + self._copies.settled(slots, wait=not staged and self._slots_in_use >= self._slots)
        if slots:
            self._slots_in_use -= len(slots)
            if self._positions is None:
                self._wire.send({"release": slots})
            elif self._positions.give_back(slots):
                self._wire.send({"awake": True})
        self.stream = stream

    def _patience(self) -> float | None:
        """Return the seconds to wait for an answer; None is without limit."""
        return self._timeout + _GRACE if self._timeout > 0 else None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise Error if another thread waits for the feeding process: each would take the answers to the other."""
        try:  # from before it is taken: an interrupt may come right after
            if not self._talking.acquire(blocking=False):
                raise Error(_BUSY)
            yield
        finally:
            try:  # noqa: SIM105 - at once: a call of Python code could be interrupted before
                self._talking.release()
            except RuntimeError:  # this thread has not taken it
                pass

    @contextmanager
    def _checking(self) -> Iterator[None]:
        """Close the DataLoader, and say why, if a message is not a message that a feeding process sends."""
        try:
            yield
        except Malformed as e:
            self.refuse(e)

    def refuse(self, e: Malformed) -> NoReturn:
        self.close()
        raise Error(f"{self._wire.name}: unexpected message from feed: {e}") from None

    def _receive(self, kind: str, asked: int | None = None, seconds: float | None = None, deadline: float | None = None) -> Any:
        """Wait for a message of a kind: for the answer to a request, if the request has a number. Return that part of the
        message; of a welcome, return the whole message.

        "awake" and "sent" are any message.
        Batches that come before an answer are for later, but batches that come before a start are dropped.
        """
        deadline = deadline if seconds is None else time.monotonic() + seconds
        passed = 0
        while True:
            message = self._wire.receive(deadline)
            if "error" in message:
                error = self._failed(message, "error") if all(map(exists, self._paths)) else NotFoundError(text(message, "error"))
                if "rows" in message:
                    error = ManyRows(str(error), part(message, "rows", list))
                self.close()
                raise error
            if kind in message and (asked is None or message.get("number") == asked):
                self._answered = asked or self._answered
                return message[kind] if kind != "welcome" else message
            if "failed" in message:
                if kind == "batch":
                    raise self._failed(message)
                self._failure = self._failed(message)  # after the batches that are pending
            elif "skipped" in message:
                self.skipped += 1
                import logging

                logging.getLogger("penstock").warning("%s", text(message, "skipped"))
            elif "awake" in message and self._positions is not None:
                pass  # the batch came before it
            elif "file" in message and self._positions is not None:
                self._files.add(number(message, "number", 1), text(message, "file"), self._wire.descriptor(message))
            elif "done" in message and self._positions is not None:
                ticket, done = number(message, "number") if "number" in message else 0, text(message, "done")
                if self._done is not None:
                    self._done[ticket] = done
                    if len(self._done) > 2 * self._slots:
                        raise self._too_many()
            elif "batch" in message and asked is not None:
                passed += 1
                if passed > self._slots * (self._number - self._answered):
                    raise self._too_many()
                if kind == "stats":
                    self._pending.append(message["batch"])
            elif asked is None or not ("stats" in message or "started" in message) or number(message, "number") >= self._number:
                raise Malformed(f"{kind} was asked for")  # else it answers what was interrupted
            if kind in ("awake", "sent"):
                return message


def _values(slot: Slot, f: Field, rows: Rows, count: int, place: Any) -> np.ndarray | Ragged:
    at = number(place, "at")
    if "shape" in place:  # which this batch has of its own
        try:
            rows = Rows(f.numpy, shape_of(place["shape"], f.name))
        except CorruptError as e:
            raise Malformed(str(e)) from None
    if not f.ragged:
        return slot.array(at, rows, count)
    total = number(place, "rows") if "rows" in place else 0
    return batch_of(f, slot.array(at, rows, total), _ends(slot.array(number(place, "offsets"), INT64, count + 1), total))


def _ends(offsets: np.ndarray, last: int) -> np.ndarray:
    """Return offsets of rows, from 0 to last at most, if they are that."""
    if not len(offsets) or offsets[0] or offsets[-1] > last or (offsets[1:] < offsets[:-1]).any():
        raise Malformed(f"offsets that do not go from 0 to {last}")
    return offsets


def _done(message: Any) -> str | None:
    return part(message, "done", str) if "done" in message else None


def position(epoch: int, step: int, done: str | None = None) -> dict[str, Any]:
    return {"epoch": epoch, "step": step, "done": done} if done else {"epoch": epoch, "step": step}


class _ArrayFile:
    """The arrays that go to the feeding process, in one file."""

    def __init__(self) -> None:
        #: The file, if there are arrays.
        self.file: SharedFile | None = None

    def add(self, values: np.ndarray) -> dict[str, int]:
        if self.file is None:
            self.file = SharedFile.create()
        at = self.file.size
        self.file.append(values.reshape(-1).view(np.uint8).data)
        return {"at": at, "count": values.size}

    def __enter__(self) -> _ArrayFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()


def _leave(wire: Wire, memory: SharedMemory | None, child: Any, workers: Any) -> None:
    """Close the descriptors of a DataLoader in a fork of its process."""
    wire.leave()
    if memory is not None:
        memory.close()
    if child is not None:
        child.returncode = 0  # else Popen warns that it is still running when it is collected


@uninterrupted()
def _end(wire: Wire, memory: SharedMemory | None, child: Any, workers: Any) -> None:
    """Give back what a DataLoader has. A feeding process ends when its client has gone."""
    wire.close()
    if memory is not None:
        memory.close()
    if workers is not None:
        workers.hang_up()
    if child is not None:
        process.wait(child)
    if workers is not None:
        workers.close()
