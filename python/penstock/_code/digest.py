"""Digests of Python values that are the same in every process."""

from __future__ import annotations

import enum
import hashlib
import os
import struct
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

#: Objects within one object that count, and how deep: a graph of objects has more paths than anybody waits for.
_MOST, _DEEPEST = 10_000, 64


def of(value: Any) -> str:
    """Return a digest of a value that no process, hash seed or address changes.

    Numbers, text, bytes, paths, arrays, tensors, and lists, tuples, dicts and sets of these count with all
    they have; an object counts with its class and with the state that pickle would keep. An object that cannot be pickled
    counts with its class alone.
    """
    d = Digest()
    d.add(value)
    return d.hash.hexdigest()


class Digest:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._within: list[int] = []  # the objects that the value is in, by their addresses
        self._seen = 0  # objects within the outermost of them

    def add(self, value: Any) -> None:
        kind, update = type(value), self.hash.update
        if kind is str:
            self._bytes(b"s", value.encode("utf-8", "surrogatepass"))
        elif kind in (bytes, bytearray):
            self._bytes(b"b", value)
        elif value is None or kind in (bool, int):
            update(b"i%r;" % (value,))
        elif kind is float:
            update(b"f" + struct.pack("<d", value))
        elif isinstance(value, os.PathLike):
            self._bytes(b"p", os.fsencode(value))
        elif isinstance(value, (np.ndarray, np.generic)):
            self._array(np.asarray(value))
        elif hasattr(value, "detach") and hasattr(value, "numpy"):
            self._array(np.asarray(value.detach().cpu().numpy()))
        elif id(value) in self._within or len(self._within) == _DEEPEST:
            update(b"...")
        else:
            self._seen = self._seen + 1 if len(self._within) > 1 else 0
            self._within.append(id(value))
            try:
                self._parts(value)
            finally:
                self._within.pop()

    def _bytes(self, kind: bytes, data: bytes) -> None:
        self.hash.update(b"%s%d:" % (kind, len(data)) + data)

    def _array(self, a: np.ndarray) -> None:
        if a.dtype.hasobject:
            self.add(a.tolist())
            return
        self.hash.update(f"a{a.dtype.descr!r}{a.shape!r}:".encode())
        if a.size and a.dtype.itemsize:
            self.hash.update(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data)

    def _parts(self, value: Any) -> None:
        update = self.hash.update
        if isinstance(value, (list, tuple, range, deque)):
            update(b"l%d:" % len(value))
            for v in value:
                self.add(v)
        elif isinstance(value, (set, frozenset)):
            update(b"u%d:" % len(value) + "".join(sorted(map(of, value))).encode())
        elif isinstance(value, Mapping):
            update(b"d%d:" % len(value))
            for key, v in value.items():
                self.add(key)
                self.add(v)
        else:
            self._object(value)

    def _object(self, value: Any) -> None:
        named = value if hasattr(value, "__qualname__") else type(value)
        self.hash.update(f"o{getattr(named, '__module__', '')}.{named.__qualname__}:".encode())
        if named is value or self._seen > _MOST:
            return
        if isinstance(value, enum.Enum):
            self.add(value.name)
            return
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # it cannot be pickled
            return
        for part in reduced[:3] if isinstance(reduced, tuple) else (reduced,):
            self.add(part)
        for items in reduced[3:5] if isinstance(reduced, tuple) else ():
            self.add(None if items is None else list(items))
