"""preprocess from Python: it makes a dataset of raw samples, and returns a summary."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Union

from .._base.errors import Error
from .._base.progress import Display, Wanted, display, follow
from .._read import frames
from .._read.field import SOURCE_NAME, Field
from . import codec
from .preprocess_command import DONE, USAGE, NoProgramError, failure, flags, start

Path = Union[str, "os.PathLike[str]"]

#: Flags for progress and results that a program reads.
_OUTPUT = ("--progress=json", "--json")

#: Pixels of a side, or (height, width).
Size = Union[int, Sequence[int]]


@dataclass(frozen=True)
class Skipped:
    """A sample that was left out."""

    sample: str
    reason: str


@dataclass(frozen=True)
class Summary:
    """The dataset that ``penstock.preprocess`` made, or the part of a rank."""

    dest: str
    #: "flat", "hdf5" or "zarr".
    format: str
    #: The dataset's id, which every dataset with the same records has.
    id: str
    records: int
    #: Bytes of all files of the dataset.
    bytes: int
    fields: tuple[Field, ...]
    #: The names of the classes; () without labels.
    classes: tuple[str, ...]
    #: Records by split; {} if the dataset has no splits.
    splits: Mapping[str, int]
    #: The kind of the source, such as "imagefolder", and how many samples it has.
    kind: str
    samples: int
    #: Samples that were left out, and their number by kind of reason.
    skipped: tuple[Skipped, ...]
    skipped_kinds: Mapping[str, int]
    #: Samples that ``dedup=True`` left out.
    duplicates: int
    #: Records that an earlier run had made.
    resumed: int
    seconds: float
    #: All that ``penstock preprocess --json`` prints.
    json: Mapping[str, Any]


def preprocess(
    source: Path | Any,
    dest: Path,
    *,
    # Source and dataset
    from_: str | None = None,
    fields: str | Sequence[str] | None = None,
    missing: str | float | None = None,
    records: str | None = None,
    align: str | None = None,
    instances: Sequence[str] | None = None,
    outside: bool | None = None,
    format: str | None = None,
    shard_size: int | str | None = None,
    overwrite: bool | None = None,
    append: bool | None = None,
    split: str | Mapping[str, float] | None = None,
    stratify: bool | str | None = None,
    shuffle: int | None = None,
    dedup: bool | None = None,
    names: str | None = None,
    view: bool | None = None,
    # Compression
    compress: str | None = None,
    chunk_records: int | None = None,
    chunk_bytes: int | str | None = None,
    shuffle_bytes: str | None = None,
    # Geometry
    resize: Size | None = None,
    fit: str | None = None,
    crop: Size | None = None,
    filter: str | None = None,
    pass_order: str | None = None,
    independent: Sequence[str] | None = None,
    # Pixels
    color: str | None = None,
    layout: str | None = None,
    dtype: str | None = None,
    normalize: str | tuple[Sequence[float], Sequence[float]] | None = None,
    normalize_split: str | None = None,
    exif_orientation: str | None = None,
    alpha: str | None = None,
    sixteen_bit: str | None = None,
    cmyk: str | None = None,
    keep_encoded: bool | None = None,
    jpeg_quality: int | None = None,
    larger_than: int | None = None,
    # Many machines, buckets
    rank: int | str | None = None,
    world_size: int | None = None,
    spool: Path | None = None,
    # Run
    workers: int | None = None,
    memory: int | str | None = None,
    on_error: str | None = None,
    max_errors: int | str | None = None,
    max_pixels: int | None = None,
    resume: bool | None = None,
    pipeline: Path | None = None,
    progress: Wanted = None,
    command: str | None = None,
) -> Summary:
    """Turn raw samples into a dataset, as the command ``penstock preprocess SOURCE DEST`` does, and return what was made.

    ::

        done = penstock.preprocess("photos", "ds", resize=256, crop=224, on_error="skip")
        print(done.records, done.seconds, done.skipped)

    The parameters are the flags of the command, with underscores for dashes, and ``from_`` for ``--from``
    (docs/sources.md). None is the command's default. ``resize=(240, 320)`` is height and width,
    ``normalize=(mean, std)`` has a number for each channel, and ``split={"train": 0.9, "val": 0.1}``.

    Ctrl-C, or an exception in ``progress``, ends the run as Ctrl-C ends the command: the records of a long run are kept, and
    ``resume=True`` continues after them.

    Args:
        source: A folder, a file, a glob of files, or a URL; or a table: a DataFrame of pandas or polars, a Table or RecordBatch of Arrow, a
            relation of DuckDB, which is written beside ``dest`` for the time of the run.
        dest: The dataset to make: a folder, an .h5 file, or Zarr. It appears when it is complete.
        missing: What empty cells and nulls of tables become: "nan" of floats, a value or a class, or "skip", which leaves the samples out.
        progress: True shows progress by tqdm, or by lines where that is not installed; None does so on
            a terminal and in a notebook. A function gets a ``penstock.Progress`` about ten times a
            second, in this thread.
        command: The program preprocess; by default $PENSTOCK_PREPROCESS, or preprocess or penstock in
            PATH.

    Raises:
        Error: The command refused or failed; the text is the command's.
    """
    options = {name: value for name, value in locals().items() if name not in ("source", "dest", "progress", "command")}
    dest = os.fspath(dest)
    with frames.as_file(source, dest) if frames.is_table(source) else contextlib.nullcontext(os.fspath(source)) as path:
        if path == "-":
            raise Error("source is '-', the standard input of the command; penstock.Writer writes records of this process")
        return _summary(_run([*_OUTPUT, *flags(options), "--", path, dest], dest, progress, command))


def rechunk(
    source: Path,
    dest: Path,
    chunks: Mapping[Any, int],
    *,
    fields: Sequence[str] | None = None,
    memory: int | str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: Wanted = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Write arrays into Zarr with chunks of another shape, as ``penstock preprocess SOURCE DEST --rechunk`` does.

    ::

        penstock.rechunk("era.nc", "era.zarr", {"time": 24, "lat": 128, "lon": 128}, memory="2GiB")

    ``penstock inspect layout era.nc --window time=24,lat=128,lon=128`` prints the chunks that are best for windows.

    Args:
        source: An HDF5 file, a folder of Zarr, a .npy file or a dataset.
        dest: The folder to make, which ends with .zarr. It appears when it is complete.
        chunks: The elements of a chunk, by the name or the number of an axis; other axes stay whole.
        fields: The names of the arrays; None means all.
        memory: Bytes that it may use, such as "2GiB"; None means 1 GiB.
        workers: The number of threads; None means one per core.
        overwrite: Replace a folder of Zarr that exists.
        resume: Continue a run that was stopped, or start if there is none.
        progress: As in ``penstock.preprocess``.
        command: As in ``penstock.preprocess``.

    Returns:
        A dict: ``arrays`` with ``name``, ``shape``, ``chunk``, ``bytes`` and ``reads``, the bytes that were decoded.

    Raises:
        Error: The command refused or failed; the text is the command's.
    """
    sizes = ",".join(f"{axis}={size}" for axis, size in chunks.items())
    names = None if fields is None else ",".join(fields)
    options = {"fields": names, "memory": memory, "workers": workers, "overwrite": overwrite or None, "resume": resume or None}
    return _run([*_OUTPUT, f"--rechunk={sizes}", *flags(options), "--", os.fspath(source), os.fspath(dest)], os.fspath(dest), progress, command)


#: How the command says that another process makes the same dataset, and after how many seconds it is run again.
BUSY = "another process is building it"
AGAIN = 0.5


def cached(source: Path, cache_dir: Path | None = None, fields: Sequence[str] | None = None, progress: Wanted = None) -> dict[str, Any] | None:
    """Make the dataset of raw samples in the cache, if it does not exist, and return its summary; None if these are not raw samples.

    If another process is making the dataset, such as a process of a DataLoader, wait for it.
    """
    arguments = ["cache", *_OUTPUT, *flags({"cache_dir": cache_dir, "fields": fields}), "--", os.fspath(source)]
    while True:
        try:
            return _run(arguments, os.fspath(source), progress, None)
        except (_UsageError, NoProgramError):
            return None
        except Error as e:
            if BUSY not in str(e):
                raise
        time.sleep(AGAIN)


class _UsageError(Error):
    """The command refused its arguments."""


def _run(arguments: Sequence[str], name: str, progress: Wanted, command: str | None) -> dict[str, Any]:
    """Run preprocess, and return its summary."""
    shown = display(progress)
    try:
        with tempfile.TemporaryFile() as result:
            # Progress is read even where it is not shown: a run that cannot send it ends, as it should when this process is killed.
            child = start(arguments, command, stdin=subprocess.DEVNULL, stdout=result, stderr=subprocess.PIPE)
            with child:
                errors = _follow(child, shown, name)
            if child.returncode not in DONE:
                kind = _UsageError if child.returncode == USAGE else Error
                raise kind(
                    failure(errors) or f"{name}: preprocess ended with exit code {child.returncode} and no message; use resume=True to continue"
                )
            result.seek(0)
            summary: dict[str, Any] = json.load(result)
            return summary
    finally:
        if shown is not None:
            shown.close()


def _follow(child: subprocess.Popen[bytes], shown: Display | None, dest: str) -> bytes:
    """Show the progress of a run until it ends, and return what else it printed."""
    assert child.stderr is not None
    errors: list[bytes] = []
    try:
        _read(child.stderr, shown, errors)
        child.wait()
    except BaseException as e:
        _interrupt(child, errors)
        if isinstance(e, KeyboardInterrupt):
            raise KeyboardInterrupt(failure(b"".join(errors)) or f"{dest}: interrupted") from None
        raise
    return b"".join(errors)


def _read(stderr: IO[bytes], shown: Display | None, errors: list[bytes]) -> None:
    """Show each event among the lines, and collect all other lines."""
    follow(stderr, shown, errors.append, lambda text: warnings.warn(text, RuntimeWarning, stacklevel=6))


def _interrupt(child: subprocess.Popen[bytes], errors: list[bytes]) -> None:
    """Have a run keep what it has, and wait for its end; a second Ctrl-C ends it at once."""
    assert child.stderr is not None
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGINT if sys.platform != "win32" else signal.SIGTERM)
    try:
        _read(child.stderr, None, errors)
        child.wait()
    except KeyboardInterrupt:
        child.kill()
        child.wait()


def _summary(found: dict[str, Any]) -> Summary:
    source = found["source"]
    return Summary(
        dest=found["dest"],
        format=found["format"],
        id=found["id"],
        records=found["records"],
        bytes=found["bytes"],
        fields=tuple(f for f in map(codec.of_json, found["fields"] or ()) if f.content != SOURCE_NAME),
        classes=tuple(found["classes"] or ()),
        splits={s["name"]: s["records"] for s in found.get("splits", ())},
        kind=source["kind"],
        samples=source["samples"],
        skipped=tuple(Skipped(s["sample"], s["reason"]) for s in found["skipped"]),
        skipped_kinds=found["skipped_kinds"] or {},
        duplicates=found["duplicates"],
        resumed=found["resumed"],
        seconds=found["seconds"],
        json=found,
    )
