"""Datasets as users read them: ``open`` finds out what a path is, and a Dataset or View has its fields, records and splits.

Flat datasets are mapped here, by _read.flat; everything else is read by the engine, through _read.reader.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._base.errors import CorruptError, Error, MissingError, NotFoundError, UnsupportedError
from .._base.limits import memory
from .._base.options import Align, Mode, choice
from .._base.urls import redacted
from .._base.values import tensor
from .._write import changing
from . import flat, generations
from .column import Column
from .fetched import FetchedRagged, FetchedRecords
from .field import SOURCE_NAME, Field, chosen, from_json, listed, shown
from .formats import file_of, is_dataset, locate, stamp, with_records
from .generations import GenerationLock
from .layout import Layout, column_names, select
from .ragged import RaggedRecords
from .reader import NoDatasetError, OpenedDataset, Reader, named, verify
from .records import Piece, Places, Records
from .source import Source
from .view import View, Viewable, is_view, read

#: How many times to open a dataset that is being replaced before giving up.
_ATTEMPTS = 16


class SampleDataset:
    """Records of a map-style dataset in lists, as functions of Python take them that put samples together.

    With ``tensors``, they have tensors, and not arrays.
    """

    def __init__(self, of: Any, tensors: bool) -> None:
        self.of, self._tensors = of, tensors

    def __len__(self) -> int:
        return len(self.of)

    def __getitem__(self, index: int) -> Any:
        return self._sample(self.of[index])

    def __getitems__(self, indices: Any) -> list[Any]:
        """Return the records with these numbers."""
        found = self.of.__getitems__(indices) if hasattr(self.of, "__getitems__") else [self.of[i] for i in indices]
        return [self._sample(record) for record in found]

    def _sample(self, record: Any) -> Any:
        if not self._tensors:
            return record
        return {name: tensor(np.array(x)) if isinstance(x, (np.ndarray, np.generic)) else x for name, x in record.items()}


def has_type(dataset: Any, types: Sequence[str]) -> bool:
    """Return whether records of a prepared dataset, or of a Subset or ConcatDataset of prepared datasets, have arrays of any of
    the given element types.
    """
    if isinstance(dataset, Source):
        return any(f.dtype in types for f in dataset.fields.values())
    if type(dataset).__name__ == "TorchDataset":  # of tensors
        return False
    return any(has_type(part, types) for part in (dataset.datasets if hasattr(dataset, "datasets") else [dataset.dataset]))


class Dataset(Viewable):
    """A dataset that penstock made, mapped: see ``penstock.open``.

    ``ds["images"]`` is a field over all shards; ``ds[i]`` a record as a dict; ``ds[i:j]`` and
    ``ds[[3, 1, 2]]`` a Batch. It is a map-style dataset for torch's DataLoader as it is, with
    batched fetch (``__getitems__``). Pickling keeps its path and its id: each process maps
    the files for itself, and raises Error when it is used if another dataset has taken the place
    of this one. It may be used by several threads.

    Records of a dataset in a bucket are fetched when they are indexed, in memory of their own, and kept in the cache. ``DataLoader``
    fetches ahead.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fields: Iterable[str] | None = None,
        split: str | None = None,
        mode: Mode = "r",
        generation: int | str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        choice("mode", mode, Mode)
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"the path is {path!r:.60}; it must be a str or a Path, the folder or .h5 file of a dataset")
        self._folder, self._generation = generations.chosen(os.fsdecode(path), generation)
        self.path = self._folder if self._generation is None else generations.at(self._folder, self._generation)
        self.split, self.mode = split, mode
        self._cache_dir = cache_dir
        self._opened: OpenedDataset | None = None  # the program has it open, as some of its records are read, and not mapped
        self._lock: GenerationLock | None = None
        self._columns: dict[str, Column] = {}
        self._names: Any = None
        self._chosen = chosen(fields)
        self._id = ""
        self._samples = ""  # the raw samples that it is the cache of
        self._open()

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, as in docs/format.md; empty for an HDF5 file that another program wrote."""
        return self._layout.manifest

    @property
    def id(self) -> str:
        """32 hex digits over fields and content; of a file that penstock did not write, its size and time."""
        return self._id

    @property
    def generation(self) -> int:
        """The number of the generation that is open: 1, and one more with each change of the dataset; 0 without a manifest."""
        return int(self.manifest.get("generation", 0))

    @property
    def place(self) -> str:
        """The path at which another process finds this generation, also when there is a later one."""
        own = os.path.join(self._folder, generations.name(self.generation))  # which stays when there is a later one
        kept = "generation" in self.manifest and self.format != "hdf5" and (self._is_remote or os.path.exists(own))
        return generations.at(self._folder, self.generation) if kept else self.path

    @property
    def _is_remote(self) -> bool:
        return "://" in self._folder

    @property
    def format(self) -> str:
        """ "flat", "hdf5", "zarr" or "npy"."""
        return self._layout.format

    @property
    def splits(self) -> dict[str, list[tuple[int, int]]]:
        """The splits of the whole dataset: ranges [first, end) of its records, by name."""
        deleted = flat.deleted(self.manifest, self.path)
        if deleted is None:
            return self._layout.splits
        live = np.concatenate([[0], np.cumsum(deleted == 0)])
        numbered = {name: [(int(live[a]), int(live[b])) for a, b in ranges] for name, ranges in self._layout.splits.items()}
        return {name: [(a, b) for a, b in ranges if a < b] for name, ranges in numbered.items()}

    def __repr__(self) -> str:
        return f"<penstock dataset {redacted(self.path)!r}: {len(self)} records of {shown(self.fields.values())}>"

    def source_name(self, record: int) -> str:
        """Return what the source called a record: the path of its file, the member of its archive.

        It is "" where the dataset holds no names (``penstock preprocess --names``). Raise IndexError if
        there is no such record.
        """
        index = self._places.index(record)
        if self._opened is not None and (self._is_remote or not self.manifest):
            return self._opened.name(int(self._numbers(np.array([index]))[0]))
        return "" if self._names is None else str(self._names[index])

    def __getstate__(self) -> dict[str, Any]:
        own = {"path": self.path, "_folder": self._folder, "_generation": self._generation, "_id": self._id, "_samples": self._samples}
        if self._is_remote:
            own["_place"] = self.place
        return {**own, "split": self.split, "mode": self.mode, "_chosen": self._chosen, "_cache_dir": self._cache_dir, "_opened": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        try:
            self._open()
        except (Error, KeyError, OSError) as e:
            # It is raised by the first use, as a worker of a DataLoader reports what happens there.
            self.__dict__ = {**state, "_failed": e}

    def __getattr__(self, name: str) -> Any:
        failed: Exception | None = self.__dict__.get("_failed")
        raise failed or AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def verify(self) -> int:
        """Compare all records, including other splits, with their CRC32Cs.

        Return the number of bytes that were compared: 0 if there are no checksums. Raise
        CorruptError, with the list ``corruptions``, if some are wrong.
        """
        if self._is_remote:
            import shlex

            raise UnsupportedError(
                f"{self.path}: records in a bucket are compared with their checksums when they are fetched; to compare all, run: "
                f"penstock inspect verify {shlex.quote(self.path)}"
            )
        if not self.manifest:
            return 0
        self.check_place()
        compared, corruptions = verify(self.place, self._chosen)
        if corruptions:
            self.check_place()
            more = f", and {len(corruptions) - 1} more" if len(corruptions) > 1 else ""
            raise CorruptError(f"{corruptions[0]}{more}; make the dataset again", corruptions)
        return compared

    @property
    def opener(self) -> Any:
        """The function that opens a dataset again in another process."""
        return open_prepared

    @property
    def state_id(self) -> str:
        """The id by which a loader's state and a view know the records: the manifest's id with the name of the split, or a digest of a .npy file.

        It is "" of HDF5 and Zarr that penstock did not write.
        """
        known = str(self.manifest.get("id") or self._layout.digest)
        return f"{known}/{self.split}" if known and self.split else known

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        """Return the dataset as it is in a view, with its path as ``path`` writes it."""
        node = {"dataset": path(self.place), "id": self.state_id, "split": self.split, "fields": self._chosen and list(self._chosen)}
        return {name: value for name, value in node.items() if value}

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates that the file has of axes: functions that open a dataset of them, by the name of the axis."""
        known = self._layout.coordinates if self.split is None else {}
        return {axis: functools.partial(Dataset, of.get("path", self.path), [of["name"]]) for axis, of in known.items()}

    def parts(self) -> list[int]:
        """Return the number of records in each of the parts in which they are back to back, so that slices are views."""
        return [p.count for p in self._places.pieces]

    def to_dask(self, chunks: int | None = None) -> dict[str, Any]:
        """Return the fields as dask arrays, by name; fields of variable length are arrays of objects.

        ``chunks`` is the number of records of a chunk, at most; None is about 64 MiB. Chunks are views of
        the files. A worker, also one of another host, maps the files at the same path, and raises Error if
        another dataset has taken the place of this one. Raise Error without dask.
        """
        from .dask import to_dask

        return to_dask(self, chunks)

    def add_column(
        self,
        name: str,
        values: Any,
        *,
        field: Field | None = None,
        workers: int = 0,
        batched: bool = False,
        batch_size: int = 256,
        resume: bool = False,
        on: str | None = None,
        missing: float | str | None = None,
    ) -> Dataset:
        """Add a field with a value for each record, and return the dataset with it: the next generation.

        ::

            ds = ds.add_column("score", scores)                                   # an array, in the order of the records
            ds = ds.add_column("mean", lambda r: r["images"].mean(dtype="f4"), workers=2)
            ds = ds.add_column("emb", lambda b: model(b["images"]), batched=True, batch_size=512)
            ds = ds.add_column("age", people, on="id", missing=-1)                # a table: the row of the same id

        In a folder, the column and a manifest are written, and nothing that exists; an HDF5 file is replaced by a new one. This
        Dataset keeps its generation. The dataset must be one that penstock wrote, and must be open with all its records, not a
        split.

        Args:
            name: The name of the field.
            values: An array or a list with a value for each record, an iterator of values, or a function that computes one from a
                record, a dict as ``ds[i]`` is.
            field: The type of the values. By default, the first value has it; a function is called once more for that.
            workers: Processes that call the function; 0 calls it in this one. They get it by pickle where processes are not
                forked.
            batched: The function takes several records, a Batch as ``ds[i:j]`` is, and returns as many values; an iterator
                yields the values of several records at a time.
            batch_size: The records of a batch, or the most of them in the task of a worker.
            resume: Continue after the values that an earlier call has kept, which an exception or a signal ended. They
                must come from the same function. Without it, they are computed again.
            on: The name of a field, and of a column of ``values``, which are a table then: a DataFrame of pandas or polars, a Table of
                Arrow, a dict of columns, or the path of a file. A record has the value in the row with its key.
            missing: With ``on``, the value of records whose key the table does not have; without it these are an error.

        Raises:
            Error: There is a field of that name, a value is missing, or the function raised an exception; the Error names
                the record.
        """
        self._check_changes()
        if on is not None:
            changing.match(self, "add", name, values, on, missing, field is None and not (workers or batched or resume))
        elif missing is not None:
            raise TypeError("missing goes with on=: in the order of the records, each has a value")
        else:
            changing.put(self, "add", name, values, field=field, workers=workers, batched=batched, batch_size=batch_size, resume=resume)
        return self._newest()

    def set_column(
        self,
        name: str,
        values: Any,
        *,
        field: Field | None = None,
        workers: int = 0,
        batched: bool = False,
        batch_size: int = 256,
        resume: bool = False,
        on: str | None = None,
    ) -> Dataset:
        """Replace the values of a field, as ``add_column`` adds one, and return the next generation of the dataset.

        The field keeps its type: integers are converted to its integer or float type if they fit, and values of another
        kind are refused. Give ``field`` to change the type.

        Args:
            name: The name of the field.
            values: An array, a list, an iterator or a function, as for ``add_column``.
            field: Another type for the values.
            workers: Processes that call the function; 0 calls it in this one.
            batched: The function takes several records, and returns as many values.
            batch_size: The records of a batch, or the most of them in the task of a worker.
            resume: Continue after the values that an earlier call of the same function has kept.
            on: The field and the column of a table that match, as for ``add_column``; other records keep their values.

        Example:
            >>> ds = ds.set_column("label", new_labels)
        """
        self._check_changes()
        if on is not None:
            changing.match(self, "set", name, values, on, None, field is None and not (workers or batched or resume))
        else:
            changing.put(self, "set", name, values, field=field, workers=workers, batched=batched, batch_size=batch_size, resume=resume)
        return self._newest()

    def drop_columns(self, *names: str) -> Dataset:
        """Leave fields out, and return the next generation of the dataset. Earlier ones of a folder keep them."""
        if not names:
            raise TypeError("drop_columns takes names of columns: ds.drop_columns('a', 'b')")
        self._check_changes()
        for name in names:
            changing.check_name(name)
        changing.run(["column", "drop", "--json", "--", self.path, *names])
        return self._newest()

    def rename_column(self, name: str, new: str) -> Dataset:
        """Give a field another name, and return the next generation of the dataset."""
        self._check_changes()
        for each in (name, new):
            changing.check_name(each)
        changing.run(["column", "rename", "--json", "--", self.path, name, new])
        return self._newest()

    def delete(self, records: str | Iterable[int]) -> Dataset:
        """Leave records out and return the next generation.

        ::

            ds = ds.delete("labels = 'circle' and mean(images) > 250")
            ds = ds.delete([3, 7])

        In a folder, nothing is rewritten: the values stay in the files, for earlier generations and ``restore_records``. An HDF5
        file is replaced by a new one, without the values. Records are chosen from the whole dataset, not from a split.

        Args:
            records: A condition as ``filter`` takes it, numbers of records of this dataset, or an array with a bool for each
                record.

        Raises:
            Error: The condition holds for no record, or for all, or a number is given twice.
            IndexError: A number is out of range.
        """
        self._check_changes()
        changing.delete(self, records)
        return self._newest()

    def restore_records(self, records: str | Iterable[int] | None = None) -> Dataset:
        """Take deleted records back and return the next generation.

        ::

            ds = ds.restore_records()
            ds = penstock.open("ds", generation=2).restore_records([3, 7])

        Args:
            records: None means all deleted records. A condition as ``filter`` takes it chooses among them. So do numbers of
                records of this dataset, which is then a generation that has them, or an array with a bool for each record.

        Raises:
            Error: None of these records is deleted, or a column was added while some of them were, and has no values for these.
            IndexError: A number is out of range.
        """
        self._check_changes()
        changing.restore_records(self, records, self._folder)
        return self._newest()

    @property
    def stored(self) -> np.ndarray:
        """The place of each record among all stored records, deleted records included.

        It is the same in later generations, so that it identifies a record across generations.
        """
        return np.concatenate([np.arange(a, b) for a, b in self._ranges])

    def log(self) -> list[dict[str, Any]]:
        """Return the generations of the dataset, the newest first, as ``penstock log --json`` prints them."""
        found: list[dict[str, Any]] = changing.run(["log", "--json", "--", self._folder])
        return found

    def restore(self) -> Dataset:
        """Commit the content of this generation as the next generation, and return that."""
        self._check_changes()
        changing.run(["restore", "--", generations.at(self._folder, self.generation)])
        return self._newest()

    def tag(self, name: str) -> None:
        """Give this generation a name: ``penstock.open("ds@name")`` opens it, and ``penstock prune`` keeps it."""
        changing.check_name(name, "tag")
        changing.run(["tag", "--", generations.at(self._folder, self.generation), name])

    def _check_changes(self) -> None:
        if self._samples:
            changing.refuse_cached(self._samples)

    def _newest(self) -> Dataset:
        return Dataset(self._folder, None, None, self.mode, cache_dir=self._cache_dir)

    def close(self) -> None:
        """Forget the maps, after which records cannot be read. Memory is given back once no array over it is left."""
        if self._opened is not None:
            self._opened.close()
        for column in self._columns.values():
            column.close()
        self._lock = None

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        """Map the files, all of one dataset, also if it is being replaced meanwhile."""
        if "://" in self._folder:
            self._fetch()
            return
        for _ in range(_ATTEMPTS):
            self._stamp = stamp(self._folder)
            try:
                self._adopt(self._locate())
            except (Error, KeyError, OSError):
                if stamp(self._folder) == self._stamp:
                    raise
            else:
                if stamp(self._folder) == self._stamp:
                    break
        else:
            raise Error(f"{self.path}: it was replaced {_ATTEMPTS} times while it was being opened; open it when that is done")
        found = str(self.manifest.get("id") or "size {2}, time {3}".format(*self._stamp or 4 * (0,)))
        if self._id not in ("", found):
            self.close()
            changed = "it was changed, which replaces an HDF5 file, or " if self.format == "hdf5" and self.manifest else ""
            raise Error(f"{self.path}: {changed}another dataset has taken its place since it was opened: {self._id} then, {found} now; open it again")
        self._id = found

    def _fetch(self) -> None:
        """Open the dataset of a URL, whose records a program fetches."""
        if self.mode != "r":
            raise Error(f"{self.path}: records in a bucket are read, and not mapped, so that they cannot be written to: open it with mode='r'")
        flags = [] if self._cache_dir is None else [f"--cache-dir={os.fsdecode(self._cache_dir)}"]
        reader = Reader(*flags)
        try:
            self._adopt_fetched(OpenedDataset(reader, named(self.__dict__.get("_place", self.path), self._chosen, self.split), owned=True))
        except BaseException:
            reader.close()
            raise

    def _adopt_fetched(self, program: OpenedDataset) -> None:
        opened = program.found
        folder, manifest = opened.get("folder", ""), opened.get("manifest") or {}
        named = generations.named_by(self.path, folder) if folder and self._generation is None else None
        if named is not None:
            self._folder, self._generation = generations.chosen(self.path, named)
        known = {f.name: f for f in map(from_json, opened["fields"])}
        stored = int(manifest.get("records", opened["records"]))
        layout = Layout(self.path, opened["format"], stored, known, {}, [stored], manifest, opened=program)
        self._adopt(layout)
        found = str(manifest.get("id") or self.path)
        if self._id not in ("", found) or len(self) != opened["records"]:
            raise Error(f"{self.path}: another dataset has taken its place since it was opened; open it again")
        self._id = found

    def _locate(self) -> Layout:
        """Find out where the records are, and keep them there: of the dataset that was opened before, if one was."""
        generation = self._generation
        if self._id:
            generation = flat.find(self._folder, self._id) or generation
        layout = locate(self._folder, self._chosen) if generation is None else locate(self._folder, self._chosen, generation)
        self._lock = (
            GenerationLock(self._folder, layout.manifest["generation"]) if "generation" in layout.manifest and os.path.isdir(self._folder) else None
        )
        return layout

    def check_place(self) -> None:
        """Raise Error if another dataset has taken the place of this dataset at its path, from which other processes read."""
        if self._is_remote or stamp(self._folder) != self._stamp:
            now = Dataset.__new__(Dataset)
            now.__dict__.update(self.__getstate__())
            now._open()  # compares the id
            now.close()

    def _fields_of(self, known: dict[str, Field]) -> dict[str, Field]:
        """Return the fields that were chosen. Those chosen as @NAME, /@NAME, COLUMN=NAME or NAME:TYPE are the fields NAME."""
        fields = {}
        for name in self._chosen or [name for name, f in known.items() if f.content != SOURCE_NAME] or known:  # the names of sources if asked for
            of = name if name in known else name.rpartition("=")[2].partition(":")[0].removeprefix("/").removeprefix("@")
            if of not in known:
                raise MissingError(f"{redacted(self.path)}: no field {name!r:.100}; there are: {listed(known)}")
            fields[of] = known[of]
        return fields

    def _adopt(self, layout: Layout) -> None:
        self._layout = layout
        known = self._layout.fields
        #: The fields by name, in order.
        self.fields: dict[str, Field] = self._fields_of(known)
        named = [f for f in known.values() if f.content == SOURCE_NAME]
        ranges = select(self.path, self._layout, self.split)
        deleted = flat.deleted(self.manifest, self.path)
        self._ranges = ranges if deleted is None else _without(ranges, deleted)
        if not self._ranges:
            raise Error(f"{self.path}: all records of split {self.split!r} are deleted")
        pieces = _pieces(self._layout, self._ranges)
        # The program has opened this part of a URL, and all that is stored of a file here.
        self._places = Places([Piece(0, 0, sum(p.count for p in pieces))] if self._is_remote else pieces)
        self._firsts = np.cumsum([0, *layout.counts])
        self._is_whole = self._is_remote or self._ranges == [(0, layout.records)]
        opened = {**self.fields, **{f.name: f for f in named}}
        self._opened = layout.opened
        self._columns = {name: self._column(f, name) for f in opened.values() for name in column_names(f) if name in layout.columns}
        if sum(column.nbytes for column in self._columns.values()) > memory():
            for column in self._columns.values():
                column.scarce = column.nbytes > memory() // 8
        self._records = {f.name: self._over_shards(f) for f in opened.values()}
        self._read_together(self._opened, self._numbers)
        self._names = self._records[named[0].name] if named else None

    def _numbers(self, records: np.ndarray) -> np.ndarray:
        """Return the places of records among all that are stored, deleted ones included."""
        if self._is_whole:
            return records
        parts, rows = self._places.rows(records)
        places: np.ndarray = self._firsts[parts] + rows
        return places

    def _column(self, f: Field, name: str) -> Column:
        offsets = f.ragged and name.endswith(".offsets")
        dtype, shape = (np.dtype("<i8"), ()) if offsets else (f.numpy, f.shape)
        return Column(name, dtype, shape, self._layout.columns[name], self.mode)

    def _over_shards(self, f: Field) -> Records | RaggedRecords:
        columns = [self._columns[name] for name in column_names(f) if name in self._columns]
        if not columns:
            assert self._opened is not None
            if self.mode != "r":
                raise Error(f"{self.path}: records of {f.name!r} are read, and not mapped, so that they cannot be written to: open it with mode='r'")
            return (FetchedRagged if f.ragged else FetchedRecords)(self._opened, f, self._places, self._numbers)
        return RaggedRecords(f, columns[0], columns[1], self._places) if f.ragged else Records(f, columns[0], self._places)


def _pieces(layout: Layout, ranges: list[tuple[int, int]]) -> list[Piece]:
    """Return the parts of shards that ranges of records consist of."""
    pieces = []
    ends = list(itertools.accumulate(layout.counts))
    for first, end in ranges:
        if not 0 <= first < end <= layout.records and (first, end) != (0, layout.records):  # which may be none
            raise CorruptError(f"{layout.path}: a split with records [{first}, {end}) of {layout.records}")
        k = bisect.bisect_right(ends, first)
        while first < end:
            start = ends[k] - layout.counts[k]
            count = min(end, ends[k]) - first
            pieces.append(Piece(k, first - start, count))
            first, k = first + count, k + 1
    return pieces


def _without(ranges: list[tuple[int, int]], deleted: np.ndarray) -> list[tuple[int, int]]:
    """Return the ranges of the records that are not deleted."""
    left: list[tuple[int, int]] = []
    for first, end in ranges:
        edges = np.flatnonzero(np.diff(deleted[first:end], prepend=1, append=1)) + first
        left += zip(edges[::2].tolist(), edges[1::2].tolist())
    return left


def open_dataset(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    fields: Iterable[str] | None = None,
    split: str | None = None,
    mode: Mode = "r",
    *,
    records: str | None = None,
    align: Align | None = None,
    generation: int | str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Dataset | View:
    """Open a dataset: a flat folder, Zarr, an HDF5 file, a .npy file, a view (.view.json), or the URL of one in a bucket.

    It reads the manifest and the headers of the files, and no record. The dataset stays what it was
    when it was opened, also after ``penstock preprocess --overwrite`` or ``--append``.

    Args:
        path: The folder, the file or the URL, such as "s3://lab/ds". A .npy file is a dataset of one field, which has the name of the file.
            A list of paths is their ``concat``.
        fields: The names of the fields to open, in that order; None is all fields but the names of the records' files, for
            which there is ``Dataset.source_name``.
        split: Open that part of the dataset alone.
        mode: With "c" arrays can be written to, and what is written stays in this process. "r" is
            read-only. A view is read-only.
        records, align: Where the records are in a file whose arrays are in groups, such as "data/*[:]": see docs/files.md.
        generation: Open that generation of the dataset, by its number or its tag, and not the newest one. The path
            ``ds@3`` does so, too: see docs/changing.md.
        cache_dir: The cache, by default in the user's cache folder. Records of a URL are kept there. Raw samples, such as a
            folder of images or the URL of one, are made a dataset in it, and that is opened: see docs/raw.md.

    Returns:
        The Dataset or View: ``ds["images"]`` is a field, ``ds[7]`` a record.

    Raises:
        Error: The path is not a dataset; CorruptError and UnsupportedError are kinds of it.
        KeyError: There is no such field or split.
    """
    paths: Any = path
    if isinstance(paths, (list, tuple)) and paths and align not in ("intersection", "union"):  # which join files by name
        fields = chosen(fields)
        first, *others = [
            open_dataset(p, fields, split, mode, records=records, align=align, generation=generation, cache_dir=cache_dir) for p in paths
        ]
        return first.concat(*others) if others else first
    place: Any = with_records(path, records, align)
    try:
        return open_prepared(place, fields, split, mode, generation=generation, cache_dir=cache_dir)
    except Error as e:
        name = os.fsdecode(place)
        absent = isinstance(e, NotFoundError) and not any(c in file_of(name) for c in "*?[{")  # a glob is no file, either
        raw = isinstance(e, NoDatasetError) or not (absent or "://" in name)
        if generation is not None or not raw or (os.path.exists(file_of(name)) and is_dataset(file_of(name))):
            raise
        from .._write.prepare import cached

        fields = chosen(fields)
        declared = fields if any(c in f for f in fields or () for c in ":=") else None  # COLUMN=FIELD:TYPE
        try:
            made = cached(name, cache_dir, declared)
        except Error as of_samples:
            made = None
            if fields and not declared:  # a column that is not wanted may be why
                with contextlib.suppress(Error):
                    made, declared = cached(name, cache_dir, fields), fields
            if made is None and not (os.path.isdir(name) or "://" in name):  # what else has a dataset was tried as samples alone
                raise of_samples from None
            if made is None:
                raise (e if str(of_samples) in str(e) else Error(f"{e}; as raw samples: {of_samples}")) from None
        if made is None:
            raise e from None
        ds = _open_made(made, None if declared else fields, split, mode)
        ds._samples = name
        return ds


def _open_made(made: dict[str, Any], fields: Any, split: str | None, mode: Mode) -> Dataset | View:
    """Open the dataset of raw samples: after they changed, it is a view, whose splits follow each other."""
    splits = made.get("splits", [])
    names = [part["name"] for part in splits]
    if not is_view(made["dest"]) or split not in names:
        return open_prepared(made["dest"], fields, split, mode)
    ends = [0, *itertools.accumulate(part["records"] for part in splits)]
    at = names.index(split)
    return open_prepared(made["dest"], fields, None, mode).select(slice(ends[at], ends[at + 1]))


def open_prepared(
    path: Any,
    fields: Any = None,
    split: str | None = None,
    mode: Mode = "r",
    generation: int | str | None = None,
    cache_dir: Any = None,
) -> Dataset | View:
    """Open a dataset, or a view."""
    if not isinstance(path, (str, bytes, os.PathLike)) or not is_view(os.fsdecode(path)):
        return Dataset(path, fields, split, mode, generation, cache_dir)
    name = os.fsdecode(path)
    if generation is not None:
        raise Error(f"{name}: a view has no generations; name one in the paths of its datasets, as in ds@3")
    if split is not None:
        raise MissingError(f"{name}: a view has no splits; name the split in its datasets")
    if mode != "r":
        raise Error(f'{name}: a view is read-only; open its datasets with mode="c"')
    return read(name, chosen(fields), open_prepared)
