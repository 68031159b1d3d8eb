"""The program that opens and reads datasets for this process: ``penstock feed --records``.

It alone interprets HDF5, Zarr and buckets. For arrays that lie uncompressed in files of this machine it returns their places,
and they are mapped here; it reads all other arrays.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import stat
import struct
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._base import files, forks
from .._base.errors import CorruptError, Corruption, Error, MissingError, NotFoundError, UnsupportedError
from .._base.parameters import in_python
from .._base.program import start, uninterrupted
from .field import Field
from .ragged import Ragged, batch_of, present


class NoDatasetError(NotFoundError):
    """There is no dataset at a URL. There may be raw samples."""


_T = TypeVar("_T")

#: More record numbers and origins of a view than this are in a .npy file of their own.
MOST_INLINE = 1 << 16

#: The kinds of reads, and how the answer to one begins.
_RECORDS, _LENGTHS, _NAMES, _BOX = range(1, 5)
_READ = bytes(8)

#: Errors of a dataset that cannot be opened, by what the program calls them.
_KINDS = {
    "raw": NoDatasetError, "missing": MissingError, "generation": NotFoundError, "corrupt": CorruptError, "unsupported": UnsupportedError,
}  # fmt: skip


class Reader:
    """The program. Several threads may use it; a process that was forked starts its own.

    Requests are answered one after the other. After an interrupt within an answer, the program is started again, and each
    dataset is opened again when it is used.
    """

    def __init__(self, *flags: str) -> None:
        self._flags = flags
        self._talking = forks.lock()
        #: How often the program was started: only datasets opened since the last start are open.
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._between = self._closed = False
        self._owner = forks.Owner()
        self._finalizer: forks.Finalizer | None = None  # ends the program
        #: Datasets that are not needed any more. A finalizer, which may run within a request, adds to them.
        self.left: deque[tuple[int, int]] = deque()

    def ask(self, message: Mapping[str, Any]) -> Any:
        """Send a request that is answered by a line, and return the answer. Raise Error if the answer is an error."""
        with _line(message) as text:
            return self.request(text, lambda answer, _: answer)

    def request(self, text: bytes, receive: Callable[[Any, Any], _T], starts: int = 0) -> _T:
        """Send a request, and return what ``receive`` makes of the object that answers it, None for a read, and of the stream
        after the object.

        ``starts`` is the value of Reader.starts from when the requested dataset was opened. Raise Restarted if the program
        was started again since then.
        """
        with self._talking:
            if self._closed:
                raise Error("it was closed; open it again")
            if not self._between or not self._owner.here:
                self._start()
            if starts not in (0, self.starts):
                raise Restarted
            process = self._process
            assert process is not None and process.stdin is not None and process.stdout is not None
            self._between = False
            self._send(process.stdin.fileno(), text)
            answer = None
            length = _exactly(process.stdout, 8)
            if length != _READ:
                answer = json.loads(_exactly(process.stdout, int.from_bytes(length, "little")))
                if "error" in answer:
                    self._between = True
                    raise _KINDS.get(answer.get("kind", ""), Error)(in_python(answer["error"]))
            received = receive(answer, process.stdout)
            self._between = True
            return received

    def _start(self) -> None:
        """Start the program, in the place of a program of this process's parent, or of a program that has not finished its
        answer.
        """
        pipe = subprocess.PIPE
        with uninterrupted():
            if self._finalizer is not None:
                self._finalizer()
            flags = ["--records", *self._flags]
            self._process = start("feed", flags, "reads HDF5, Zarr and buckets", start_new_session=True, stdin=pipe, stdout=pipe)
            self._owner, self._between = forks.Owner(), True
            self._finalizer = forks.finalize(self, _end, self._process, leave=forks.leave_pipes)
            self.starts += 1
            self.left.clear()

    def _send(self, pipe: int, text: bytes) -> None:
        """Send a request. None of its bytes wait in this process, where a fork would send them again."""
        while self.left:
            number, starts = self.left.popleft()
            if starts == self.starts:
                text = b'{"close": %d}\n' % number + text
        try:
            sent = os.write(pipe, text)
            while sent < len(text):
                sent += os.write(pipe, memoryview(text)[sent:])
        except BrokenPipeError:
            _ended()

    def close(self) -> None:
        """End the program. Records that were read stay as they are."""
        self._closed = True
        if self._finalizer is not None:
            with uninterrupted():
                self._finalizer()


class Restarted(Exception):
    """The program was started again since a dataset was opened."""


@contextlib.contextmanager
def _line(message: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a request as a line. Its arrays are numbers of views: many of them are in files, which are removed after the answer."""
    folders: list[str] = []

    def written(numbers: np.ndarray) -> Any:
        if numbers.size <= MOST_INLINE:
            return numbers.tolist()
        folders.append(files.temporary("numbers-"))
        name = os.path.join(folders[-1], "numbers.npy")
        np.save(name, numbers)
        return name

    try:
        yield json.dumps(message, default=written).encode() + b"\n"
    finally:
        for folder in folders:
            files.remove(folder)


def _ended() -> NoReturn:
    raise Error("the program that reads it ended; read it again")


@functools.cache
def shared() -> Reader:
    """Return the program that reads the files of this machine. It ends with this process."""
    return Reader()


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


def named(path: str, fields: Sequence[str] | None, split: str | None = None) -> dict[str, Any]:
    """Return what asks for a dataset by its path or URL."""
    asked = {"path": path, "fields": None if fields is None else list(fields), "split": split}
    return {name: value for name, value in asked.items() if value is not None}


class OpenedDataset:
    """A dataset or a view that the program has open, or only described, as all its arrays can be mapped.

    ``asked`` says what: see ``named``, or a view in JSON. ``found`` describes it: its format, manifest, fields, number of
    records and, of files here, where the rows of arrays are. ``owned`` has the program end with it.
    """

    def __init__(self, reader: Reader, asked: Mapping[str, Any], owned: bool = False) -> None:
        self._reader, self._path, self._owned, self._closed = reader, asked.get("path", "a view"), owned, False
        self._asked = asked
        self._numbers: list[tuple[int, int]] = []  # of the dataset, and the start of the program that gave it
        self.found: dict[str, Any] = self._open()
        self._finalizer = forks.finalize(self, _forget, reader, self._numbers)

    def _open(self) -> dict[str, Any]:
        def receive(found: dict[str, Any], _: Any) -> dict[str, Any]:
            self._numbers[:] = [(found.get("dataset", 0), self._reader.starts)]
            return found

        with _line({"open": self._asked}) as text:
            found = self._reader.request(text, receive)
        if "manifest" not in found:
            found["file"] = _file(self._path)
        self._places = {f["name"]: k for k, f in enumerate(found.get("fields", []))}
        return found

    def take(self, fields: Sequence[Field], records: np.ndarray) -> list[Any]:
        """Return records by number: an array for each field, or a Ragged."""
        count = len(records)

        def receive(_: Any, stream: Any) -> list[Any]:
            sizes = _sizes(stream, len(fields))
            return [
                _read_ragged(stream, f, count, n) if f.ragged else _filled(stream, np.empty((count, *f.shape), f.numpy), f, n)
                for f, n in zip(fields, sizes)
            ]

        return self._ask(_RECORDS, fields, records, receive)

    def fill(self, field: Field, records: np.ndarray, out: np.ndarray) -> None:
        """Read records of a field of fixed size into memory that they fit."""
        self._ask(_RECORDS, [field], records, lambda _, stream: _filled(stream, out, field, *_sizes(stream, 1)))

    def box(self, field: Field, box: Sequence[tuple[int, int]]) -> np.ndarray:
        """Return elements [first, end) along each axis of a field."""
        out = np.empty([end - first for first, end in box], field.numpy)
        return self._ask(_BOX, [field], np.array(box).reshape(-1), lambda _, stream: _filled(stream, out, field, *_sizes(stream, 1)))

    def lengths(self, field: Field, records: np.ndarray) -> np.ndarray:
        """Return the numbers of rows of records of a ragged field."""
        offsets = np.empty(len(records) + 1, "<i8")
        return np.diff(self._ask(_LENGTHS, [field], records, lambda _, stream: _filled(stream, offsets, None, *_sizes(stream, 1))))

    def name(self, record: int) -> str:
        """Return what the source called a record; "" if that is not known."""
        names = Field("names", "uint8", ragged=True)
        found = self._ask(_NAMES, [], np.array([record]), lambda _, stream: _read_ragged(stream, names, 1, *_sizes(stream, 1)))
        return str(present(found.values, "source-name"))

    def _ask(self, kind: int, fields: Sequence[Field], numbers: np.ndarray, receive: Callable[[Any, Any], _T]) -> _T:
        """Ask for records, and return what ``receive`` makes of the answer."""
        if self._closed:
            raise Error(f"{self._path}: it was closed; open it again")
        while True:
            number, starts = self._numbers[0]
            text = struct.pack(f"<B3x3I{len(fields)}I", kind, number, len(fields), len(numbers), *(self._places[f.name] for f in fields))
            try:
                return self._reader.request(text + numbers.astype("<i8", copy=False).tobytes(), receive, starts)
            except Restarted:
                self._again()
            except Error as e:
                raise type(e)(f"{self._path}: {e}") from None

    def _again(self) -> None:
        """Open the dataset in the program that was started again. It must be the same one."""
        found = self._open()
        if any(found.get(name) != self.found.get(name) for name in ("manifest", "records", "fields", "file")):
            self.close()
            raise Error(f"{self._path}: another dataset has taken its place since it was opened; open it again")

    def close(self) -> None:
        """Let the program close the dataset. Records that were read stay as they are."""
        self._closed = True
        self._finalizer()
        if self._owned:
            self._reader.close()


def _file(path: str) -> tuple[int, int, int] | None:
    """Return an identity that tells a file from a file that replaces it; None if there is no file at the path."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return None if stat.S_ISDIR(found.st_mode) else (found.st_dev, found.st_ino, found.st_mtime_ns)


def _forget(reader: Reader, numbers: list[tuple[int, int]]) -> None:
    reader.left += [n for n in numbers if n[0]]


def verify(path: str, fields: Sequence[str] | None) -> tuple[int, list[Corruption]]:
    """Compare files here with their checksums. Return the bytes that were compared, and what is corrupt."""
    found = shared().ask({"verify": {"path": path, **({} if fields is None else {"fields": list(fields)})}})
    corruptions: list[Corruption] = []
    for entry in found.get("corruptions", []):
        last = corruptions[-1] if corruptions else None
        if last and (last.column, last.path, last.end) == (entry["column"], entry["path"], entry["first"]):
            corruptions[-1] = Corruption(last.column, last.path, last.first, entry["last"] + 1, last.reason)
        else:
            corruptions.append(Corruption(entry["column"], entry["path"], entry["first"], entry["last"] + 1, entry["reason"]))
    return found["bytes"], corruptions


def _exactly(stream: Any, size: int) -> bytes:
    """Return bytes of a stream."""
    text: bytes = stream.read(size)
    if len(text) != size:
        _ended()
    return text


def _sizes(stream: Any, fields: int) -> tuple[int, ...]:
    """Return the bytes of the rows of each field of an answer."""
    return struct.unpack(f"<{fields}q", _exactly(stream, 8 * fields))


def _filled(stream: Any, out: np.ndarray, field: Field | None = None, size: int | None = None) -> np.ndarray:
    """Fill an array, of a field in an answer, with bytes of a stream, and return it."""
    if field is not None and out.nbytes != size:
        raise CorruptError(f"field {field.name!r}: {size} bytes of {len(out)} records")
    if out.nbytes and stream.readinto(out.reshape(-1).view(np.uint8).data) != out.nbytes:
        _ended()
    return out


def _read_ragged(stream: Any, f: Field, count: int, size: int) -> Ragged:
    offsets = _filled(stream, np.empty(count + 1, "<i8"))
    if int(offsets[-1]) * f.row_bytes != size:
        raise CorruptError(f"field {f.name!r}: {size} bytes of {count} records")
    return batch_of(f, _filled(stream, np.empty((int(offsets[-1]), *f.shape), f.numpy)), offsets)
