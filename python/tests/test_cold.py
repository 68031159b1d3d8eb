"""Records that are not in memory are read by their size, by all ways of reading them."""

import os
import random
import tempfile
import unittest

import numpy as np

import penstock

from . import data

try:
    import torch.utils.data

    from penstock.torch import TorchDataset
except ImportError:
    torch = None

setUpModule = data.name_programs

_PAGE = 4096


def bytes_read():
    """Return how many bytes this process had storage read."""
    with open("/proc/self/io") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("read_bytes"))


def evict(path):
    """Drop a file from the page cache. No process may have mapped its pages."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def one_by_one(ds, records):
    for i in records:
        ds[i]["x"].max()


def of_field(ds, records):
    for i in records:
        ds["x"][i].max()


def slices(ds, records):
    for i in records:
        ds["x"][i : i + 1].max()


def batches(ds, records):
    for _ in torch.utils.data.DataLoader(ds, batch_size=16, sampler=records, collate_fn=penstock.torch.collate):
        pass


WAYS = {
    "ds[i]": one_by_one,
    "field[i]": of_field,
    "slices": slices,
    "ds[indices]": lambda ds, records: ds[records],
    "take": lambda ds, records: ds["x"].take(records),
    "TorchDataset": batches,
}


@unittest.skipUnless(os.path.exists("/proc/self/io"), "this system does not count what processes read")
class TestCold(unittest.TestCase):
    def measure(self, path, read, scarce, source):
        """Return how many bytes are read for each of those on the pages of some records."""
        evict(path)
        ds = source(path)
        (column,) = getattr(ds, "dataset", ds)._columns.values()
        column.scarce = scarce
        size, offset = column.row_bytes, column.extents[0].offset
        records = random.Random(1).sample(range(len(ds)), 48)
        before = bytes_read()
        read(ds, records)
        pages = sum((offset + (i + 1) * size - 1) // _PAGE + 1 - (offset + i * size) // _PAGE for i in records)
        return (bytes_read() - before) / (pages * _PAGE)

    def test_reads_are_of_their_size(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.npy")
            for size in (4096, 32768, 150_528):
                np.save(path, np.ones((max(500, (16 << 20) // size), size), np.uint8))
                for name, read in WAYS.items():
                    if name == "TorchDataset" and torch is None:
                        continue
                    for scarce in (False, True):
                        with self.subTest(size=size, way=name, scarce=scarce):
                            times = self.measure(path, read, scarce, TorchDataset if name == "TorchDataset" else penstock.open)
                            if times < 0.5:
                                self.skipTest("this file system keeps files in memory")
                            self.assertLess(times, 1.3)


if __name__ == "__main__":
    unittest.main()
