"""The work of a worker: it turns tasks from a feeding process into records, in memory that both map. docs/feed.md has the messages."""

from __future__ import annotations

import gc
import json
import mmap
import os
import socket
import struct
import sys
import traceback
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from .._base.forks import leaving
from .._base.values import element_type
from .._code.channel import Channel
from .._code.randomness import Seeds, seed_random
from .._engine.sharedfile import SharedFile
from .._read.field import STORAGE, numpy_type
from .call import ROWS, Call, Value, WrongOutput

VERSION = 1

_LENGTH = struct.Struct("<I")
_TASK = struct.Struct("<BxHIQQ")
_RECORD = struct.Struct("<QQqqQII")
_DONE = struct.Struct("<BxxxIQQ")
_TASK_KIND, _DONE_KIND = 1, 2
_TEXT = "utf-8"
_MOST_TEXT = 1 << 16  # of an exception and its traceback
_SMALL = 1 << 13  # bytes of a record that are copied in less time than generators are seeded


class Worker:
    """Calls functions for a feeding process at the other end of a socket.

    ``raised`` is the exception that was reported last.
    """

    def __init__(self, connection: socket.socket, memory: SharedFile, calls: Sequence[Call]) -> None:
        self._channel, self._calls = Channel(connection, _LENGTH), calls
        leaving(self, connection.close)
        self._memory, self._random = _File(memory), Seeds()
        self._makers: dict[int, _Maker] = {}
        self._number = 0
        self._at: Any = None
        self.raised: BaseException | None = None

    def begin(self, error: BaseException | None = None) -> None:
        """Answer the first message; with an error, that there will be no other."""
        hello = json.loads(self._next())["hello"]
        if hello["version"] != VERSION:
            error = RuntimeError(f"feed speaks version {hello['version']} to functions, and this is {VERSION}; install both from the same release")
        self._number, self._at = hello["worker"], np.ndarray(1, np.uint64, self._memory.reach(hello["at"], 8), hello["at"])
        if error is not None:
            self._report(error, 0)
        else:
            self._send({"ready": {"process": os.getpid()}})

    @property
    def ready(self) -> bool:
        """Whether step has a message that need not be waited for."""
        return self._channel.complete

    def step(self) -> None:
        """Wait for a message, and do what it asks for. Raise ChannelClosed at the end."""
        message = self._next()
        if message[0] == _TASK_KIND:
            self._task(message)
            return
        asked = json.loads(message)
        if "setup" in asked:
            setup = asked["setup"]
            self._makers[setup["function"]] = _Maker(self._calls[setup["function"]], setup, self._memory, self._random)
        elif "probe" in asked:
            self._probe(asked["probe"])

    def _probe(self, probe: dict[str, Any]) -> None:
        self._at[0] = probe["index"] + 1
        try:
            maker = _Maker(self._calls[probe["function"]], {"in": probe["in"], "out": None}, self._memory, self._random)
            made = maker.probe(probe["at"], probe["shape"] or (), probe["key"])
        except Exception as e:
            self._report(e, 0)
        else:
            self._send({"made": made})
        finally:
            self._at[0] = 0

    def _task(self, message: bytes) -> None:
        began = perf_counter_ns()
        _, function, count, _, _ = _TASK.unpack_from(message)
        make, at, inside, done = self._makers[function].make, self._at, 0, 0
        try:
            for index, key, source, target, _, first, second in _RECORD.iter_unpack(memoryview(message)[_TASK.size :]):
                at[0] = index + 1
                if not done:
                    self._random.all(key)
                inside += make(key, source, target, first, second, done == 0)
                done += 1
        except Exception as e:
            self._report(e, done)
        else:
            self._channel.send(_DONE.pack(_DONE_KIND, count, inside, perf_counter_ns() - began))
        finally:
            at[0] = 0

    def _report(self, e: BaseException, done: int) -> None:
        """Say what was raised. Frames of this module are left out."""
        self.raised = e
        kind = type(e)
        frames = traceback.TracebackException.from_exception(e)
        own = os.path.dirname(__file__)
        while frames.stack and frames.stack[0].filename.startswith(own):
            del frames.stack[0]
        text = "".join(frames.format(chain=True)).rstrip()
        try:
            said = str(e)
        except Exception:
            said = "(its text cannot be had)"
        if isinstance(e, WrongOutput):
            text = ""
        self._send({"raised": {"done": done, "type": _named(kind), "text": said[:_MOST_TEXT], "traceback": text[-_MOST_TEXT:]}})

    def _send(self, message: dict[str, Any]) -> None:
        self._channel.send(json.dumps(message).encode("utf-8", "backslashreplace"))

    def _next(self) -> bytes:
        """Wait for a message, and return it."""
        message = self._channel.receive()
        assert message is not None
        return message


def _named(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class _File:
    """A file that grows, mapped as far as it is needed. Earlier mappings stay valid for as long as arrays refer to them."""

    __slots__ = ("_file", "_map", "_size")

    def __init__(self, file: SharedFile) -> None:
        self._file, self._size = file, 0
        self._map: Any = None

    def reach(self, at: int, n: int) -> mmap.mmap:
        """Return a mapping of the file that has n bytes at an offset."""
        if at + n > self._size:
            self._size = self._file.size
            self._map = self._file.map(0, self._size)
        mapped: mmap.mmap = self._map
        return mapped


class _Maker:
    """Makes records by one Call."""

    def __init__(self, call: Call, setup: dict[str, Any], memory: _File, seeds: Seeds) -> None:
        given, made = setup["in"], setup["out"]
        self._call, self._memory, self._random = call, memory, seeds
        self._dtype, self._shape = numpy_type(given["dtype"]), tuple(given["shape"] or ())
        self._open = [i for i, n in enumerate(self._shape) if n < 0]
        self._fixed = 0 if self._open else _bytes(self._dtype, self._shape)
        self._layout, self._text = given.get("layout", ""), given.get("content", "") == _TEXT
        self._copies = setup.get("copies", False)
        only = call.steps[0]
        self._plain = only if len(call.steps) == 1 and only.takes == "array" and only.layout in (None, self._layout) and not self._text else None
        if made is not None:
            self._out_dtype, self._out_shape = numpy_type(made["dtype"]), tuple(made["shape"] or ())
            self._out_bytes = _bytes(self._out_dtype, self._out_shape)
            self._made, self._rows = f"{made['dtype']} {self._out_shape}", (made["dtype"], (None, *self._out_shape[1:]))

    def make(self, key: int, source: int, target: int, first: int, second: int, seeded: bool) -> int:
        """Make a record, and return how many nanoseconds its functions took. ``seeded`` says that all generators are seeded for it."""
        shape, size = self._shape, self._fixed
        if self._open:
            shape = self._filled((first, second))
            size = _bytes(self._dtype, shape)
        x = np.ndarray(shape, self._dtype, self._memory.reach(source, size), source)
        if self._copies:
            x = x.copy()
        began = perf_counter_ns()
        result = self._seeded_result(x, key, size, seeded)
        took = perf_counter_ns() - began
        if result.dtype != self._out_dtype or result.shape != self._out_shape:
            rows = f"; or say that it returns any number of rows: penstock.functions.Function(function, output={self._rows})"
            raise WrongOutput(
                f"it has returned {result.dtype} {result.shape} for this record, and {self._made} for the first; have it return one type and "
                f"shape for all records: resize, crop or pad before it, or in it{rows * (result.dtype == self._out_dtype and result.ndim > 0)}"
            )
        out = np.ndarray(self._out_shape, self._out_dtype, self._memory.reach(target, self._out_bytes), target)
        out[...] = result
        del result
        if not self._copies and sys.getrefcount(x) > _OWN and self._is_kept(x):
            raise WrongOutput(
                "it keeps a reference to its input, whose memory the next record gets; have it keep a copy: numpy.copy(x), or tensor.clone()"
            )
        return took

    def _seeded_result(self, x: np.ndarray, key: int, size: int, seeded: bool) -> np.ndarray:
        """Return the result for a record, with its random numbers."""
        seeds = self._random
        if seeded or size > _SMALL or seeds.certain:
            if not seeded:
                seeds.all(key)
            result = self._result(x, key)
            seeds.drawn()
            return result
        seeds.next(key)
        original = x.copy()  # a function may change its input
        try:
            result = self._result(x, key)
        except Exception:
            if not seeds.drawn():
                raise
        else:
            if not seeds.drawn():
                return result
            del result
        x[...] = original
        seeds.all(key)
        return self._result(x, key)

    def _result(self, x: np.ndarray, key: int) -> np.ndarray:
        self._call.seed(key)
        if self._plain is None:
            return self._through(x).array()
        result = self._plain.call(x)
        return result if type(result) is np.ndarray and result.dtype == self._out_dtype else Value(result, "").array()

    def probe(self, at: int, shape: Sequence[int], key: int) -> dict[str, Any]:
        """Return the type, shape and layout of the functions' result for one record."""
        size = _bytes(self._dtype, shape)
        x = np.ndarray(tuple(shape), self._dtype, self._memory.reach(at, size), at)
        seed_random(key)
        self._call.seed(key)
        value = self._through(x)
        if isinstance(value.value, ROWS) or (not value.layout and 0 in np.shape(value.value)[:1]):
            return {"dtype": "uint8", "shape": [1], "rows": True}
        layout, result = value.layout, value.array()
        dtype = element_type(result.dtype)
        if not dtype:
            raise WrongOutput(
                f"it returns {type(value.value).__name__} of {result.dtype}, which batches cannot have; have it return an array, a tensor or an "
                f"image of {', '.join(STORAGE)}"
            )
        made = {"dtype": dtype, "shape": list(result.shape), "layout": layout, "keeps": False}
        if 0 in result.shape:
            raise WrongOutput(f"it returns {dtype} {result.shape}, which has no elements; records of a batch have one shape, with elements")
        del value, result
        made["keeps"] = self._is_kept(x) or self._copies
        return made

    def _through(self, x: np.ndarray) -> Value:
        return self._call.through([Value(bytes(x).decode() if self._text else x, self._layout)])[0]

    def _filled(self, axes: tuple[int, int]) -> tuple[int, ...]:
        shape = list(self._shape)
        for i, n in zip(self._open, axes):
            shape[i] = n
        return tuple(shape)

    def _is_kept(self, x: np.ndarray) -> bool:
        """Return whether anything but the caller refers to an input, whose memory is used again."""
        if sys.getrefcount(x) <= _OWN_IN_CALL:
            return False
        gc.collect()
        if sys.getrefcount(x) > _OWN_IN_CALL:
            return True
        self._copies = True  # cycles that hold inputs for a while are likely to come again
        return False


def _bytes(dtype: np.dtype, shape: Sequence[int]) -> int:
    n = dtype.itemsize
    for axis in shape:
        n *= axis
    return n


def _references() -> tuple[int, int]:
    """Return how many references an array has if only one function knows it, and in a method that this function calls with the
    array.
    """

    class Counter:
        def count(self, x: np.ndarray) -> int:
            return sys.getrefcount(x)

    x = np.ndarray(0)
    return sys.getrefcount(x), Counter().count(x)


_OWN, _OWN_IN_CALL = _references()
