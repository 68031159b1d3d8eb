"""Changes of a dataset: columns that are added, set, dropped and renamed, and its generations.

The program penstock makes them, so the files, checksums and commits are the same as by the command.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import subprocess
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Set
from typing import IO, Any

import numpy as np

from .._base import files
from .._base.errors import Error
from .._base.options import count, flag
from .._base.program import find, popen
from .._base.values import kind_of
from .._code import tasks
from .._code.tasks import EncodedRecords, answers
from .._read import frames, generations
from .._read.field import Field
from .._read.flat import fields_of, read_manifest
from . import codec
from .preprocess_command import NoProgramError, failure, widen

#: A Dataset of _read.dataset, whose module imports this one.
Dataset = Any


def refuse_cached(samples: str) -> None:
    """Refuse to change what raw samples are opened through."""
    import shlex

    raise Error(
        f"{samples} is opened through a dataset in the cache, which follows its files; to have one that you can change, "
        f"run: penstock preprocess --keep-encoded {shlex.quote(samples)} DEST"
    )


#: About how many bytes of values are sent at a time.
_CHUNK = 1 << 20

#: Seconds for which values may wait in this process for more: what was sent is kept if this process is killed.
_FLUSH = 0.05

#: How many records are a task before it is known how long they take. Then a task has as many as take _FLUSH.
_TASK = 16

#: How many numbers of deleted records the log shows at most.
_SHOWN = 100

#: Kinds of columns that can have numbers of a kind: integers, and floats. Whether they have these numbers, each value shows.
_CASTS = {"i": "iuf", "u": "iuf", "f": "f"}

#: The values of a column, in any form that Dataset.add_column takes.
Values = Any


def run(arguments: list[str], stdin: bytes = b"") -> Any:
    """Run a subcommand of penstock, and return the JSON that it prints; None if it prints something else."""
    import tempfile

    with tempfile.TemporaryFile() as errors:
        process = _start(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        out, _ = process.communicate(stdin)
        _check(process.returncode, errors)
    return json.loads(out) if out.startswith((b"{", b"[")) else None


def _start(arguments: list[str], **pipes: Any) -> subprocess.Popen[bytes]:
    """Start penstock: the program in PENSTOCK_PROGRAM, or the program that was installed with this package."""
    named = os.environ.get("PENSTOCK_PROGRAM")
    program = named or find() or "penstock"
    try:
        return popen([program, *arguments], start_new_session=True, **pipes)
    except OSError as e:
        raise NoProgramError(
            f"{program}: cannot be started: {e.strerror}; install the wheel, which has the program penstock (make wheel, in a clone), or build it "
            "(make build) and put it in PATH or name it in PENSTOCK_PROGRAM"
        ) from None


def _check(code: int, errors: Any) -> None:
    """Raise Error if the program failed, with what it printed."""
    if code == 0:
        return
    errors.seek(0)
    raise Error(failure(errors.read()) or f"penstock ended with exit code {code} and no message")


def check_name(name: Any, of: str = "column") -> None:
    """Refuse the name of a column or of a tag that a command line cannot have."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a {of} is {name!r:.60}; it must be a str that is not empty")


def condition(where: Any) -> str:
    """Return a condition that chooses records, or refuse what cannot be one."""
    if not isinstance(where, str) or not where.strip():
        raise TypeError(f"where is {where!r:.60}; it must be a condition as text, such as \"labels = 'circle'\"")
    return where


def delete(ds: Dataset, records: Any) -> None:
    """Leave out the records for which a condition holds, or the records with these numbers: see Dataset.delete."""
    if isinstance(records, str):
        run(["delete", "--json", "--where", condition(records), "--", ds.path])
        return
    _of_numbers(["delete", "--json"], ds, records, ds.path)


def restore_records(ds: Dataset, records: Any, folder: str) -> None:
    """Take deleted records back into the dataset in a folder. Records are numbered as in ds, one of its generations: see Dataset.restore_records."""
    command = ["restore", "--deleted"]
    if records is None:
        run([*command, "--", ds.path])
    elif isinstance(records, str):
        run([*command, "--where", condition(records), "--", ds.path])
    else:
        _of_numbers(command, ds, records, folder)


def _of_numbers(command: list[str], ds: Dataset, records: Any, path: str) -> None:
    """Run a command for some records of ds by their numbers."""
    numbers = _numbers(command[0], records, len(ds))
    if ds.split is not None:
        raise Error(f"{ds.path}: numbers count all records, and this is the split {ds.split!r}; open the dataset without split")
    short = len(numbers) <= _SHOWN
    listed = ",".join(map(str, numbers)) if short else "-"
    stdin = b"" if short else "\n".join(map(str, numbers)).encode()
    run([*command, f"--records={listed}", f"--of={ds.generation}", "--", path], stdin)


def _numbers(verb: str, records: Any, n: int) -> list[int]:
    """Return the numbers of some of n records, or refuse what cannot be numbers. An array of bool stands for the numbers of its True values."""
    name = "restore_records" if verb == "restore" else verb
    wrong = f"{name} takes a condition as text, numbers of records such as [3, 7], or a bool for each record, and not {records!r:.60}"
    try:
        array = np.asarray(records if isinstance(records, np.ndarray) or hasattr(records, "__array__") else list(records))
    except (TypeError, ValueError):
        raise TypeError(wrong) from None
    if array.dtype == bool and array.shape == (n,):
        array = np.flatnonzero(array)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise TypeError(wrong)
    if not len(array):
        raise ValueError("no record is chosen: give numbers of records, such as [3, 7]")
    found: list[int] = array.tolist()
    for number in (min(found), max(found)):
        if not 0 <= number < n:
            raise IndexError(f"record {number}: the dataset has {n} records, numbered from 0 to {n - 1}")
    return found


def match(ds: Dataset, verb: str, name: str, values: Any, on: str, missing: Any, alone: bool) -> None:
    """Add a column to a dataset, or set one, with the values of a table whose rows have the key of a field: see Dataset.add_column."""
    check_name(name)
    check_name(on, "key")
    if not alone:
        raise TypeError("on= takes values of a table; field, workers, batched and resume are for values in the order of the records")
    if ds.split is not None:
        raise Error(f"{ds.path}: the column has a value for each record, and this is the split {ds.split!r}; open the dataset without split")
    with contextlib.ExitStack() as stack:
        if not isinstance(values, (str, os.PathLike)):
            values = stack.enter_context(frames.as_file(frames.table(values), ds.path))
        given = [] if missing is None else [f"--missing={missing}"]
        run(["column", verb, "--json", "--quiet", f"--on={on}", *given, "--", ds.path, name, os.fspath(values)])


def put(
    ds: Dataset,
    verb: str,
    name: str,
    values: Values,
    *,
    field: Field | None,
    workers: int,
    batched: bool,
    batch_size: int,
    resume: bool,
) -> None:
    """Add a column to a dataset, or set one: see Dataset.add_column."""
    check_name(name)
    if field is not None and not isinstance(field, Field):
        raise TypeError(f"field is {field!r:.60}; it must be a Field, such as penstock.Field({name!r}, 'float32')")
    if field is not None and field.name != name:
        raise ValueError(f"field is {field.name!r}, and the column {name!r}; give them one name")
    if ds.split is not None:
        raise Error(f"{ds.path}: a column has a value for each record, and this is the split {ds.split!r}; open the dataset without split")
    ds.check_place()
    if verb == "add":  # before values are computed, which would be kept beside the dataset
        with ds._newest() as newest:
            if any(f["name"] == name for f in newest.manifest.get("fields", ())):
                raise Error(f"{ds.path}: it has a column {name!r} already; set_column replaces one")
    source = _Source(ds, name, values, count("workers", workers, 0, 1 << 12), flag("batched", batched), count("batch_size", batch_size, 1))
    old = fields_of(ds.manifest, ds.path).get(name) if verb == "set" else None
    of = source.infer(old) if field is None else codec.check([field])[0]
    if old is not None and field is None:
        of = source.like(old, of)
    elif old is not None:
        _check_kept(ds, old, of)
    change = old is not None and field is not None and (old.dtype, old.shape, old.ragged) != (of.dtype, of.shape, of.ragged)
    plain = not (of.ragged or of.layout or of.content or of.classes or of.normalization or of.dtype == "bfloat16")
    (_stream if plain else _written)(ds, verb, of, source, resume, change)


def _check_kept(ds: Dataset, old: Field, field: Field) -> None:
    """Refuse a field that the column would not have: one that is set keeps its classes and the meaning of its values."""
    same = (old.dtype, old.shape, old.ragged) == (field.dtype, field.shape, field.ragged)
    if not (same or (old.classes and (field.classes or field.content == "utf-8"))):
        return  # the column gets this field
    for what in ("dtype", "classes", "content", "layout"):
        was, given = getattr(old, what), getattr(field, what)
        if was != given and not (what == "classes" and was and given[: len(was)] == was):
            raise Error(
                f"{ds.path}: column {field.name!r} has {what}={was!r:.60}, which set_column keeps, and field has {what}={given!r:.60}; "
                "leave field out, or drop the column and add it with this field"
            )


def _command(ds: Dataset, verb: str, change: bool) -> list[str]:
    """Return the command that writes a column, whose values are of the records that this dataset has: there may be a newer generation."""
    return ["column", verb, "--json", "--quiet", f"--of={ds.generation}", *["--change-type"] * change]


def _stream(ds: Dataset, verb: str, field: Field, source: _Source, resume: bool, change: bool) -> None:
    """Send the values as a .npy file to the program, which writes them to the column's files."""
    import tempfile

    with tempfile.TemporaryFile() as errors:
        arguments = [*_command(ds, verb, change), *["--resume"] * resume, "--", ds.path, field.name, "-"]
        process = _start(arguments, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdin is not None
        assert process.stdout is not None
        widen(process.stdin.fileno())
        try:
            with contextlib.suppress(BrokenPipeError):  # its error is reported below
                _write(process.stdin, _header(field, len(ds)))
                line = process.stdout.readline() if resume else b'{"first": 0}'
                if line:
                    # Workers have the pipe, too: they end before it is closed here.
                    with contextlib.closing(source.encoded(Plain(field), json.loads(line)["first"])) as chunks:
                        for chunk, _ in chunks:
                            _write(process.stdin, chunk)
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.read()
            process.stdout.close()
            process.wait()
        _check(process.returncode, errors)


def _write(pipe: IO[bytes], chunk: bytes) -> None:
    """Write all of a chunk to a pipe that is not buffered."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[pipe.write(rest) :]


def _header(field: Field, records: int) -> bytes:
    """Return the header of a .npy file."""
    out = io.BytesIO()
    shape = (records, *field.shape)
    np.lib.format.write_array_header_1_0(out, {"descr": field.storage.str, "fortran_order": False, "shape": shape})
    return out.getvalue()


def _last_append(ds: Dataset) -> int:
    """Return the generation that appended the last records, or the first kept generation after it; 0 if all records are in one
    shard.
    """
    m, folder = ds.manifest, generations.split(ds.path)[0]
    if len(m.get("shards") or ()) < 2:
        return 0
    while m.get("parent") and m.get("change") and m["change"]["operation"] != "append":
        change = m["change"]
        try:
            m = generations.read(folder, change["from"] if change["operation"] == "restore" else m["parent"], read_manifest)
        except Error:  # it was pruned
            break
    return int(m["generation"])


def _written(ds: Dataset, verb: str, field: Field, source: _Source, resume: bool, change: bool) -> None:
    """Write the values to a dataset on this machine and take the column from there: their lengths vary, or they are text, images or labels."""
    from .writer import Writer

    folder, base = _spool(ds.path) if "://" in ds.path else os.path.split(os.path.abspath(ds.path))
    path = os.path.join(folder, f".{base}.{field.name}.values")
    with files.alone(f"{path}.lock", f"{ds.path}: another call writes the column {field.name!r}"):
        stored = f"records {zlib.crc32(ds.stored.astype('<i8').tobytes()):08x} of {_last_append(ds)}"
        with Writer(path, [field], resume=resume, overwrite=not resume, _inputs=stored) as w:
            if not w.complete:
                with contextlib.closing(source.encoded(Messages(field), w.start)) as messages:
                    for message, records in messages:
                        if w.next + records > len(ds):
                            raise Error(f"{ds.path}: there are more than {len(ds)} values, and the dataset has {len(ds)} records")
                        w._write_encoded(message, records)
                if w.next < len(ds):
                    raise Error(f"{ds.path}: there are {w.next} values, and the dataset has {len(ds)} records")
        run([*_command(ds, verb, change), "--", ds.path, field.name, path])
        import shutil

        shutil.rmtree(path)


def _spool(url: str) -> tuple[str, str]:
    """Return the folder for temporary files of this user, and a name for the files of a dataset in a bucket, which each process
    finds again.
    """
    import hashlib

    return files.user_folder(), f"column-{hashlib.sha256(url.encode()).hexdigest()[:16]}"


def _type(field: Field) -> str:
    """Return the type of a field for an error."""
    if field.classes:
        return f"a class of {len(field.classes)}"
    if field.content == "utf-8":
        return "text"
    return field.dtype + (f" of shape {field.shape}" if field.shape else "") + " of different lengths" * field.ragged


class _Source:
    """The values of a column, from any record on."""

    def __init__(self, ds: Dataset, name: str, values: Values, workers: int, batched: bool, batch_size: int) -> None:
        self._ds, self._name, self._workers, self._batched, self._size = ds, name, workers, batched, batch_size
        self._function: Callable[[Any], Any] | None = values if callable(values) else None
        self._iterator = iter(values) if isinstance(values, Iterator) else None
        self._values = values
        if self._function is not None:
            return
        if workers:
            raise ValueError("workers are processes that call a function: give one as values, or leave workers out")
        if self._iterator is not None:
            return
        if batched:
            raise ValueError("batched=True is for functions and iterators: an array has all values")
        if hasattr(values, "iloc"):  # of pandas, which takes a number as a label
            values = self._values = values.to_numpy()
        unordered = isinstance(values, (str, Mapping, Set)) or getattr(values, "shape", None) == ()
        if unordered or not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
            raise TypeError(f"values is {values!r:.60}; it must be an array, a list, an iterator or a function of a record")
        if len(values) != len(ds):
            raise Error(f"{ds.path}: there are {len(values)} values, and the dataset has {len(ds)} records")

    def infer(self, old: Field | None) -> Field:
        """Return the field that the first value has. Lists in place of lists of image files are such lists."""
        if self._function is not None:
            first = self._call(0, 1)[0] if self._batched else self._function(self._ds[0])
        elif self._iterator is not None:
            head = list(itertools.islice(self._iterator, 1))
            if not head:
                raise Error(f"{self._ds.path}: there are 0 values, and the dataset has {len(self._ds)} records")
            self._iterator = itertools.chain(head, self._iterator)
            first = head[0][0] if self._batched else head[0]
        else:
            first = self._values[0]
        try:
            return codec.check(codec.infer({self._name: first}, [old] if old is not None and old.content == "images" else ()))[0]
        except (Error, TypeError, ValueError) as e:
            raise self._failed(0, e) from None

    def like(self, old: Field, found: Field) -> Field:
        """Return the field of values that replace a column's values. The column keeps its type; values of another type are refused."""
        if (old.dtype, old.shape, old.ragged) == (found.dtype, found.shape, found.ragged):
            return found
        if old.classes and (found.classes or found.content == "utf-8"):
            return found
        numbers = not (old.is_bytes or old.content or found.is_bytes or found.content)
        casts = kind_of(old.numpy) in _CASTS.get(kind_of(found.numpy), "")
        if numbers and casts and (old.shape, old.ragged) == (found.shape, found.ragged):
            return Field(old.name, old.dtype, old.shape, ragged=old.ragged)
        raise Error(
            f"{self._ds.path}: column {old.name!r} is {_type(old)}, and the values are {_type(found)}; give values of its type, or "
            f"field=penstock.Field({old.name!r}, {found.dtype!r}, ...) to change it, or add them as another column"
        )

    def _failed(self, record: int, e: Exception) -> Error:
        """Return the error for the value of a record."""
        return Error(f"{self._ds.path}: column {self._name!r}: record {record}: {_advice(e)}")

    def encoded(self, encoding: Plain, first: int) -> Generator[tuple[bytes, int], None, None]:
        """Yield the bytes of the values from a record on, some values at a time, and the number of values."""
        if self._function is not None:
            yield from self._computed(Work(self, encoding), first)
            return
        made, last = EncodedRecords(), time.monotonic()
        whole = encoding.joins and self._iterator is None and not isinstance(self._values, (list, tuple))
        blocks = self._blocks(encoding, first) if whole else self._single(first)
        for values, n in blocks:
            try:
                encoding.add(values, n, made)
            except (Error, TypeError, ValueError, OverflowError) as e:
                yield bytes(made.data), made.records
                raise self._failed(first + made.records, e) from None
            if len(made.data) >= _CHUNK or time.monotonic() - last > _FLUSH:
                yield bytes(made.data), made.records
                first += made.records
                made, last = EncodedRecords(), time.monotonic()
        yield bytes(made.data), made.records

    def _blocks(self, encoding: Plain, first: int) -> Iterator[tuple[Any, int]]:
        """Yield the values of an array from a record on in blocks."""
        step = max(1, _CHUNK // encoding.field.row_bytes)
        for at in range(first, len(self._ds), step):
            yield self._values[at : at + step], min(step, len(self._ds) - at)

    def _single(self, first: int) -> Iterator[tuple[Any, int]]:
        """Yield the values from a record on, one by one."""
        if self._iterator is not None:
            flat: Iterable[Any] = itertools.chain.from_iterable(self._iterator) if self._batched else self._iterator
            values: Iterator[Any] = itertools.islice(flat, first, None)
        else:
            values = (self._values[at] for at in range(first, len(self._values)))
        return (([value], 1) for value in values)

    def records(self, first: int, n: int) -> Iterator[dict[str, Any]]:
        """Yield records as ds[i] does, but read together: in a third of the time."""
        step = max(1, _CHUNK // max(1, sum(f.row_bytes for f in self._ds.fields.values())))
        for at in range(first, first + n, step):
            end = min(at + step, first + n)
            try:
                arrays = self._ds[at:end].arrays
            except Exception:  # a value cannot be read: the values before it can
                yield from (self._ds[i] for i in range(at, end))
            else:
                yield from (dict(zip(arrays, values)) for values in zip(*arrays.values()))

    def make(self, first: int, n: int, encoding: Plain, made: EncodedRecords) -> None:
        """Add the values of n records, which the function computes."""
        assert self._function is not None
        if self._batched:
            encoding.add(self._call(first, n), n, made)
            return
        function, add = self._function, encoding.add_value
        for record in self.records(first, n):
            add(function(record), made)

    def _call(self, first: int, n: int) -> Any:
        """Return the values that the function makes of a batch."""
        assert self._function is not None
        out = self._function(self._ds[first : first + n])
        if not hasattr(out, "__len__") or getattr(out, "shape", None) == ():
            raise Error(f"{self._ds.path}: the function returned {out!r:.60}; with batched=True, it returns a value for each record")
        if len(out) != n:
            raise Error(f"{self._ds.path}: the function returned {len(out)} values for {n} records")
        return out

    def _computed(self, work: Work, first: int) -> Iterator[tuple[bytes, int]]:
        """Yield the bytes of the results for records, computed by several processes, and the number of these records."""
        made, began = 0, time.monotonic()

        def pieces() -> Iterator[tasks.Task]:
            at = first
            while at < len(self._ds):
                each = made / (time.monotonic() - began) * _FLUSH / max(1, self._workers) if made else _TASK
                size = self._size if self._batched else min(self._size, max(1, int(each)))
                yield at, min(size, len(self._ds) - at)
                at += size

        with contextlib.closing(answers(work, pieces(), self._workers)) as results:
            for at, chunk, done, failed in results:
                yield chunk, done
                made += done
                if failed is not None:
                    raise Error(f"{self._ds.path}: column {self._name!r}: record {at + done}: {failed}")


class Plain:
    """Values as the bytes of an array."""

    joins = True  #: whether the values of consecutive records can be encoded as one

    def __init__(self, field: Field) -> None:
        self.field = field
        self._encode: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_encode": None}

    def add(self, values: Any, n: int, made: EncodedRecords) -> None:
        """Add the values of n records. The values before a value that does not fit are kept."""
        if self.joins and n > 1:
            whole = Field(self.field.name, self.field.dtype, (n, *self.field.shape))
            try:
                made.add([codec.encoder(whole)(values)[0]], n)
                return
            except (TypeError, ValueError, OverflowError):
                pass  # one by one, so that the error names the value that does not fit
        for value in values:
            self.add_value(value, made)

    def add_value(self, value: Any, made: EncodedRecords) -> None:
        """Add the value of a record."""
        if self._encode is None:
            self._encode = codec.encoder(self.field)
        made.add([self._encode(value)[0]])


class Messages(Plain):
    """Values as messages of a Writer: they have lengths of their own, or meaning."""

    joins = False

    def add_value(self, value: Any, made: EncodedRecords) -> None:
        if self._encode is None:
            self._encode = codec.Codec([self.field]).encode
        made.add(self._encode({self.field.name: value}))


class Work(tasks.Work):
    """The values of records, which a function computes."""

    def __init__(self, source: _Source, encoding: Plain) -> None:
        self._source, self._encoding = source, encoding

    def make(self, first: int, task: int, made: EncodedRecords) -> None:
        self._source.make(first, task, self._encoding, made)

    def failure(self, e: Exception) -> str:
        return f"{type(e).__name__}: {_advice(e)}"


def _advice(e: Exception) -> str:
    """Return the text of an error of a value, which advises a field in place of a Writer's schema."""
    return re.sub(r"schema=\[(penstock\.Field\(.*?\)), \.\.\.\]", r"field=\1", str(e))
