"""Patches of a volume of uint16 in Zarr shards, with flips and turns: penstock against MONAI and tensorstore.

    python3 volume.py FOLDER [--size 512] [--patch 96] [--seconds 10] [--rounds 3]

The volume is made in FOLDER if it is not there: Zarr 3, chunks of 64^3 in shards of 256^3, zstd. Each way reads patches at
random places, flips each axis with probability 0.5, and turns the last two, for some seconds, in turn, several rounds.
MONAI has the volume in a CacheDataset, and crops, flips and turns it in two workers. tensorstore reads the places of penstock
with a cache that holds the volume, and NumPy flips and turns them. It needs zarr, tensorstore and monai.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

try:
    import monai
    import numpy as np
    import tensorstore
    import torch
    import zarr
    from monai import transforms as M
except ImportError as e:
    sys.exit(f"needs numpy, torch, zarr, tensorstore and monai: {e}")

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

from ways import Way, compare

import penstock
from penstock import samplers
from penstock import transforms as T


def write(path: str, n: int) -> None:
    """Write the volume: spheres of some brightness, and the noise of a camera."""
    shard = min(n, 256)
    array = zarr.open_group(path + ".part", mode="w", zarr_format=3).create_array(
        "volume",
        shape=(n, n, n),
        dtype="uint16",
        chunks=(min(n, 64),) * 3,
        shards=(shard,) * 3,
        compressors=zarr.codecs.ZstdCodec(level=3),
        dimension_names=("z", "y", "x"),
    )
    rng, grid = np.random.default_rng(0), np.indices((shard, n, n), np.float32)
    centers = rng.uniform(0, n, (40, 3))
    for first in range(0, n, shard):
        values = rng.poisson(100, (shard, n, n)).astype(np.uint16)
        for z, y, x in centers:
            inside = (grid[0] + first - z) ** 2 + (grid[1] - y) ** 2 + (grid[2] - x) ** 2 < (n / 12) ** 2
            values[inside] += 1000
        array[first : first + shard] = values
    os.rename(path + ".part", path)


class Volume:
    """The volume, and the ways to read patches of it."""

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        self.path, self.o = path, options
        self.origins = np.random.default_rng(1).integers(0, options.size - options.patch + 1, (options.patches, 3))

    def penstock(self) -> Iterator[np.ndarray]:
        n = self.o.patch
        moves = [T.RandomFlip([-3, -2, -1]), T.RandomRot90((-2, -1), p=0.75)]
        windows = penstock.open(self.path).windows({"z": n, "y": n, "x": n}, origins=self.origins)
        order = samplers.ChunkShuffle(self.o.memory)
        with penstock.DataLoader(
            windows, self.o.batch, sampler=order, transforms={"volume": moves}, num_workers=self.o.workers, output="numpy"
        ) as loader:
            while True:
                for batch in loader:
                    yield batch["volume"]

    def tensorstore(self) -> Iterator[np.ndarray]:
        store = tensorstore.open(
            {"driver": "zarr3", "kvstore": {"driver": "file", "path": os.path.join(self.path, "volume")}},
            context=tensorstore.Context({"cache_pool": {"total_bytes_limit": 2 * 2 * self.o.size**3}}), recheck_cached_data="open",
        ).result()  # fmt: skip
        rng, n, b = np.random.default_rng(0), self.o.patch, self.o.batch
        waiting: list[list[object]] = []
        for first in range(0, len(self.origins) - b, b):  # two batches are being read in advance
            waiting.append([store[z : z + n, y : y + n, x : x + n].read() for z, y, x in self.origins[first : first + b]])
            if len(waiting) > 2:
                yield np.stack([moved(rng, f.result()) for f in waiting.pop(0)])  # type: ignore[attr-defined]

    def monai(self) -> Iterator[torch.Tensor]:
        n = (self.o.patch,) * 3
        keys = ["volume"]
        steps = M.Compose([
            M.Lambdad(keys, lambda path: torch.from_numpy(zarr.open(path, mode="r")["volume"][:].view(np.int16))[None]),  # torch cannot flip uint16
            M.RandSpatialCropSamplesd(keys, n, num_samples=self.o.batch, random_size=False),
            *(M.RandFlipd(keys, prob=0.5, spatial_axis=k) for k in range(3)),
            M.RandRotate90d(keys, prob=0.75, spatial_axes=(1, 2)),
        ])  # fmt: skip
        cached = monai.data.CacheDataset([{"volume": self.path}], steps, cache_rate=1.0, progress=False)
        many = torch.utils.data.Subset(cached, [0] * 10_000)
        for batch in monai.data.DataLoader(many, batch_size=1, num_workers=2):
            yield batch["volume"]


def moved(rng: np.random.Generator, patch: np.ndarray) -> np.ndarray:
    patch = patch[tuple(slice(None, None, int(s)) for s in rng.choice([1, -1], 3))]
    return np.rot90(patch, rng.integers(4), (-2, -1))


def check(volume: Volume) -> None:
    """Compare patches that are not moved with the array."""
    values, n = zarr.open(volume.path, mode="r")["volume"][:], volume.o.patch
    windows = penstock.open(volume.path).windows({"z": n, "y": n, "x": n}, origins=volume.origins)
    with penstock.DataLoader(windows, volume.o.batch, shuffle=True, output="numpy") as loader:
        for _, batch in zip(range(3), loader):
            for record, patch in zip(batch.indices, batch["volume"]):
                z, y, x = volume.origins[record]
                if not np.array_equal(patch, values[z : z + n, y : y + n, x : x + n]):
                    sys.exit(f"patch {record} has other values than the volume")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--patch", type=int, default=96)
    parser.add_argument("--patches", type=int, default=20_000, help="places of an epoch")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--memory", type=int, default=1 << 30, help="bytes of decoded chunks")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    path = os.path.join(options.folder, f"volume-{options.size}.zarr")
    if not os.path.exists(path):
        os.makedirs(options.folder, exist_ok=True)
        write(path, options.size)
    volume = Volume(path, options)
    check(volume)
    ways: dict[str, Way] = {"penstock": volume.penstock, "tensorstore and NumPy": volume.tensorstore, "MONAI, CacheDataset, 2 workers": volume.monai}
    compare(ways, "penstock", options.seconds, options.rounds)


if __name__ == "__main__":
    main()
