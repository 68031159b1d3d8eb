"""Shuffled batches of stored records by the loaders that this Python has, as their users do it.

usage: batches.py PEER WORK FOLDER make       writes the peer's own copy of the records, unless it exists
       batches.py PEER WORK FOLDER SECONDS    prints a line at the first batch, then one of JSON, and waits for the end of stdin

WORK is 150528 or 784 (bytes a record: every cache line of a batch is touched), normalize (150528 bytes, every second
record mirrored, to float32) or gzip (150528 bytes, a chunk each, touched). FOLDER holds the datasets
150528 and 784, one .npy file each. A peer has several settings; one epoch by each says which is measured.
"""
import json
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from served import cpu_time

MEAN, STD = (.485, .456, .406), (.229, .224, .225)
SCALE = (1 / (255 * np.array(STD))).astype("f4")[:, None, None]
SHIFT = (np.array(MEAN) / np.array(STD)).astype("f4")[:, None, None]
THREADS = 2
PEERS = {}


class Work:
    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.size = "784" if name == "784" else "150528"
        self.shape = (1, 28, 28) if name == "784" else (3, 224, 224)
        self.batch = 256 if name == "784" else 64
        self.normalized, self.gzip = name == "normalize", name == "gzip"
        self.records = os.path.join(folder, self.size, "x-00000.npy")

    def array(self):
        """The records, mapped; of gzip, as many as are compressed in some seconds, smooth with noise."""
        if not self.gzip:
            return np.load(self.records, mmap_mode="r")
        rng, (y, x) = np.random.default_rng(1), np.mgrid[0:224, 0:224] / 224
        out = np.empty((1024, 3, 224, 224), "u1")
        for m in out:
            a, b, c, d = rng.uniform(1, 9, 4)
            plane = 118 + 60 * np.sin(a * x + b * y) + 40 * np.cos(c * x * y + d)
            m[:] = np.clip(plane + rng.normal(0, 9, (3, 224, 224)), 0, 255)
        return out

    def made(self, peer, write):
        """Where the peer's copy is, which write(path) makes."""
        path = os.path.join(self.folder, f"{peer}-{'gzip' if self.gzip else self.size}")
        if not os.path.exists(path):
            shutil.rmtree(path + ".part", ignore_errors=True)
            write(path + ".part")
            os.rename(path + ".part", path)
        return path

    def take(self, a, indices, out=None):
        x = np.take(a, indices, axis=0, out=out, mode="clip")
        return normalize(x) if self.normalized else x


def normalize(x):
    y = x.astype("f4")
    y[::2] = y[::2, ..., ::-1]
    y *= SCALE
    y -= SHIFT
    return y


def touch(x):
    """Reads eight bytes of every cache line."""
    return int(np.asarray(x).reshape(-1).view(np.uint64)[::8].max())


def peer(name, *works):
    def add(make):
        PEERS[name] = (make, works)
        return make
    return add


def steps(order, batch):
    return [order[k:k + batch] for k in range(0, len(order), batch)]


# A peer is a generator function of a Work. It yields its settings: a name, and a function that returns the batches of
# an epoch as NumPy arrays. None means that the peer's copy of the records exists.


@peer("penstock in Python", "150528", "784", "normalize", "gzip")
def _(w):
    # An installed wheel comes first; bench/run puts one into PYTHONPATH.
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
    yield None
    import penstock
    from penstock import transforms as T
    own = [T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)] if w.normalized else None
    path = w.made("h5py", None) if w.gzip else os.path.join(w.folder, w.size)
    loader = penstock.DataLoader(path, w.batch, shuffle=True, output="numpy", transforms=own)
    yield "default", lambda: (b["x"] for b in loader)


@peer("NumPy take", "150528", "784", "normalize")
def _(w):
    yield None
    a = w.array()
    pool = ThreadPoolExecutor(THREADS)

    def threads():
        waiting = []
        for i in steps(np.random.permutation(len(a)), w.batch):
            waiting.append(pool.submit(w.take, a, i))
            if len(waiting) > THREADS:
                yield waiting.pop(0).result()
        yield from (f.result() for f in waiting)

    def loop():
        out = np.empty((w.batch, *w.shape), "u1")
        for i in steps(np.random.permutation(len(a)), w.batch):
            yield w.take(a, i, out[:len(i)])
    yield "one loop", loop
    yield f"{THREADS} threads", threads


@peer("h5py", "150528", "784", "gzip")
def _(w):
    import h5py

    def write(path):
        with h5py.File(path, "w") as f:
            a = w.array()
            f.create_dataset("x", data=a, **({"chunks": (1, *a.shape[1:]), "compression": "gzip", "compression_opts": 4} if w.gzip else {}))
    path = w.made("h5py", write)
    yield None
    d = h5py.File(path, "r")["x"]
    yield "one by one", lambda: (np.stack([d[k] for k in i]) for i in steps(np.random.permutation(len(d)), w.batch))
    yield "sorted lists", lambda: (d[np.sort(i)] for i in steps(np.random.permutation(len(d)), w.batch))


@peer("hidefix", "gzip")
def _(w):
    path = w.made("h5py", None)
    yield None
    import hidefix
    d = hidefix.Index(path).dataset("x")
    shape = d.shape()
    n, rest = shape[0], tuple(slice(0, k) for k in shape[1:])
    pool = ThreadPoolExecutor(THREADS)

    def read(i):
        return np.stack([d[(slice(int(k), int(k) + 1), *rest)] for k in i])

    def threads():
        waiting = []
        for i in steps(np.random.permutation(n), w.batch):
            waiting.append(pool.submit(read, i))
            if len(waiting) > THREADS:
                yield waiting.pop(0).result()
        yield from (f.result() for f in waiting)
    yield "one loop", lambda: (read(i) for i in steps(np.random.permutation(n), w.batch))
    yield f"{THREADS} threads", threads


@peer("tensorstore", "150528", "gzip")
def _(w):
    import tensorstore as ts
    codecs = [{"name": "gzip", "configuration": {"level": 4}}] if w.gzip else []

    def write(path):
        a = w.array()
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": os.path.abspath(path)}, "metadata": {
            "shape": list(a.shape), "data_type": "uint8", "codecs": [{"name": "bytes"}, *codecs],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, *a.shape[1:]]}}}}
        d = ts.open(spec, create=True).result()
        for k in range(0, len(a), 64):
            d[k:k + 64] = a[k:k + 64]
    path = os.path.abspath(w.made("zarr", write))
    yield None
    d = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}, "context": {"data_copy_concurrency": {"limit": THREADS}}}).result()

    def ahead(depth):
        waiting = []
        for i in steps(np.random.permutation(d.shape[0]), w.batch):
            waiting.append(d[i].read())
            if len(waiting) > depth:
                yield waiting.pop(0).result()
        yield from (f.result() for f in waiting)
    yield "one read ahead", lambda: ahead(1)
    yield "two reads ahead", lambda: ahead(2)


@peer("zarr-python", "150528", "gzip")
def _(w):
    import zarr

    def write(path):
        a = w.array()
        codec = zarr.codecs.GzipCodec(level=4) if w.gzip else None
        zarr.create_array(path, shape=a.shape, chunks=(1, *a.shape[1:]), dtype="u1", compressors=codec)[:] = a
    d = zarr.open_array(w.made("zarr-python", write), mode="r")
    yield None
    yield "oindex", lambda: (d.oindex[i] for i in steps(np.random.permutation(d.shape[0]), w.batch))


@peer("PyTorch DataLoader", "150528", "784", "normalize")
def _(w):
    yield None
    import torch
    torch.set_num_threads(1)
    a = w.array()

    class Batches(torch.utils.data.Dataset):
        def __len__(self):
            return len(a)

        def __getitems__(self, i):
            return torch.from_numpy(w.take(a, i))
    for workers in 0, THREADS:
        options = {"persistent_workers": True, "multiprocessing_context": "fork"} if workers else {}
        loader = torch.utils.data.DataLoader(Batches(), w.batch, shuffle=True, num_workers=workers, collate_fn=whole, **options)
        yield f"by take, {workers} workers", lambda loader=loader: (x.numpy() for x in loader)


def whole(x):
    return x


@peer("Grain", "150528", "784", "normalize")
def _(w):
    yield None
    import grain.python as grain
    a = w.array()
    data = grain.MapDataset.range(len(a)).shuffle(seed=1).batch(w.batch).map(lambda i: w.take(a, i))
    for threads in 0, 1, THREADS:
        read = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4 if threads else 0)
        yield f"batch gather, {threads} threads", lambda read=read: iter(data.to_iter_dataset(read))


@peer("SPDL", "150528", "784", "normalize")
def _(w):
    yield None
    from spdl.pipeline import PipelineBuilder
    a = w.array()

    def epoch(threads):
        source = steps(np.random.permutation(len(a)), w.batch)
        pipeline = PipelineBuilder().add_source(source).pipe(lambda i: w.take(a, i), concurrency=threads).add_sink(4).build(num_threads=threads)
        with pipeline.auto_stop():
            yield from pipeline
    for threads in 1, THREADS:
        yield f"batch gather, {threads} threads", lambda threads=threads: epoch(threads)


@peer("tf.data", "150528", "784", "normalize")
def _(w):
    yield None
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    a = np.array(w.array())

    def finish(ds):
        if w.normalized:
            def f(x):
                x = tf.where(tf.random.uniform((tf.shape(x)[0], 1, 1, 1)) < .5, tf.reverse(x, [3]), x)
                return tf.cast(x, tf.float32) * SCALE - SHIFT
            ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)
        options = tf.data.Options()
        options.threading.private_threadpool_size = THREADS
        ds = ds.prefetch(tf.data.AUTOTUNE).with_options(options)
        return lambda: ds.as_numpy_iterator()
    yield "slices, shuffled by a window of 1,000", finish(
        tf.data.Dataset.from_tensor_slices(a).shuffle(1000).batch(w.batch, num_parallel_calls=THREADS))
    all = tf.constant(a)
    order = tf.data.Dataset.range(len(a)).shuffle(len(a)).batch(w.batch)
    yield "gather", finish(order.map(lambda i: tf.gather(all, i), num_parallel_calls=THREADS))


@peer("DALI", "150528", "784", "normalize")
def _(w):
    yield None
    from nvidia.dali import fn, pipeline_def, types
    a = w.array()

    def batches():
        while True:
            for i in steps(np.random.permutation(len(a) // w.batch * w.batch), w.batch):
                yield np.take(a, i, axis=0)

    def epoch(p):
        for _ in range(len(a) // w.batch):
            yield p.run()[0].as_array()

    @pipeline_def(batch_size=w.batch, num_threads=THREADS, device_id=None)
    def pipeline():
        x = fn.external_source(source=batches(), batch=True, no_copy=True, layout="CHW")
        if w.normalized:
            x = fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip(),
                                         mean=[255 * v for v in MEAN], std=[255 * v for v in STD])
        return x
    p = pipeline()
    p.build()
    yield f"external source by take, {THREADS} threads", lambda: epoch(p)


@peer("FFCV", "150528", "784", "normalize")
def _(w):
    from ffcv.fields import NDArrayField
    from ffcv.loader import Loader, OrderOption
    from ffcv.writer import DatasetWriter
    a = w.array()

    class Records:
        def __len__(self):
            return len(a)

        def __getitem__(self, i):
            return (np.array(a[i]),)
    path = w.made("ffcv", lambda path: DatasetWriter(
        path, {"x": NDArrayField(np.dtype("u1"), w.shape)}, num_workers=1).from_indexed_dataset(Records()))
    yield None
    from ffcv.fields.decoders import NDArrayDecoder
    own = [NDArrayDecoder()] + ([fused()] if w.normalized else [])
    for workers in 1, THREADS:
        loader = Loader(path, w.batch, num_workers=workers, order=OrderOption.RANDOM, os_cache=True, pipelines={"x": own})
        yield f"os_cache, {workers} workers", lambda loader=loader: (b[0] for b in loader)


def fused():
    """Mirrors every second record and normalizes, in one operation."""
    from dataclasses import replace

    from ffcv.pipeline.allocation_query import AllocationQuery
    from ffcv.pipeline.compiler import Compiler
    from ffcv.pipeline.operation import Operation
    scale, shift = SCALE.reshape(-1), SHIFT.reshape(-1)

    class Normalize(Operation):
        def generate_code(self):
            parallel = Compiler.get_iterator()

            def f(x, out):
                for i in parallel(x.shape[0]):
                    for c in range(3):
                        for y in range(224):
                            if i % 2:
                                for k in range(224):
                                    out[i, c, y, k] = x[i, c, y, k] * scale[c] - shift[c]
                            else:
                                for k in range(224):
                                    out[i, c, y, k] = x[i, c, y, 223 - k] * scale[c] - shift[c]
                return out[:x.shape[0]]
            f.is_parallel = True
            return f

        def declare_state_and_memory(self, state):
            return replace(state, dtype=np.dtype("f4")), AllocationQuery(state.shape, np.dtype("f4"))
    return Normalize()


@peer("Hugging Face datasets", "150528", "784")
def _(w):
    import datasets
    import pyarrow as pa
    datasets.disable_progress_bars()

    def write(path):
        a = w.array()
        flat = pa.FixedSizeListArray.from_arrays(pa.array(np.asarray(a).reshape(-1)), int(w.size))
        datasets.Dataset(pa.table({"x": flat})).save_to_disk(path)
    path = w.made("hf", write)
    yield None
    ds = datasets.load_from_disk(path).with_format("numpy")
    yield "lists of indices", lambda: (ds[i]["x"] for i in steps(np.random.permutation(len(ds)), w.batch))
    yield "shuffle() and iter()", lambda: (b["x"] for b in ds.shuffle().iter(w.batch))


@peer("litdata", "150528")
def _(w):
    import litdata

    def write(path):
        litdata.optimize(fn=Record(w.array()), inputs=list(range(len(w.array()))), output_dir=path, chunk_bytes="64MB", num_workers=1)
    path = w.made("litdata", write)
    yield None
    import torch
    torch.set_num_threads(1)

    def batch(rows):
        return np.stack([np.frombuffer(x, "u1").reshape(w.shape) for x in rows])

    def data():  # by default it decodes a hundred records for each that it wants
        return litdata.StreamingDataset(path, shuffle=True, batch_decode=0)

    every = data()

    def loop():
        rows = []
        for x in every:
            rows.append(x)
            if len(rows) == w.batch:
                yield batch(rows)
                rows = []
    yield "bytes, a loop", loop
    for workers in 0, THREADS:
        loader = litdata.StreamingDataLoader(data(), batch_size=w.batch, num_workers=workers, collate_fn=batch)
        yield f"bytes, {workers} workers", lambda loader=loader: iter(loader)


class Record:
    def __init__(self, a):
        self.a = a

    def __call__(self, i):
        return self.a[i].tobytes()


@peer("MosaicML streaming", "150528")
def _(w):
    import streaming

    def write(path):
        with streaming.MDSWriter(out=path, columns={"x": "ndarray:uint8:" + ",".join(map(str, w.shape))}, progress_bar=False) as out:
            for x in w.array():
                out.write({"x": np.array(x)})
    path = w.made("mds", write)
    yield None
    streaming.base.util.clean_stale_shared_memory()
    import torch
    torch.set_num_threads(1)  # its locks of files can be given to no other process
    loader = torch.utils.data.DataLoader(streaming.StreamingDataset(local=path, shuffle=True, batch_size=w.batch), w.batch)
    yield "0 workers", lambda: (b["x"].numpy() for b in loader)


@peer("WebDataset", "150528")
def _(w):
    import webdataset

    def write(path):
        os.mkdir(path)
        with webdataset.ShardWriter(os.path.join(path, "%03d.tar"), maxsize=1 << 26, maxcount=1 << 20, verbose=0) as out:
            for k, x in enumerate(w.array()):
                out.write({"__key__": f"{k:08d}", "bin": x.tobytes()})
    path = w.made("webdataset", write)
    yield None
    files = sorted(os.path.join(path, f) for f in os.listdir(path))

    def record(x):
        return np.frombuffer(x[0], "u1").reshape(w.shape)
    data = webdataset.WebDataset(files, shardshuffle=len(files), empty_check=False).shuffle(1000)
    data = data.to_tuple("bin").map(record).batched(w.batch, collation_fn=np.stack)
    yield "a loop", lambda: (b for b in data)
    import torch
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=THREADS, persistent_workers=True)
    yield f"{THREADS} workers", lambda: (np.asarray(b) for b in loader)


def main():
    name, w = sys.argv[1], Work(sys.argv[2], sys.argv[3])
    if name == "list":
        print(json.dumps({n: works for n, (_, works) in PEERS.items()}))
        return
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    settings = PEERS[name][0](w)
    next(settings)
    if sys.argv[4] == "make":
        return

    def epoch(make):
        n = 0
        for x in make():
            n += len(x)
            if not w.normalized:
                touch(x)
            if not first:
                first.append(time.time())
                print("first", file=out, flush=True)
        return n
    first, tried = [], []
    for text, make in settings:
        epoch(make)  # what is compiled or started on first use
        start = time.perf_counter()
        n = epoch(make)
        tried.append((n / (time.perf_counter() - start), text, make))
    _, text, make = max(tried, key=lambda t: t[0])
    rates, records, cpu, start = [], 0, cpu_time(), time.perf_counter()
    while len(rates) < 3 or time.perf_counter() - start < float(sys.argv[4]):
        began = time.perf_counter()
        n = epoch(make)
        rates.append(n / (time.perf_counter() - began))
        records += n
    found = {"setting": text, "rate": sorted(rates)[len(rates) // 2], "cpu": (cpu_time() - cpu) / records}
    print(json.dumps(found), file=out, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
