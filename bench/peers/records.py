"""Batches of stored records by PyTorch's DataLoader, numpy.memmap and h5py.

usage: records.py FOLDER    one JSON request a line in, one JSON answer a line out

FOLDER holds the datasets 784 and 150528, and random. A request is an epoch, in order or shuffled, or some records ("cold").
Every batch is touched once in every cache line ("touch"), or made normalized float32 with every
second record mirrored ("normalize"). CPU time includes that of DataLoader's workers.
"""
import functools
import glob
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import h5py
import numpy as np
import penstock
import torch
import torchvision
from served import serve, timed
from torch.utils.data import DataLoader, Dataset

try:
    from torchvision.transforms import v2 as tv
except ImportError:  # torchvision before 0.15
    from torchvision import transforms as tv

torch.set_num_threads(1)
warnings.filterwarnings("ignore", ".*suggested max number of worker.*")  # 4 are measured all the same

BATCH = {"784": 256, "150528": 64}
MEAN, STD = (.485, .456, .406), (.229, .224, .225)
SCALE = torch.tensor([1 / (255 * s) for s in STD]).view(1, 3, 1, 1)
SHIFT = torch.tensor([m / s for m, s in zip(MEAN, STD)]).view(1, 3, 1, 1)


# Since PyTorch 2.0, DataLoader has a Dataset give all records of a batch by one call.
BATCHED = int(torch.__version__.split(".")[0]) >= 2


def scaled():
    """The transform from bytes to 0 to 1."""
    return tv.ToDtype(torch.float32, scale=True) if hasattr(tv, "ToDtype") else tv.ConvertImageDtype(torch.float32)


class Records(Dataset):
    """Views of the mapped file, one record at a time; the default collate function copies."""

    def __init__(self, array, normalize):
        self.array, self.t = array, torch.from_numpy(array)
        self.f = tv.Compose([tv.RandomHorizontalFlip(), scaled(), tv.Normalize(MEAN, STD)]) if normalize else None

    def __len__(self):
        return len(self.t)

    def __getitem__(self, i):
        return self.f(self.t[i]) if self.f else self.t[i]


class Batches(Records):
    """The same, a batch by one call of NumPy, whose take is several times as fast as indexing a
    tensor; batches are normalized as a whole."""

    def __getitems__(self, indices):
        x = torch.from_numpy(np.take(self.array, indices, axis=0))
        if self.f:
            flip = torch.rand(len(x)) < .5
            x[flip] = x[flip].flip(-1)
            x = x.to(torch.float32).mul_(SCALE).sub_(SHIFT)
        return x


def whole(x):
    return x


def touch(x):
    """Reads eight bytes of every cache line."""
    if isinstance(x, torch.Tensor):
        x = x.numpy()
    return int(x.reshape(-1).view(np.uint64)[::8].max())


def workers_time():
    """CPU seconds of this process and of its children that still run, to the nanosecond."""
    ns = time.process_time_ns()
    for stat in glob.glob("/proc/self/task/*/children"):
        for pid in Path(stat).read_text().split():
            for task in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                ns += int(Path(task).read_text().split()[0])
    return ns / 1e9


class Bench:
    def __init__(self, folder):
        self.folder = folder
        self.rng = np.random.default_rng(1)

    @functools.cache  # noqa: B019 - one object, which lives as long as the process
    def array(self, name):
        # Mode "c": PyTorch wants memory that could be written to. Nothing is.
        return np.load(os.path.join(self.folder, name, "x-00000.npy"), mmap_mode="c")

    @functools.cache  # noqa: B019 - one object, which lives as long as the process
    def hdf5(self, name):
        path = os.path.join(self.folder, name + ".h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("x", data=self.array(name))
        return h5py.File(path, "r")["x"]

    @functools.cache  # noqa: B019 - one object, which lives as long as the process
    def loader(self, name, kind, workers, shuffled, normalize):
        data = kind(self.array(name), normalize)
        options = {"persistent_workers": True, "prefetch_factor": 2, "multiprocessing_context": "fork"} if workers else {}
        if kind is Batches:
            options["collate_fn"] = whole
        return DataLoader(data, batch_size=BATCH[name], shuffle=shuffled, num_workers=workers, **options)

    def torch(self, kind, workers):
        def do(name, n, shuffled, normalize):
            for x in self.loader(name, kind, workers, shuffled, normalize):
                if not normalize:
                    touch(x)
        return do

    def order(self, total, n, shuffled):
        return self.rng.permutation(total)[:n] if shuffled else np.arange(n)

    def one_by_one(self, source):
        def do(name, n, shuffled, normalize):
            d = source(name)
            for i in self.order(len(d), n, shuffled).tolist():
                touch(np.array(d[i]) if source == self.array else d[i])
        return do

    def batched(self, source):
        def do(name, n, shuffled, normalize):
            d = source(name)
            order, step = self.order(len(d), n, shuffled), BATCH[name]
            for k in range(0, n, step):
                if not shuffled:
                    touch(d[k:k + step])
                elif source == self.hdf5:
                    touch(d[np.sort(order[k:k + step])])
                else:
                    touch(np.take(d, order[k:k + step], axis=0))
        return do

    def cold(self, way, folder, records):
        """Reads records one by one of a file that is not in memory, and returns what that takes."""
        path = os.path.join(folder, "x-00000.npy")
        m = np.load(path, mmap_mode="c")
        ds = penstock.open(folder)
        with open(path, "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            read = {
                "os.pread, NumPy": lambda i: np.frombuffer(os.pread(f.fileno(), m.strides[0], 4096 + i * m.strides[0]), np.uint8),
                "numpy.memmap, m[i]": m.__getitem__,
                "torch.from_numpy(m)[i]": torch.from_numpy(m).__getitem__,
                "penstock in Python, ds[i]": lambda i: ds[i]["x"],
            }[way]
            blocks = resource.getrusage(resource.RUSAGE_SELF).ru_inblock
            cost = timed(lambda: [touch(read(i)) for i in records])
            return {**cost, "read": 512 * (resource.getrusage(resource.RUSAGE_SELF).ru_inblock - blocks)}

    def ways(self):
        return [
            *((f"DataLoader {w}", f"DataLoader, {w} workers", self.torch(Records, w), True) for w in (0, 2, 4)),
            *((f"DataLoader batches {w}", f"DataLoader by take, {w} workers", self.torch(Batches, w), True) for w in (0, 2, 4) if BATCHED),
            ("memmap one by one", "numpy.memmap, m[i]", self.one_by_one(self.array), False),
            ("memmap", "numpy.memmap, take or m[a:b]", self.batched(self.array), False),
            ("h5py one by one", "h5py, d[i]", self.one_by_one(self.hdf5), False),
            ("h5py", "h5py, d[list] or d[a:b]", self.batched(self.hdf5), False),
        ]

    def answer(self, q):
        if not q["do"]:
            names = ["sequential touch", "shuffled touch", "shuffled normalize"]
            return {"text": f"torch {torch.__version__}, torchvision {torchvision.__version__}, NumPy {np.__version__}, "
                f"h5py {h5py.__version__} (libhdf5 {h5py.version.hdf5_version}), Python {sys.version.split()[0]}",
                "ways": [{"name": f"{k} {n}", "text": text} for k in names for n, text, _, both in self.ways() if both or "touch" in k]}
        if q["do"].startswith("cold "):
            return self.cold(q["do"][5:], os.path.join(self.folder, q["set"]), q["order"])
        order, work, name = q["do"].split(" ", 2)
        do = {n: f for n, _, f, _ in self.ways()}[name]
        return timed(lambda: do(q["set"], q["to"], order == "shuffled", work == "normalize"), workers_time)


if __name__ == "__main__":
    serve(Bench(sys.argv[1]).answer)
