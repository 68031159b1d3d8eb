"""Windows in the order of chunks: their values, resumes and worlds, and how many chunks are decoded."""

import itertools
import json
import os
import tempfile
import unittest
import warnings
import zlib

import numpy as np

import penstock
from penstock import samplers
from tests import data

setUpModule = data.name_programs


def write_zarr(path, name, values, chunks, shape=None):
    """Write an array as Zarr in chunks of zlib. Without values there are no chunks, so that it is zeros of a shape."""
    shape = values.shape if shape is None else shape
    os.makedirs(os.path.join(path, name))
    with open(os.path.join(path, ".zgroup"), "w") as f:
        json.dump({"zarr_format": 2}, f)
    meta = {
        "zarr_format": 2,
        "shape": shape,
        "chunks": chunks,
        "dtype": "<f4",
        "compressor": {"id": "zlib", "level": 1},
        "fill_value": 0,
        "order": "C",
        "filters": None,
    }
    with open(os.path.join(path, name, ".zarray"), "w") as f:
        json.dump(meta, f)
    if values is None:
        return
    for at in itertools.product(*(range(-(-n // c)) for n, c in zip(shape, chunks))):
        chunk = np.zeros(chunks, np.float32)
        part = values[tuple(slice(k * c, (k + 1) * c) for k, c in zip(at, chunks))]
        chunk[tuple(slice(n) for n in part.shape)] = part
        with open(os.path.join(path, name, ".".join(map(str, at))), "wb") as f:
            f.write(zlib.compress(chunk.tobytes(), 1))


def loader(dataset, batch_size, *arguments, **options):
    return penstock.DataLoader(dataset, batch_size, *arguments, output="numpy", command=data.feed(), **options)


class ChunkShuffleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "field.zarr")

    def windows(self, **by):
        """Write a view of windows of the array, and return its path."""
        path = os.path.join(os.path.dirname(self.path), f"{len(os.listdir(os.path.dirname(self.path)))}.view.json")
        with open(path, "w") as f:
            json.dump({"penstock": "view", "version": 1, "window": {"dataset": self.path}, "by": by}, f)
        return path

    def test_ranks_have_chunks_of_their_own(self):
        values = np.random.default_rng(1).normal(size=(2000, 8)).astype(np.float32)
        write_zarr(self.path, "x", values, (10, 8))
        windows = self.windows(sizes={"0": 5})
        seen, decoded = [], 0
        for rank in range(2):
            with loader(windows, 8, sampler=samplers.ChunkShuffle(8192), rank=rank, world_size=2, num_workers=1, prefetch_factor=2) as dl:
                for batch in dl:
                    seen += batch.indices[batch.mask].tolist()
                decoded += dl.stats()["loader"]["Decoded"]
        self.assertEqual(sorted(seen), list(range(1996)))
        self.assertLess(decoded / values.nbytes, 1.35)

    def test_a_shuffle_that_decodes_much_says_so(self):
        write_zarr(self.path, "t2m", None, (1, 721, 1440), (1000, 721, 1440))
        windows = self.windows(sizes={"0": 24, "1": 128, "2": 128}, stride={"1": 128, "2": 128})
        with self.assertWarnsRegex(RuntimeWarning, "Shuffle decodes each chunk about .* times an epoch; ChunkShuffle decodes it 1"):
            loader(windows, 8, True).close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with loader(windows, 8, sampler=samplers.ChunkShuffle("2GiB")) as dl:
                self.assertRegex(dl.stats()["loader"]["Order"], r"\d+ lanes, .* of decoded chunks: each chunk is decoded 1\.\d\d times")

    def test_what_it_refuses(self):
        values = np.zeros((100, 8), np.float32)
        write_zarr(self.path, "x", values, (10, 8))
        windows = self.windows(sizes={"0": 5})
        for sampler, ds, text in (
            (samplers.ChunkShuffle(), self.path, "these records are not in chunks.*use Shuffle"),
            (samplers.ChunkShuffle(), [windows, self.path], "have the fields|has the fields|shape|is float32|are float32"),
            (samplers.ChunkShuffle(100), windows, "100 bytes of memory do not hold the chunks of 1 lane"),
            (samplers.ChunkShuffle("much"), windows, "memory is 'much'"),
            (samplers.ChunkShuffle(lanes=0), windows, "lanes is 0"),
            (samplers.Regions(2, samplers.ChunkShuffle()), windows, "ChunkShuffle cannot be within Regions"),
        ):
            with self.subTest(sampler), self.assertRaisesRegex(ValueError, text):
                loader(ds, 4, sampler=sampler)
        some = samplers.Subset(np.arange(3, 90, 2), inner=samplers.ChunkShuffle(1 << 20))
        with loader(windows, 4, sampler=some) as dl:
            got = np.concatenate([b.indices[b.mask] for b in dl])
        self.assertEqual(sorted(got.tolist()), list(range(3, 90, 2)))


if __name__ == "__main__":
    unittest.main()
