"""Raw files as other libraries write them, and the fields that they have."""

from __future__ import annotations

import dataclasses
import json
import os
import random
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

FIXED, RAGGED, TEXT = "fixed", "ragged", "text"


@dataclasses.dataclass
class Column:
    """A field: one value for each record.

    Args:
        kind: FIXED values are arrays of one shape and dtype; RAGGED ones differ in their first dimension; TEXT is str.
        values: The records' values.
        dtype: The dtype of the arrays; None for TEXT.
        shape: The shape of a record, or of a row of a ragged record.
    """

    kind: str
    values: list[Any]
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()

    def pick(self, records: list[int]) -> Column:
        return dataclasses.replace(self, values=[self.values[r] for r in records])


Columns = dict[str, Column]

_TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def fixed(random_: np.random.Generator, dtype: str, n: int, shape: tuple[int, ...]) -> Column:
    """Return random values of a dtype: the whole range of integers, floats with NaN, infinities and negative zero among them."""
    size = (n, *shape)
    if dtype == "bool":
        values = random_.integers(0, 2, size).astype(bool)
    elif dtype.startswith("float"):
        values = random_.normal(0, 100, size).astype(dtype)
        odd = random_.random(size) < 0.05
        values[odd] = random_.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]).astype(dtype), int(odd.sum()))
    else:
        info = np.iinfo(dtype)
        values = random_.integers(info.min, info.max, size, dtype, endpoint=True)
        values[random_.random(size) < 0.3] = 3  # values that filters find
    return Column(FIXED, list(values), np.dtype(dtype), shape)


def ragged(random_: np.random.Generator, dtype: str, n: int) -> Column:
    lengths = random_.integers(0, 6, n)
    lengths[:2] = (3, 1)[:n]  # lists of one length are an array
    rows = [fixed(random_, dtype, int(k), ()).values for k in lengths]
    return Column(RAGGED, [np.array(r, dtype) for r in rows], np.dtype(dtype))


def text(rng: random.Random, n: int) -> Column:
    return Column(TEXT, [rng.choice(["", "a", "Grüße", "x y", "年龄", 'quote"d', "comma, too"]) + f" w{rng.randrange(9)}" for _ in range(n)])


def arrays(rng: random.Random, n: int) -> Columns:
    """Return some fields of fixed shape."""
    random_ = np.random.default_rng(rng.getrandbits(32))
    shapes = [(), (), (), (3,), (2, 4), (1,), (5,)]
    return {
        name: fixed(random_, rng.choice(_TYPES), n, rng.choice(shapes))
        for name in rng.sample(["a", "b", "Value", "x_1", "label", "Zeit"], rng.randint(1, 4))
    }


def table(rng: random.Random, n: int, typed: bool, lists: bool) -> Columns:
    """Return columns of a table, lists of any length among them. A table that is text has int64, float32, bool and text only."""
    random_ = np.random.default_rng(rng.getrandbits(32))
    types = ["bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64"] if typed else ["bool", "int64", "float32"]
    columns: Columns = {}
    for name in rng.sample(["num", "real", "flag", "word", "k_2", "ids"], rng.randint(1, 4)):
        if name == "word":
            columns[name] = text(rng, n)
            continue
        if name == "ids":
            if lists:
                columns[name] = ragged(random_, rng.choice(["int32", "float32", "uint8"]) if typed else "int64", n)
            continue
        dtype = rng.choice(types)
        column = fixed(random_, dtype, n, ())
        if not typed and dtype == "float32":  # text has no sign of NaN, and pandas leaves NaN out
            column.values = [np.float32(v) if np.isfinite(v) and v % 1 else np.float32(0.5) for v in column.values]
        columns[name] = column
    return columns or {"word": text(rng, n)}


def stack(column: Column) -> np.ndarray[Any, Any]:
    """Return the values of a fixed column as one array."""
    return np.stack(column.values) if column.values else np.zeros((0, *column.shape), column.dtype)


def write_npz(path: str, columns: Columns, rng: random.Random) -> str:
    save = rng.choice([np.savez, np.savez_compressed])
    swapped = rng.random() < 0.2
    with open(path + ".npz", "wb") as f:
        save(f, **{k: stack(c).astype(stack(c).dtype.newbyteorder(">")) if swapped else stack(c) for k, c in columns.items()})  # type: ignore[operator]
    return path + ".npz"


def write_hdf5(path: str, columns: Columns, rng: random.Random) -> str:
    with h5py.File(path + ".h5", "w", libver=rng.choice(["earliest", "latest"])) as f:
        for name, c in columns.items():
            values, options = stack(c), {}
            if values.size and rng.random() < 0.5:
                options = {"chunks": tuple(rng.randint(1, s) for s in values.shape), "compression": rng.choice([None, "gzip", "lzf"])}
                options |= {"shuffle": rng.random() < 0.5, "fletcher32": rng.random() < 0.3}
            f.create_dataset(name, data=values, **options)
    return path + ".h5"


def write_csv(path: str, columns: Columns, rng: random.Random) -> str:
    frame = pd.DataFrame({k: [str(v).lower() if c.dtype == bool else v for v in c.values] for k, c in columns.items()})
    frame.to_csv(path + ".csv", index=False, sep=rng.choice([",", ";", "\t"]) if len(columns) > 1 else ",", lineterminator=rng.choice(["\n", "\r\n"]))
    return path + ".csv"


def write_jsonl(path: str, columns: Columns, rng: random.Random) -> str:
    plain = {k: [v if c.kind == TEXT else v.tolist() for v in c.values] for k, c in columns.items()}
    with open(path + ".jsonl", "w", encoding="utf-8") as f:
        for row in zip(*plain.values()):
            f.write(json.dumps(dict(zip(plain, row)), ensure_ascii=rng.random() < 0.5) + "\n")
    return path + ".jsonl"


def write_parquet(path: str, columns: Columns, rng: random.Random) -> str:
    arrays = {k: pa.array(stack(c) if c.kind == FIXED else c.values) for k, c in columns.items()}  # pandas would write NaN as a null
    pq.write_table(pa.table(arrays), path + ".parquet", compression=rng.choice(["snappy", "gzip", "zstd", "none"]), row_group_size=rng.randint(1, 50))
    return path + ".parquet"


def write_images(path: str, n: int, rng: random.Random) -> Columns:
    """Write a folder of classes of PNG files; return their pixels, (3, height, width), and labels."""
    random_ = np.random.default_rng(rng.getrandbits(32))
    height, width = rng.randint(1, 12), rng.randint(1, 12)
    grey = rng.random() < 0.3
    images, labels = [], []
    for label in range(rng.randint(1, 3)):
        os.makedirs(f"{path}/class_{label}")
        for i in range(max(1, n // 3)):
            pixels = random_.integers(0, 256, (height, width) if grey else (height, width, 3), np.uint8)
            Image.fromarray(pixels).save(f"{path}/class_{label}/{i:04}.png")
            images.append(np.stack([pixels] * 3) if grey else np.moveaxis(pixels, 2, 0))  # gray files become RGB, as in torchvision's ImageFolder
            labels.append(np.int64(label))
    return {
        "images": Column(FIXED, images, np.dtype(np.uint8), (3, height, width)),
        "labels": Column(FIXED, labels, np.dtype(np.int64)),
    }


#: How each kind of source is written.
Write = Callable[[str, Columns, random.Random], str]
ARRAYS: dict[str, Write] = {"npz": write_npz, "hdf5": write_hdf5}
TABLES: dict[str, Write] = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def make(kind: str, path: str, n: int, rng: random.Random) -> tuple[str, Columns]:
    """Write a source of a kind; return its path, and the fields that it has."""
    if kind == "images":
        columns = write_images(path, n, rng)
        return path, columns
    if kind in ARRAYS:
        columns = arrays(rng, n)
        path = ARRAYS[kind](path, columns, rng)
        return path, dict(sorted(columns.items())) if kind == "hdf5" else columns  # h5py lists names in their order, too
    columns = table(rng, n, kind == "parquet", lists=kind != "csv" and n > 1)
    return TABLES[kind](path, columns, rng), columns
