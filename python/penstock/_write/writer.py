"""Datasets from Python: Writer, and merge for the parts of several ranks.

A Writer starts the command preprocess and sends it samples. So it has the decoders, transforms,
formats, checks and durability of that command, and its datasets have the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Union

from .._base import forks
from .._base.errors import Error
from .._base.options import count, flag
from .._read import frames
from .._read.field import Field
from . import codec
from .preprocess_command import DONE, PIPE, failure, flags, start, widen

VERSION = 2

Path = Union[str, "os.PathLike[str]"]

#: Seconds for which records may wait in this process for more.
_FLUSH = 0.05


class Writer:
    """Writes a dataset, record by record.

    ::

        with penstock.Writer("data/train") as w:
            for path, label in samples:
                w.append({"images": path, "labels": label})

    ``path`` is a folder of .npy files or, if it ends in .h5, an HDF5 file, and may be in a bucket. The
    dataset appears there when ``commit`` has returned, which the end of the with block calls, and not
    before. After an exception in the block, a crash or a power cut, ``resume=True`` continues after the records that are kept:
    the records up to the last checkpoint, which is made every ``checkpoint`` seconds, and all records where only this process
    has ended. ``start`` is then the number of the first record to append::

        with penstock.Writer("data/train", resume=True) as w:
            for path, label in samples[w.start :]:
                w.append({"images": path, "labels": label})

    The dataset has the same bytes as without the interruption, if the records are the same.

    A Writer is used by one thread.

    Args:
        path: A folder or, if it ends in .h5, an HDF5 file; it may be in a bucket.
        schema: A list of Field; without one the first record decides, see docs/writing.md.
        splits: Names of splits. A record may name one of them.
        resume: Continue a Writer that was interrupted.
        overwrite: Replace an existing dataset, at the commit.
        append: Add records to an existing dataset. Without a schema, the dataset's fields are taken, images excepted.
            With ``resume=True`` too, it continues an append that was interrupted; one that was committed begins again.
        rank, world_size, total: Several processes write one dataset of ``total`` records. Each appends the records from
            ``start`` to ``end``; ``penstock.merge`` then makes the dataset, with the bytes of a single Writer.
        checkpoint: Seconds between two checkpoints.
        command: The program preprocess; by default $PENSTOCK_PREPROCESS, or preprocess or penstock in
            PATH.
        options: Flags of preprocess, with underscores: ``resize=256, crop=224``, ``keep_encoded=True``,
            ``on_error="skip"``, ``split={"train": 0.9, "val": 0.1}, stratify=True`` (or
            ``stratify="label"``, where several fields hold classes), ``shard_size="64MiB"``,
            ``compress="gzip"``.
    """

    def __init__(
        self,
        path: Path,
        schema: Sequence[Field] | None = None,
        *,
        splits: Sequence[str] = (),
        resume: bool = False,
        overwrite: bool = False,
        append: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        total: int | None = None,
        checkpoint: float = 10.0,
        command: str | None = None,
        _inputs: str = "",
        **options: Any,
    ) -> None:
        self.path = os.fspath(path)
        #: The summary that penstock preprocess --json prints, of the dataset or of the part, once it is committed.
        self.summary: dict[str, Any] | None = None
        self._splits = _names(splits)
        self._skips = options.get("on_error") == "skip"
        self._schema = None if schema is None else codec.check(schema)
        self._codec: codec.Codec | None = None
        if not 0 < checkpoint <= 1e6:
            raise ValueError(f"checkpoint is {checkpoint}; it is a number of seconds from 0 to 1e6")
        switches = {
            "resume": flag("resume", resume) or None,
            "overwrite": flag("overwrite", overwrite) or None,
            "append": flag("append", append) or None,
        }
        if (rank is None) != (world_size is None) or (rank is not None and total is None):
            raise ValueError("rank, world_size and total: give all three, so that each rank knows which records are its own")
        if world_size is not None:
            options = {**options, "world_size": count("world_size", world_size, 1), "rank": count("rank", rank, 0, world_size - 1)}
        arguments = ["--quiet", "--json", "--from", "stream", *flags({**switches, **options}), "--", "-", self.path]
        self._process = _Process(arguments, command, self.path)
        samples = -1 if total is None else count("total", total)
        begin = {"version": VERSION, "samples": samples, "checkpoint": checkpoint, "splits": self._splits, "inputs": _inputs}
        self._process.write([codec.message(b"B", json.dumps(begin).encode())], now=True)
        answer = self._process.answer()
        #: The number of the first record to append, counted over all ranks.
        self.start: int = answer["first"]
        #: One more than the number of the last record to append; None for any number of records.
        self.end: int | None = None if answer["end"] < 0 else answer["end"]
        #: Whether the dataset, or the part of this rank, was complete already: then there is nothing to append.
        self.complete: bool = answer.get("complete", False)
        self._next: int = self.start
        self._dataset = [codec.of_json(f) for f in answer.get("dataset") or ()]
        if self._schema is not None and self._dataset:
            self._schema = codec.ordered(self._schema, self._dataset)
        if answer.get("fields"):
            self._continue([codec.of_json(f) for f in answer["fields"]])
        elif self._schema is not None and not self.complete:
            self._declare(self._schema)

    @property
    def next(self) -> int:
        """The number of the record that comes next."""
        return self._next

    @property
    def schema(self) -> list[Field] | None:
        """The fields of records; None before the first record, if that decides."""
        return self._codec.fields if self._codec else self._schema

    def append(self, record: Mapping[str, Any], split: str | None = None) -> None:
        """Append a record: a dict with a value for each field.

        Values are NumPy arrays, tensors, numbers, lists, text, and for images the path or the bytes of
        a file. They are copied, so that arrays may be used again, and files are read now, so that another file may take their
        place. Raise Error, with the field and the reason, if the record does not fit, and go on as if it had not been appended;
        raise it too if the program has failed, which is the end of this Writer. With on_error="skip", a file that cannot be
        read is listed as left out instead.
        """
        self._expect()
        try:
            if self._codec is None:
                self._declare(codec.infer(record, self._dataset))
            assert self._codec is not None
            parts = self._codec.encode(record, split)
        except codec.Unreadable as e:
            if not self._skips:
                raise Error(f'{self.path}: record {self._next}: {e}; on_error="skip" leaves such records out') from None
            parts = [codec.refusal(e)]
        except Error as e:
            raise Error(f"{self.path}: record {self._next}: {e}") from None
        self._process.write(parts)
        self._next += 1

    def extend(self, records: Iterable[Mapping[str, Any]] | Any) -> None:
        """Append records, or the rows of a table: a DataFrame of pandas or polars, a Table of Arrow, a relation of DuckDB.

        Without a schema, the fields of a table have the types of its columns. Raise Error for a null.
        """
        if frames.is_table(records):
            self._expect()
            batches = frames.batches(records)
            if self._codec is None:
                self._declare(codec.ordered(frames.fields_of(batches), self._dataset))
            records = frames.records(batches)
        for record in records:
            self.append(record)

    def skip(self, reason: str) -> None:
        """Leave out the record with the next number, for a reason. With on_error="skip" it is listed as left out; otherwise it is an error."""
        self._expect()
        if self._codec is None:
            raise Error(f"{self.path}: record {self._next} is left out, and no record before it says what the fields are; give schema=")
        self._process.write([codec.refusal(reason)])
        self._next += 1

    def commit(self) -> dict[str, Any]:
        """Make the dataset, or the part of this rank, appear, and return the summary that penstock preprocess --json prints.

        When it returns, all bytes are on disk. Raise Error if that cannot be; what was appended is kept
        for resume=True, as far as there is a checkpoint.
        """
        if self.summary is not None:
            return self.summary
        if self.end is not None and self._next != self.end and not self.complete:
            raise Error(f"{self.path}: {self._next - self.start} records were appended, and not the {self.end - self.start} from start to end")
        if self._codec is None and not self.complete:
            raise Error(f"{self.path}: no record was appended, and a dataset has one at least")
        self.summary = self._process.finish(b"" if self.complete else b"E")
        return self.summary

    def close(self) -> None:
        """End without a commit. The records are kept for resume=True. It may be called at any time, and after a commit does nothing."""
        self._process.abandon()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"<penstock writer of {self.path!r}: {self._next - self.start} records appended>"

    def _write_encoded(self, messages: bytes, records: int) -> None:
        """Append records that a Codec of this Writer's schema has encoded."""
        self._process.write([messages])
        self._next += records

    def _expect(self) -> None:
        if self.complete:
            raise Error(
                f"{self.path}: it is complete already, with {self.start} records; use append=True to add to it, or overwrite=True to start over"
            )
        if self.end is not None and self._next >= self.end:
            raise Error(f"{self.path}: record {self._next}: this Writer has all of its records, {self.start} to {self.end - 1}; is total right?")

    def _continue(self, fields: list[Field]) -> None:
        if self._schema is not None and [codec.to_json(f) for f in self._schema] != [codec.to_json(f) for f in fields]:
            self.close()
            raise Error(
                f"{self.path}: cannot resume: it was begun with other fields, {fields}, and not {self._schema}; use overwrite=True to start over"
            )
        self._declare(fields)

    def _declare(self, fields: list[Field]) -> None:
        """Say what the fields are, and send records from now on."""
        encoder = codec.Codec(fields, self._splits)
        self._process.write([codec.message(b"F", json.dumps([codec.to_json(f) for f in fields]).encode())])
        self._codec = encoder


def merge(path: Path, parts: Sequence[Path] = (), *, command: str | None = None, **options: Any) -> dict[str, Any]:
    """Make one dataset of the parts that the Writers of all ranks have committed, and return its summary.

    Args:
        path: The dataset.
        parts: Folders of parts, if they are not next to the dataset.
        command: The program preprocess, as of Writer.
        options: Flags of ``penstock preprocess merge``: ``overwrite=True``, ``resume=True``, ``remove_parts=True``.
    """
    names = [os.fspath(p) for p in [*parts, path]]
    process = _Process(["merge", "--quiet", "--json", *flags(options), "--", *names], command, names[-1])
    return process.finish(b"")


def _names(names: Any) -> list[str]:
    """Return the names of splits that records may have."""
    if isinstance(names, (str, bytes, Mapping)) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"splits is {names!r:.80}; it is a list of names, such as ['train', 'val']; shares of records are split={{'train': 0.9, 'val': 0.1}}"
        )
    return list(names)


class _Process:
    """The command preprocess, and the pipes to it."""

    def __init__(self, arguments: Sequence[str], command: str | None, name: str) -> None:
        self._name, self._owner = name, forks.Owner()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._child = start(arguments, command, bufsize=PIPE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        except BaseException:
            self._errors.close()
            raise
        assert self._child.stdin is not None and self._child.stdout is not None
        self._in, self._out = self._child.stdin, self._child.stdout
        self._flushed = 0.0
        widen(self._in.fileno())
        self._finalizer = forks.leaving(self, forks.leave_pipes, self._child)

    def write(self, parts: Sequence[codec.Buffer], now: bool = False) -> None:
        """Send bytes; they may wait in this process for more, unless they shall go now."""
        if not self._owner.here:
            raise Error(f"{self._name}: this Writer is of the process that opened it, and cannot be used in a child of that")
        if self._in.closed:
            raise Error(f"{self._name}: this Writer is closed; open a new one with resume=True to continue")
        try:
            for part in parts:
                self._in.write(part if isinstance(part, bytes) else part.data)
            if now or time.monotonic() - self._flushed > _FLUSH:
                self._in.flush()
                self._flushed = time.monotonic()
        except (BrokenPipeError, ConnectionResetError):
            raise self._failure() from None

    def answer(self) -> dict[str, Any]:
        """Wait for the answer to the message that was sent."""
        line = self._out.readline()
        if not line:
            raise self._failure()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def finish(self, last: bytes) -> dict[str, Any]:
        """Send the last bytes, wait for the program to end, and return its summary."""
        self.write([last])
        try:
            self._in.close()
        except (BrokenPipeError, ConnectionResetError):
            raise self._failure() from None
        text = self._out.read()
        if self._child.wait() not in DONE:
            raise self._failure()
        self._end()
        summary: dict[str, Any] = json.loads(text)
        return summary

    def abandon(self) -> None:
        """Close the pipes without a last word, and wait for the program to keep what it has."""
        if not self._finalizer.alive:
            return
        with contextlib.suppress(OSError):
            self._in.close()
        self._out.read()
        self._child.wait()
        self._end()

    def _failure(self) -> Error:
        """Return the error that ended the program."""
        with contextlib.suppress(OSError):
            self._in.close()
        code = self._child.wait()
        self._errors.seek(0)
        text = failure(self._errors.read())
        self._end()
        return Error(text or f"{self._name}: preprocess ended with exit code {code} and no message; use resume=True to continue")

    def _end(self) -> None:
        self._finalizer()
        self._out.close()
        self._errors.close()
