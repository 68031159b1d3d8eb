"""Windows in the order of chunks: their values, resumes and worlds, and how many chunks are decoded."""

import itertools
import json
import os
import random
import re
import tempfile
import unittest
import warnings
import zlib

import numpy as np

import penstock
from penstock import samplers
from tests import data

RESUMES = int(os.environ.get("PENSTOCK_TEST_WINDOW_RESUMES", "8"))


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

    def test_values_resumes_and_worlds(self):
        values = np.random.default_rng(1).normal(size=(400, 12, 16)).astype(np.float32)
        write_zarr(self.path, "t2m", values, (2, 12, 8))
        outputs = [{"name": "x", "of": "t2m"}, {"name": "y", "of": "t2m", "sizes": {"0": 1}, "lead": {"0": 6}}]
        windows = self.windows(sizes={"0": 6, "1": 4, "2": 5}, stride={"1": 4, "2": 3}, outputs=outputs)
        origins = [(t, 4 * i, 3 * k) for t in range(394) for i in range(3) for k in range(4)]
        order = samplers.ChunkShuffle("64KiB")
        chance = random.Random(3)
        with loader(windows, 16, sampler=order, seed=5, num_workers=2) as dl:
            first = []
            for batch in dl:
                first.append(batch.indices.tolist())
                for i, x, y in zip(batch.indices, batch["x"], batch["y"]):
                    t, lat, lon = origins[i]
                    np.testing.assert_array_equal(x, values[t : t + 6, lat : lat + 4, lon : lon + 5])
                    np.testing.assert_array_equal(y, values[t + 6 : t + 7, lat : lat + 4, lon : lon + 5])
            self.assertEqual(set(itertools.chain(*first)), set(range(len(origins))))
            stats = dl.stats()["loader"]
            planned = float(re.match(r"\d+ lanes, .* of decoded chunks: each chunk is decoded (\S+) times an epoch", stats["Order"])[1])
            self.assertLess(planned, 1.8)  # windows cross the chunks of the last axis
            self.assertLess(stats["Decoded"] / values.nbytes, planned + 0.1)
            state = dl.state_dict()
        for _ in range(RESUMES):
            world, step = chance.choice((1, 2, 4)), chance.randrange(len(first) - 1)
            got = []
            for rank in range(world):
                sampler = samplers.ChunkShuffle("64KiB", ranks=1)
                with loader(windows, 16 // world, sampler=sampler, seed=5, num_workers=1, rank=rank, world_size=world) as dl:
                    dl.load_state_dict({**state, "epoch": 0, "step": step} if "epoch" in state else state)
                    got += next(iter(dl)).indices.tolist()
            self.assertEqual(got, first[step])

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

    def test_several_datasets(self):
        """Each chunk of several files is decoded about once, all windows come once, and batches have the share of each file."""
        parts, arrays = [], []
        for k, n in enumerate((900, 300)):
            self.path = os.path.join(os.path.dirname(self.path), f"{k}.zarr")
            arrays.append(np.random.default_rng(k).normal(size=(n, 8)).astype(np.float32))
            write_zarr(self.path, "x", arrays[-1], (10, 8))
            parts.append(self.windows(sizes={"0": 5}))
        want = np.concatenate([np.lib.stride_tricks.sliding_window_view(a, 5, 0).swapaxes(1, 2) for a in arrays])
        views = [penstock.open(part) for part in parts]
        for dataset in (parts, views[0].concat(views[1])):
            with loader(dataset, 8, sampler=samplers.ChunkShuffle(8192), num_workers=1) as dl:
                seen = []
                for batch in dl:
                    records = batch.indices[batch.mask]
                    np.testing.assert_array_equal(batch["x"][batch.mask], want[records])
                    seen.append(records.copy())
                stats = dl.stats()["loader"]
            self.assertEqual(sorted(np.concatenate(seen).tolist()), list(range(len(want))))
            for records in seen[:-1]:
                self.assertLessEqual(abs(int((records < 896).sum()) - 6), 1)
            self.assertRegex(stats["Order"], "lanes.*each chunk is decoded 1")
            self.assertLess(stats["Decoded"] / want[:, 0].nbytes, 1.5)


if __name__ == "__main__":
    unittest.main()
