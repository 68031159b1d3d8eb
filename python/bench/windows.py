"""Patches of a chunked field of time, lat and lon: penstock against xbatcher with dask, tensorstore and h5py.

    python3 windows.py FOLDER [--steps 1000] [--window 24,128,128] [--stride 1,64,64] [--formats zarr2-zstd,zarr2-blosc,zarr3-zstd,hdf5-gzip]

The array looks like ERA5: float32, 721 x 1440 grid points, one time step a chunk. It is made in FOLDER if it is not there. Each
way reads patches for some seconds, in turn, several rounds, after one that does not count. Shown are the medians: patches a
second, bytes of chunks decoded for each byte of patches where that is known, and how many times as fast penstock's chunk
shuffle is (the median of the ratios of the rounds). tensorstore and h5py read the very patches of the chunk shuffle, in its order,
with a cache of the same memory. xbatcher has no random order: it reads patches as they follow each other, and once more tuned,
whole time steps at once from which it cuts patches. Every way's first batches are compared with NumPy.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator

try:
    import h5py
    import numpy as np
    import tensorstore
    import xarray
    import xbatcher
    import zarr
except ImportError as e:
    sys.exit(f"needs numpy, zarr, tensorstore, xarray, dask, xbatcher and h5py: {e}")

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock

Batches = Iterator[np.ndarray]
DIMS = ("time", "lat", "lon")


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(","))


def field(steps: int, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Yield a temperature for each time step: waves that move, and noise of the precision of a sensor."""
    rng = np.random.default_rng(0)
    lat, lon = np.linspace(-np.pi / 2, np.pi / 2, shape[0])[:, None], np.linspace(0, 2 * np.pi, shape[1])[None, :]
    for t in range(steps):
        waves = 273 + 30 * np.cos(lat) + 5 * np.sin(3 * lon + t / 10) * np.cos(2 * lat) + rng.normal(0, 0.3, shape)
        yield np.round(waves, 2).astype(np.float32)


def write(path: str, form: str, steps: int, shape: tuple[int, ...]) -> None:
    """Write the array in one of the formats."""
    container, codec = form.split("-")
    size, chunk = (steps, *shape), (1, *shape)
    part = path + ".part"
    if container == "hdf5":
        with h5py.File(part, "w") as f:
            d = f.create_dataset("t2m", size, "f4", chunks=chunk, compression="gzip", compression_opts=4)
            for t, values in enumerate(field(steps, shape)):
                d[t] = values
    else:
        version = int(container.removeprefix("zarr"))
        group = zarr.open_group(part, mode="w", zarr_format=version)
        array = group.create_array("t2m", shape=size, chunks=chunk, dtype="f4", compressors=compressor(version, codec), **named(version))
        if version == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = list(DIMS)
        for t, values in enumerate(field(steps, shape)):
            array[t] = values
    os.rename(part, path)


def named(version: int) -> dict[str, list[str]]:
    return {} if version == 2 else {"dimension_names": list(DIMS)}


def compressor(version: int, codec: str) -> object:
    if version == 2:
        import numcodecs

        return numcodecs.Zstd(level=3) if codec == "zstd" else numcodecs.Blosc("lz4", clevel=5, shuffle=1)
    return zarr.codecs.ZstdCodec(level=3) if codec == "zstd" else zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")


class Patches:
    """The patches of one file, and the ways to read them."""

    def __init__(self, path: str, form: str, options: argparse.Namespace) -> None:
        self.path, self.form, self.options = path, form, options
        self.size, self.stride = options.window, options.stride
        steps, (height, width) = options.steps, options.shape
        self.starts = [range(0, n - w + 1, s) for n, w, s in zip((steps, height, width), self.size, self.stride)]
        self.count = int(np.prod([len(s) for s in self.starts]))
        self.decoded: dict[str, float] = {}
        self.order: list[np.ndarray] = []  # records of the batches of the chunk shuffle

    def at(self, record: int) -> tuple[slice, ...]:
        places = np.unravel_index(record, [len(s) for s in self.starts])
        return tuple(slice(s[k], s[k] + w) for s, k, w in zip(self.starts, places, self.size))

    def view(self) -> str:
        """Return the path of a view of the patches."""
        by = {"sizes": dict(zip("012", self.size)), "stride": dict(zip("012", self.stride))}
        path = os.path.join(os.path.dirname(self.path), f"{self.form}.view.json")
        with open(path, "w") as f:
            json.dump({"penstock": "view", "version": 1, "window": {"dataset": self.path}, "by": by}, f)
        return path

    def penstock(self, name: str, sampler: object) -> Batches:
        o = self.options
        with penstock.DataLoader(self.view(), o.batch, sampler=sampler, seed=1, num_workers=o.workers, output="numpy") as loader:
            try:
                for batch in loader:
                    if name == "chunk shuffle" and len(self.order) < o.most:
                        self.order.append(batch.indices.copy())
                    yield batch["t2m"]
            finally:
                stats = loader.stats()["loader"]
                self.decoded[name] = stats["Decoded"] / max(1, stats["ReadBytes"])
                if name == "chunk shuffle":
                    self.plan = stats["Order"]

    def chunk_shuffle(self) -> Batches:
        self.order.clear()
        return self.penstock("chunk shuffle", penstock.samplers.ChunkShuffle(self.options.memory))

    def shuffle(self) -> Batches:
        return self.penstock("shuffle", penstock.samplers.Shuffle())

    def tensorstore(self) -> Batches:
        driver = {"zarr2": "zarr", "zarr3": "zarr3"}[self.form.split("-")[0]]
        store = tensorstore.open(
            {"driver": driver, "kvstore": {"driver": "file", "path": os.path.join(self.path, "t2m")}},
            context=tensorstore.Context({"cache_pool": {"total_bytes_limit": self.options.memory}}),
            recheck_cached_data="open",
        ).result()
        waiting: list[list[object]] = []
        for records in self.order:  # two batches are being read in advance
            waiting.append([store[self.at(r)].read() for r in records])
            if len(waiting) > 2:
                yield np.stack([f.result() for f in waiting.pop(0)])
        for futures in waiting:
            yield np.stack([f.result() for f in futures])

    def h5py(self) -> Batches:
        with h5py.File(self.path, "r", rdcc_nbytes=self.options.memory, rdcc_nslots=100_003) as f:
            for records in self.order:
                yield np.stack([f["t2m"][self.at(r)] for r in records])

    def opened(self) -> xarray.Dataset:
        if self.form.startswith("hdf5"):
            return xarray.Dataset({"t2m": (DIMS, _lazy(self.path))})
        return xarray.open_zarr(self.path, consolidated=False)

    def xbatcher(self) -> Batches:
        overlap = {d: w - s for d, w, s in zip(DIMS, self.size, self.stride) if w > s}
        yield from self.batched(p["t2m"].values for p in xbatcher.BatchGenerator(self.opened(), dict(zip(DIMS, self.size)), input_overlap=overlap))

    def xbatcher_tuned(self) -> Batches:
        steps = dict(zip(DIMS, (self.size[0], *self.options.shape)))
        made = xbatcher.BatchGenerator(self.opened(), steps, input_overlap={"time": self.size[0] - self.stride[0]})
        (_, height, width), (_, rows, columns) = self.size, self.starts
        yield from self.batched(v[:, i : i + height, k : k + width] for v in (p["t2m"].values for p in made) for i in rows for k in columns)

    def batched(self, patches: Iterator[np.ndarray]) -> Batches:
        while batch := list(itertools.islice(patches, self.options.batch)):
            yield np.stack(batch)

    def ways(self) -> dict[str, Callable[[], Batches]]:
        found = {
            "chunk shuffle": self.chunk_shuffle,
            "shuffle": self.shuffle,
            "xbatcher, dask": self.xbatcher,
            "xbatcher, tuned": self.xbatcher_tuned,
        }
        if self.form.startswith("hdf5"):
            return {**found, "h5py, its order": self.h5py}
        return {**found, "tensorstore, its order": self.tensorstore}


def _lazy(path: str) -> object:
    import dask.array

    d = h5py.File(path, "r")["t2m"]
    return dask.array.from_array(d, chunks=d.chunks, lock=True)


def check(patches: Patches, values: np.ndarray) -> None:
    """Compare the first batches of all ways with NumPy."""
    for name, way in patches.ways().items():
        in_order = iter(range(patches.count)) if "xbatcher" in name else None
        for k, batch in zip(range(3), way()):
            if name == "shuffle":
                continue  # whose records are those of the seed, and not kept
            records = [next(in_order) for _ in batch] if in_order else patches.order[k]
            for r, patch in zip(records, batch):
                if not np.array_equal(patch, values[patches.at(int(r))]):
                    sys.exit(f"{patches.form}, {name}: patch {r} has other values than the array")


def rate(batches: Batches, seconds: float) -> float:
    """Return the patches a second that come in some seconds, or in all."""
    start, n = time.perf_counter(), 0
    try:
        for batch in batches:
            n += len(batch)
            if time.perf_counter() - start > seconds:
                break
        return n / (time.perf_counter() - start)
    finally:
        batches.close()  # type: ignore[attr-defined]


def compare(patches: Patches, options: argparse.Namespace) -> None:
    rates: dict[str, list[float]] = {name: [] for name in patches.ways()}
    for k in range(options.rounds + 1):
        for name, way in patches.ways().items():
            found = rate(way(), options.seconds)
            if k > 0:
                rates[name].append(found)
    print(f"\n{patches.form}: {patches.plan}")
    print(f"{'way':24} {'patches/s':>10} {'MB/s':>8} {'decoded/used':>13} {'chunk shuffle is':>17}")
    size = np.prod(patches.size) * 4 / 1e6
    for name, found in rates.items():
        ratio = statistics.median(a / b for a, b in zip(rates["chunk shuffle"], found))
        decoded = f"{patches.decoded[name]:.2f}" if name in patches.decoded else ""
        print(f"{name:24} {statistics.median(found):10.1f} {statistics.median(found) * size:8.0f} {decoded:>13} {ratio:16.2f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--shape", type=numbers, default=(721, 1440))
    parser.add_argument("--window", type=numbers, default=(24, 128, 128))
    parser.add_argument("--stride", type=numbers, default=(1, 64, 64))
    parser.add_argument("--formats", default="zarr2-zstd,zarr2-blosc,zarr3-zstd,zarr3-blosc,hdf5-gzip")
    parser.add_argument("--memory", type=int, default=1 << 30, help="bytes of decoded chunks")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=10, help="that each way reads in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=4000, help="batches whose order is kept for tensorstore and h5py")
    parser.add_argument("--check", action="store_true", help="compare values with NumPy, for which the array has to fit into memory")
    options = parser.parse_args()
    for form in options.formats.split(","):
        path = os.path.join(options.folder, f"{form}-{options.steps}" + (".h5" if form.startswith("hdf5") else ".zarr"))
        if not os.path.exists(path):
            os.makedirs(options.folder, exist_ok=True)
            write(path, form, options.steps, options.shape)
        patches = Patches(path, form, options)
        if options.check:
            check(patches, np.stack(list(field(options.steps, options.shape))))
        compare(patches, options)


if __name__ == "__main__":
    main()
