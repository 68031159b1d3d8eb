"""Tables of pandas, polars, Arrow and DuckDB: as a file that the programs read, as records, and made of records.

All tables go through pyarrow, which is imported when a table is met.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import bfloat16
from .._base.errors import Error
from .field import Field, chosen, listed
from .ragged import Ragged

#: The most bytes of a record of a field that is taken without its name.
_SMALL = 4096


def is_table(value: Any) -> bool:
    """Return whether a value is a table that other libraries can read as Arrow: a DataFrame, a Table, a RecordBatch, a relation."""
    return not isinstance(value, type) and (
        hasattr(value, "__arrow_c_stream__") or (hasattr(value, "__arrow_c_array__") and hasattr(value, "schema")) or _is_pandas(value)
    )


def _is_pandas(value: Any) -> bool:
    return type(value).__name__ == "DataFrame" and type(value).__module__.split(".")[0] == "pandas"


def _arrow() -> Any:
    try:
        import pyarrow as pa

        import pyarrow.ipc  # isort: skip
    except ImportError:
        raise Error("tables of other libraries are read and made through Arrow, and there is no pyarrow: pip install pyarrow") from None
    return pa


def table(value: Any) -> Any:
    """Return a table as it is, and a dict of columns as an Arrow table."""
    if isinstance(value, Mapping):
        return _made(dict(value), _arrow().table)
    if not is_table(value):
        raise TypeError(f"values is of type {type(value).__name__}; with on=, it is a table, a dict of columns, or the path of a file")
    return value


def batches(table: Any) -> Any:
    """Return a ``RecordBatchReader`` of a table. A float of pandas is NaN where Arrow would have a null."""
    if type(table).__module__.split(".")[0] == "polars":  # which exports the addresses of objects
        for name, of in getattr(table, "schema", {}).items():
            if str(of) == "Object":
                raise Error(f"column {name!r} has Python objects, which a table cannot hold: leave it out, as by drop({name!r})")
    return _made(table, _batches)


def _made(table: Any, make: Callable[[Any], Any]) -> Any:
    """Return what Arrow makes of a table, or say that it cannot."""
    try:
        return make(table)
    except _arrow().ArrowException as e:
        what = type(table).__name__ if isinstance(table, dict) else f"{type(table).__module__.split('.')[0]}.{type(table).__name__}"
        raise Error(
            f"{what} cannot be read as a table of Arrow: {e}; leave out such columns, or convert them, as by x.astype(str); "
            "a Series is a table by to_frame()"
        ) from None


def _batches(table: Any) -> Any:
    pa = _arrow()
    if _is_pandas(table):
        of = table.index  # without a name, the numbers that rows had before others were left out are no column
        index = any(name is not None for name in of.names) or of.nlevels > 1 or not (isinstance(of.dtype, np.dtype) and of.dtype.kind in "iu")
        found = pa.Table.from_pandas(table, preserve_index=index)
        for i, dtype in enumerate([*table.dtypes, table.index.dtype][: found.num_columns]):  # their names may be no strings
            of = found.column(i)
            if pa.types.is_floating(of.type) and of.null_count and isinstance(dtype, np.dtype):
                found = found.set_column(i, found.field(i), of.fill_null(float("nan")))
        return found.to_reader()
    if hasattr(table, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(table)
    batch = pa.record_batch(table)
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


@contextlib.contextmanager
def as_file(table: Any, beside: str) -> Iterator[str]:
    """Write a table into a file that is removed at the end, and yield its path. The file is beside a dataset, where there is room for it."""
    import tempfile  # with random, which a process that only opens datasets does without

    pa = _arrow()
    folder = None if "://" in beside else os.path.dirname(os.path.abspath(beside))
    with tempfile.TemporaryDirectory(prefix=".penstock-table-", dir=folder if folder and os.path.isdir(folder) else None) as inside:
        path = os.path.join(inside, "table.arrow")
        reader = batches(table)
        new = pa.ipc.new_stream if any(pa.types.is_dictionary(f.type) for f in reader.schema) else pa.ipc.new_file  # which has one dictionary
        with pa.OSFile(path, "wb") as sink, new(sink, reader.schema) as out:
            for batch in filter(len, reader):  # pyarrow writes strings of an empty slice so that nobody can read them
                out.write_batch(batch)
        try:
            yield path
        except Error as e:  # the file is nobody's
            text = re.sub(
                rf"file {re.escape(inside)}/(.*?): no such file or directory(; paths are relative[^;]*)?",
                r"file \1: a table in memory has no folder that its paths are relative to; make them absolute, as by "
                r"df[column].map(os.path.abspath), and give outside=True",
                str(e),
            )
            text = text.replace(f"source {path}", "the table").replace(path, "the table")
            raise type(e)(re.sub(r"\btable\.arrow:(\d+)", r"row \1", text)) from None


def fields_of(reader: Any) -> list[Field]:
    """Return the fields that the columns of record batches make in a Writer."""
    pa = _arrow()
    return [_field(pa, f.name, f.type) for f in reader.schema]


def _field(pa: Any, name: str, column: Any) -> Field:
    shape: list[int] = []
    of = column
    ragged = pa.types.is_list(of) or pa.types.is_large_list(of)
    if pa.types.is_dictionary(of):
        of = of.value_type
    if ragged:
        of = of.value_type
    while pa.types.is_fixed_size_list(of):
        shape.append(of.list_size)
        of = of.value_type
    if _is_text(pa, of) and not shape and not ragged:
        return Field(name, "uint8", ragged=True, content="utf-8")
    if not (pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_boolean(of)) or 0 in shape:
        raise Error(
            f"column {name!r} has the type {column}, which a Writer has no field for: cast it, or give the table to penstock.preprocess, "
            "which reads more"
        )
    return Field(name, np.dtype(of.to_pandas_dtype()).name, tuple(shape), ragged=ragged)


def _is_text(pa: Any, of: Any) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or (hasattr(pa.types, "is_string_view") and pa.types.is_string_view(of)))


def records(reader: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of record batches as records, whose values have the types of the columns."""
    pa, fields, first = _arrow(), fields_of(reader), 0
    for batch in reader:
        columns = []
        for f, column in zip(fields, batch.columns):
            if pa.types.is_dictionary(column.type):
                column = _decoded(pa, column)
            if column.null_count:
                at = first + next(i for i in range(len(column)) if not column[i].is_valid)
                raise Error(f"row {at} of the table has no value in column {f.name!r}; fill it, or leave the row out, as by drop_nulls or dropna")
            columns.append(_values(f, column))
        for row in zip(*columns):
            yield {f.name: value for f, value in zip(fields, row)}
        first += len(batch)


def _decoded(pa: Any, column: Any) -> Any:
    """Return the values of a dictionary array. Arrow takes none from a dictionary of views, which polars makes."""
    values = column.dictionary
    return (values.cast(pa.large_string()) if _is_text(pa, values.type) else values).take(column.indices)


def _values(f: Field, column: Any) -> Any:
    """Return the values of a column, one for each row."""
    if f.content:
        return column.to_pylist()
    flat = column.flatten() if f.ragged else column
    for _ in f.shape:
        flat = flat.flatten()
    if flat.null_count:
        raise Error(f"column {f.name!r} has lists with nulls; fill them first")
    a = flat.to_numpy(zero_copy_only=False).reshape(-1, *f.shape)
    if not f.ragged:
        return a
    ends = column.offsets.to_numpy().astype(np.int64)
    return [a[i:j] for i, j in zip(ends[:-1] - ends[0], ends[1:] - ends[0])]


def to_arrow(ds: Any, names: Iterable[str] | None = None) -> Any:
    """Return fields of a dataset or view as a table of Arrow: see Dataset.to_arrow."""
    pa = _arrow()
    names = chosen(names)
    if names is None:
        names = tuple(ds.fields)
        large = [f.name for f in ds.fields.values() if f.content in ("image", "images") or f.row_bytes > _SMALL]
        if large:
            raise Error(
                f"{ds.path}: {listed(large)} {'is' if len(large) == 1 else 'are'} large, and a table is all in memory; "
                f"name the fields that it is to have: fields={[name for name in names if name not in large] or large}"
            )
    columns = {name: ds[name][:] for name in names}  # which names a field that is not there
    return pa.table({name: _column(pa, ds.fields[name], values) for name, values in columns.items()})


def _column(pa: Any, f: Field, values: Any) -> Any:
    """Return the values of all records as an array of Arrow."""
    if not isinstance(values, Ragged):
        return _array(pa, f, values)
    if values.is_images:
        return pa.array([[file.tobytes() for file in record] for record in values.files()], pa.list_(pa.large_binary()))
    ends = pa.py_buffer(np.ascontiguousarray(values.offsets, np.int64))
    if f.content:
        of = pa.large_binary() if f.content == "image" else pa.large_string()
        made = pa.Array.from_buffers(of, len(values), [None, ends, pa.py_buffer(np.ascontiguousarray(values.values))])
        made.validate(full=True)
        return made
    return pa.LargeListArray.from_arrays(pa.array(values.offsets), _array(pa, f, values.values))


def _array(pa: Any, f: Field, values: np.ndarray) -> Any:
    a = bfloat16.to_float32(values) if f.dtype == "bfloat16" else np.asarray(values)
    if f.classes and a.ndim == 1 and (a.size == 0 or (a.min() >= 0 and a.max() < len(f.classes))):
        return pa.DictionaryArray.from_arrays(pa.array(a.astype(np.int32)), pa.array(f.classes, pa.string()))
    made = pa.array(np.ascontiguousarray(a).reshape(-1))
    for n in reversed(f.shape):
        made = pa.FixedSizeListArray.from_arrays(made, n)
    return made
