"""Records of a dataset in a bucket, which a program fetches and keeps in the cache."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from . import forks
from ._program import start, uninterrupted
from .batch import Batch
from .errors import CorruptError, Error, NotFoundError, UnsupportedError
from .field import Field
from .ragged import DerivedRagged, Ragged, present
from .records import Derived, Piece, Places

#: About how many bytes of records are asked for at a time.
_CHUNK = 32 << 20

#: The bytes of a record of variable length, as long as it is not known.
_RAGGED = 8192


class NoDatasetError(NotFoundError):
    """A URL is not that of a dataset. It may be that of raw samples."""


#: Errors of a dataset that cannot be opened, by what the program calls them.
_KINDS = {"raw": NoDatasetError, "missing": KeyError, "generation": NotFoundError, "corrupt": CorruptError, "unsupported": UnsupportedError}


class Program:
    """The program that reads the records of a dataset at a URL. Several threads may use it; a process that was forked starts its own.

    ``opened`` describes the dataset: its format, folder, manifest, fields and number of records.
    """

    def __init__(self, url: str, fields: Sequence[str] | None, split: str | None, cache_dir: Any) -> None:
        asked = {"fields": None if fields is None else list(fields), "split": split}
        flags = [] if cache_dir is None else [f"--cache-dir={os.fsdecode(cache_dir)}"]
        text = json.dumps({name: value for name, value in asked.items() if value is not None})
        self._arguments = [f"--records={text}", *flags, "--", url]
        self._url, self._talking = url, forks.lock()
        self.opened = self._start()

    def _start(self) -> dict[str, Any]:
        pipe = subprocess.PIPE
        try:
            with uninterrupted():
                self._process = start("feed", self._arguments, "reads buckets", start_new_session=True, stdin=pipe, stdout=pipe)
                self._owner, self._between, self._closed = forks.Owner(), True, False
                self._finalizer = forks.finalize(self, _end, self._process, leave=forks.leave_pipes)
            found: dict[str, Any] = self._line()
        except BaseException:
            if hasattr(self, "_finalizer"):
                self.close()
            raise
        if "error" in found:
            self.close()
            raise _KINDS.get(found.get("kind", ""), Error)(found["error"])
        return found

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            self._ended()
        return json.loads(line)

    def _send(self, message: bytes) -> None:
        """Send bytes, none of which wait in this process, where a fork would send them again."""
        assert self._process.stdin is not None
        rest = memoryview(message)
        try:
            while rest:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]
        except BrokenPipeError:
            self._ended()

    def _ended(self) -> NoReturn:
        raise Error(f"{self._url}: the program that reads it ended; read it again")

    def take(self, fields: Sequence[Field], records: np.ndarray) -> list[Any]:
        """Return records by number: an array for each field, or a Ragged."""
        asked = {"fields": [f.name for f in fields], "records": len(records)}
        with self._asking(asked, records) as (stream, sizes):
            return [_read_ragged(stream, f, len(records), n) if f.ragged else _read(stream, f, len(records), n) for f, n in zip(fields, sizes)]

    def lengths(self, field: Field, records: np.ndarray) -> np.ndarray:
        """Return the numbers of rows of records of a ragged field."""
        with self._asking({"fields": [field.name], "lengths": True, "records": len(records)}, records) as (stream, _):
            return np.diff(_filled(stream, np.empty(len(records) + 1, "<i8")))

    def name(self, record: int) -> str:
        """Return what the source called a record; "" if that is not known."""
        with self._asking({"names": True, "records": 1}, np.array([record])) as (stream, sizes):
            found = _read_ragged(stream, Field("names", "uint8", ragged=True), 1, sizes[0])
            return str(present(found.values, "source-name"))

    @contextlib.contextmanager
    def _asking(self, asked: Mapping[str, Any], records: np.ndarray) -> Any:
        """Ask for records, and yield the stream of the answer and the bytes of each field."""
        with self._talking:
            if self._closed:
                raise Error(f"{self._url}: it was closed; open it again")
            if not self._owner.here or not self._between:  # forked, or an interrupt came within an answer
                self._again()
            self._between = False
            self._send(json.dumps(asked).encode() + b"\n" + records.astype("<i8").tobytes())
            answer = self._line()
            if "error" in answer:
                self._between = True
                raise Error(answer["error"])
            yield self._process.stdout, answer["bytes"]
            self._between = True

    def _again(self) -> None:
        """Start another program, which must find the same dataset."""
        self._finalizer()
        found = self._start()
        if found.get("manifest", {}).get("id") != self.opened.get("manifest", {}).get("id"):
            self.close()
            raise Error(f"{self._url}: another dataset has taken its place since it was opened; open it again")

    def close(self) -> None:
        """End the program. Records that were read stay as they are."""
        self._closed = True
        with uninterrupted():
            self._finalizer()


@uninterrupted()
def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program: it ends with its input."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.stdout.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _filled(stream: Any, out: np.ndarray) -> np.ndarray:
    """Fill an array with bytes of a stream, and return it."""
    rest = out.reshape(-1).view(np.uint8).data
    while rest:
        n = stream.readinto(rest)
        if not n:
            raise Error("the program that reads the records ended; read them again")
        rest = rest[n:]
    return out


def _read(stream: Any, f: Field, count: int, size: int) -> np.ndarray:
    out = np.empty((count, *f.shape), f.storage)
    if out.nbytes != size:
        raise CorruptError(f"field {f.name!r}: {size} bytes of {count} records")
    return _filled(stream, out)


def _read_ragged(stream: Any, f: Field, count: int, size: int) -> Ragged:
    offsets = _filled(stream, np.empty(count + 1, "<i8"))
    if int(offsets[-1]) * f.row_bytes != size:
        raise CorruptError(f"field {f.name!r}: {size} bytes of {count} records")
    return Ragged(_filled(stream, np.empty((int(offsets[-1]), *f.shape), f.storage)), offsets, f.content)


class Fetched:
    """The records of a dataset in a bucket, for a Dataset: all fields of a record are one request."""

    def __init__(self, program: Program, fields: Mapping[str, Field], shown: Sequence[str], count: int) -> None:
        self._program, self._fields, self._shown, self._count = program, fields, [fields[name] for name in shown], count
        self.places = Places([Piece(0, 0, count)])
        #: The fields by name.
        self.records: dict[str, Any] = {
            name: FetchedRagged(program, f, count) if f.ragged else FetchedRecords(program, f, count) for name, f in fields.items()
        }

    def one(self, record: int) -> dict[str, Any]:
        """Return a record."""
        found = self._program.take(self._shown, np.array([record]))
        return {f.name: values[0] for f, values in zip(self._shown, found)}

    def many(self, records: np.ndarray) -> Batch[Any]:
        """Return the records of those numbers."""
        if len(records) > _rows(self._shown):
            return Batch({f.name: self.records[f.name].take(records) for f in self._shown}, len(records))
        return Batch({f.name: values for f, values in zip(self._shown, self._program.take(self._shown, records))}, len(records))

    def range(self, key: slice) -> Batch[Any]:
        """Return the records of a slice."""
        return self.many(np.arange(*key.indices(self._count), dtype=np.int64))


def _rows(fields: Sequence[Field]) -> int:
    """Return how many records are asked for at a time."""
    return max(1, _CHUNK // sum(_RAGGED if f.ragged else f.row_bytes for f in fields))


class FetchedRecords(Derived):
    """A field of fixed size of a dataset in a bucket, which is read when it is indexed."""

    mapped = False

    def __init__(self, program: Program, field: Field, count: int) -> None:
        super().__init__(field, field.storage, field.shape, count)
        self._program = program

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        step = _rows([self.field])
        for at in range(0, len(records), step):
            out[at : at + step] = self._program.take([self.field], records[at : at + step])[0]

    def _range(self, start: int, stop: int) -> np.ndarray:
        return self.take(np.arange(start, stop, dtype=np.int64))


class FetchedRagged(DerivedRagged):
    """A field of variable length of a dataset in a bucket."""

    def __init__(self, program: Program, field: Field, count: int) -> None:
        super().__init__(field, field.storage, count)
        self._program = program

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        return self._program.lengths(self.field, np.arange(len(self)))

    def _of(self, records: np.ndarray) -> Ragged:
        parts: list[Ragged]
        step = _rows([self.field])
        parts = [self._program.take([self.field], records[at : at + step])[0] for at in range(0, max(1, len(records)), step)]
        if len(parts) == 1:
            return parts[0]
        offsets = np.cumsum(np.concatenate([[0], *(part.lengths for part in parts)]), dtype=np.int64)
        return Ragged(np.concatenate([part.values for part in parts]), offsets, self.field.content)
