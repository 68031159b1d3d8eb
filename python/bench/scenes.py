"""Stage loops whose bottleneck is known, and compare what DataLoader.diagnose() says of each with it.

    python3 scenes.py [--rounds 1] [--match TEXT] [--folder FOLDER]

Each scene runs in a process of its own, for a second or two. Then the advice is followed, where a sentence has one, and the gain is
compared with the promise: a sentence that promises one should be right within 15 %, and no advice should make the loop slower. All scenes
take about two minutes on an idle machine; where other programs compute, most scenes are called "other programs".
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import http.server
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock
from penstock import samplers
from penstock import transforms as T

#: The parts of a loop in JSON, so that a process of its own can play it: see play.
Scene = dict[str, Any]
Follow = Callable[[Scene, str], Scene]


# --- The loop, in a process of its own.


def spin(seconds: float) -> None:
    """Keep this thread's core busy by NumPy, as a training step does."""
    a, end = np.ones(4096, np.float32), time.perf_counter() + seconds
    while time.perf_counter() < end:
        np.sqrt(a, out=a)


def hashed(seconds: float) -> None:
    block, end = bytes(1 << 18), time.perf_counter() + seconds
    while time.perf_counter() < end:
        hashlib.sha256(block).digest()


def work(kind: str, seconds: float, number: int) -> None:
    """Do a training step: of a device, or of cores."""
    if kind == "sleep":
        time.sleep(seconds)
    elif kind == "jitter":
        time.sleep(seconds * (0.6 + 0.8 * (number * 7919 % 101) / 100))
    elif kind == "spin":
        spin(seconds)
    elif kind == "threads":
        threads = [threading.Thread(target=hashed, args=(seconds,)) for _ in range(os.cpu_count() or 1)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


class Slow:
    """A function of a record: asleep or computing, for each record, one in ``every``, or one only."""

    def __init__(self, kind: str, seconds: float, every: int = 1, only: int = -1) -> None:
        self.kind, self.seconds, self.every, self.only = kind, seconds, every, only
        self.__name__ = "slow"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        number = int(x.reshape(-1)[:4].copy().view("<u4")[0])  # each record begins with its number
        if (number == self.only) if self.only >= 0 else (number % self.every == 0):
            work(self.kind, self.seconds, number)
        return x


class Own:
    """A dataset in Python, whose samples take a while."""

    def __init__(self, kind: str, seconds: float, records: int) -> None:
        self.kind, self.seconds, self.records = kind, seconds, records

    def __len__(self) -> int:
        return self.records

    def __getitem__(self, i: int) -> np.ndarray:
        work(self.kind, self.seconds, i)
        return np.full(3072, i % 256, np.uint8)


def slow_collate(samples: list[np.ndarray]) -> np.ndarray:
    spin(0.02)
    return np.stack(samples)


PIPELINES = {
    "blur": [T.GaussianBlur(5), T.ColorJitter(0.4, 0.4, 0.4), T.ToTensor()],
    "normalize": [T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2))],
    "decode": [T.RandomResizedCrop(112)],
}


def play(s: Scene) -> dict[str, Any]:
    """Do the loop of a scene, and return seconds a record after the first batch, what diagnose() said, and the numbers behind it."""
    count, step = s["count"], s.get("step", ("none", 0))
    if s.get("nothing"):  # is loaded
        begin = time.perf_counter()
        for k in range(count):
            work(*step, k)
        return {"record": (time.perf_counter() - begin) / (count * s["batch"]), "says": "", "loader": {}}
    for folder, _, files in os.walk(s.get("data", "")):
        for name in files:
            with open(os.path.join(folder, name), "rb") as f:
                if s.get("cold"):
                    os.fsync(f.fileno())
                    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                else:
                    while f.read(1 << 24):
                        pass
    options: dict[str, Any] = dict(s.get("options", {}))
    if "pipeline" in s:
        options["transforms"] = PIPELINES[s["pipeline"]]
    if "slow" in s:
        options["transforms"] = {"x": [Slow(*s["slow"])]}
    if "block" in s:
        options["sampler"] = samplers.Block(s["block"])
    else:
        options["shuffle"] = True
    if s.get("collate"):
        options["collate_fn"] = slow_collate
    data = Own(*s["own"]) if "own" in s else s["data"]
    loader = penstock.DataLoader(data, s["batch"], output="numpy", drop_last=True, **options)
    done, begin = 0, 0.0
    while done < count:
        for _ in loader:
            if done == 0:
                begin = time.perf_counter()
            work(*step, done)
            done += 1
            if done == count:
                break
    took, says, stats = time.perf_counter() - begin, loader.diagnose(), loader.stats()
    loader.close()
    return {"record": took / (count * s["batch"]), "says": says, "loader": stats.get("loader", stats)}


# --- The scenes.


def advised(name: str) -> Callable[[Scene, str], Scene]:
    """Return what sets a parameter as the sentence says."""

    def follow(s: Scene, says: str) -> Scene:
        value = re.search(rf"{name}=(\w+)", says)
        if value is None:
            return s
        number = None if value[1] == "None" else int(value[1])
        if name == "batch_size":
            assert number is not None
            return {**s, "batch": number, "count": max(30, s["count"] * s["batch"] // number)}
        return {**s, "options": {**s.get("options", {}), name: number}}

    return follow


def changed(**to: Any) -> Callable[[Scene, str], Scene]:
    """Return what changes parts of a scene, or takes those out that become None."""
    return lambda s, _: {k: v for k, v in {**s, **to}.items() if v is not None}


MS = 1e-3
SMALL, LARGE, TINY, GZIP, CHUNKS, PHOTOS, HUGE, EVEN = "small", "large", "tiny", "records.h5", "chunks.h5", "photos", "huge", "even"


def scenes() -> Iterator[tuple[str, str, Scene, Follow]]:
    """Yield the name, what diagnose() should begin with, the loop, and what follows the advice."""
    small: Scene = {"data": SMALL, "batch": 32, "count": 300}
    nothing = changed(nothing=True)
    yield "a step that sleeps", "train-bound", {**small, "step": ("sleep", 4 * MS)}, nothing
    yield "a step that computes", "train-bound", {**small, "step": ("spin", 4 * MS)}, nothing
    yield "a step on all cores", "train-bound", {**small, "step": ("threads", 6 * MS), "count": 150}, nothing
    yield "a step of 150 ms, unevenly", "train-bound", {**small, "step": ("jitter", 150 * MS), "count": 15}, nothing

    blurred: Scene = {**small, "pipeline": "blur", "count": 100}
    yield "transforms compute", "transform-bound", {**blurred, "step": ("sleep", 1 * MS)}, changed(pipeline=None)
    photos: Scene = {"data": PHOTOS, "batch": 16, "count": 60, "pipeline": "decode"}
    yield "photographs are decoded", "transform-bound", photos, changed(data=SMALL, pipeline=None)

    two = {"num_workers": 2}
    computes: Scene = {**small, "slow": ("spin", 0.4 * MS), "options": two, "count": 80, "step": ("sleep", 4 * MS)}
    yield "a function computes", "user code", computes, changed(slow=None)
    sleeps: Scene = {**small, "slow": ("sleep", 2 * MS), "options": two, "step": ("sleep", 12 * MS), "count": 40}
    yield "a function sleeps", "user code", sleeps, advised("num_workers")
    own: Scene = {"batch": 16, "count": 60, "options": two, "step": ("sleep", 2 * MS)}
    yield "an own dataset computes", "user code", {**own, "own": ("spin", 2 * MS, 4096)}, changed(own=None, data=SMALL)
    calls: Scene = {"own": ("sleep", 15 * MS, 4096), "batch": 8, "count": 30, "options": two, "step": ("sleep", 25 * MS)}
    yield "an own dataset takes 15 ms a call", "user code", calls, advised("num_workers")
    here: Scene = {"own": ("sleep", 2 * MS, 4096), "batch": 8, "count": 60, "options": {"num_workers": 0}, "step": ("sleep", 8 * MS)}
    yield "an own dataset, in this process", "user code", here, advised("num_workers")
    yield "collate_fn computes", "user code", {**own, "own": ("none", 0, 4096), "collate": True}, changed(collate=None)

    late: Scene = {**small, "slow": ("sleep", 0.7, 1, 2345), "options": two, "step": ("sleep", 4 * MS)}
    yield "one record is slow", "a straggler", late, changed(slow=None)
    huge: Scene = {"data": HUGE, "batch": 16, "count": 120, "step": ("sleep", 2 * MS), "options": {"num_workers": 1}}
    yield "one record is huge", "a straggler", huge, changed(data=EVEN)
    rare: Scene = {**small, "slow": ("sleep", 40 * MS, 500), "options": {**two, "prefetch_factor": 1}, "step": ("sleep", 4 * MS)}
    yield "one record in 500 is slow", "bursts", rare, advised("prefetch_factor")

    large: Scene = {"data": LARGE, "batch": 32}
    yield "files are not in memory", "cold storage", {**large, "count": 60, "cold": True, "step": ("sleep", 2 * MS)}, changed(cold=None)
    yield "a bucket with a latency", "remote-bound", {**large, "count": 30, "link": (20 * MS, 1e9)}, changed(link=None)
    link: Scene = {**large, "count": 30, "link": (2 * MS, 8e7), "step": ("sleep", 5 * MS)}
    yield "a bucket with a slow link", "remote-bound", link, changed(link=None)
    yield "HDF5 in gzip", "decode-bound", {"data": GZIP, "batch": 32, "count": 100}, changed(data=SMALL)
    yield "HDF5 in gzip, large chunks", "decode-bound", {"data": CHUNKS, "batch": 32, "count": 40}, changed(data=SMALL)
    yield "one record a batch", "tiny batches", {"data": TINY, "batch": 1, "count": 30_000}, advised("batch_size")

    beside: Scene = {**blurred, "step": ("sleep", 1 * MS), "others": 2}
    yield "other programs on all cores", "other programs", beside, changed(others=0)
    steps: Scene = {**small, "step": ("spin", 4 * MS), "others": 3}
    yield "other programs, a step that computes", "other programs", steps, changed(others=0)
    yield "1 worker", "too few workers", {**blurred, "options": {"num_workers": 1}}, advised("num_workers")
    one: Scene = {**large, "count": 400, "pipeline": "normalize", "options": {"num_workers": 1}, "step": ("spin", 3 * MS)}
    yield "1 worker, a step that computes", "too few workers", one, advised("num_workers")
    yield "copying", "copy-bound", {**large, "count": 300}, changed(block=32)
    yield "copying, smaller records", "copy-bound", {**small, "batch": 256, "count": 500}, changed(block=256)


# --- Data, links, other programs.


def numbered(records: int, shape: tuple[int, ...]) -> Iterator[dict[str, np.ndarray]]:
    """Yield random records that begin with their number."""
    x = np.random.default_rng(1).integers(0, 256, (64, *shape), np.uint8)
    for i in range(records):
        one = x[i % 64].copy()
        one.reshape(-1)[:4] = np.frombuffer(np.uint32(i).tobytes(), np.uint8)
        yield {"x": one}


def make(folder: str) -> None:
    """Write the datasets."""
    import h5py

    for name, records, shape in ((SMALL, 9600, (64, 64, 3)), (LARGE, 2400, (224, 224, 3)), (TINY, 30_000, (784,))):
        with penstock.Writer(os.path.join(folder, name), [penstock.Field("x", "uint8", shape, layout="HWC" if len(shape) == 3 else "")]) as w:
            w.extend(numbered(records, shape))
    smooth = np.cumsum(np.random.default_rng(2).integers(0, 3, (512, 64, 64, 3), np.uint8), 1, np.uint8)
    for name, chunk, records in ((GZIP, 1, 3200), (CHUNKS, 64, 2560)):
        with h5py.File(os.path.join(folder, name), "w") as f:
            x = f.create_dataset("x", (records, 64, 64, 3), "u1", chunks=(chunk, 64, 64, 3), compression="gzip", compression_opts=4)
            for k in range(0, records, 512):
                x[k : k + 512] = smooth[: min(512, records - k)]
    for name, most in ((HUGE, 1 << 22), (EVEN, 192)):
        with penstock.Writer(os.path.join(folder, name), [penstock.Field("x", "uint8", (64,), ragged=True)]) as w:
            w.extend({"x": np.zeros((most if i == 1000 else 192, 64), np.uint8)} for i in range(1920))
    photographs(os.path.join(folder, "jpeg"), 96)
    penstock.preprocess(os.path.join(folder, "jpeg"), os.path.join(folder, PHOTOS), keep_encoded=True)


def photographs(folder: str, count: int) -> None:
    """Write JPEG files of noise that is as large as photographs and as hard to decode."""
    from PIL import Image

    rng = np.random.default_rng(3)
    for i in range(count):
        os.makedirs(os.path.join(folder, str(i % 4)), exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (60, 80, 3), np.uint8)).resize((640, 480))
        coarse.save(os.path.join(folder, str(i % 4), f"{i}.jpg"), quality=90)


class Link(http.server.BaseHTTPRequestHandler):
    """Answers requests for ranges of files, late and slowly."""

    protocol_version = "HTTP/1.1"
    folder, latency, rate = "", 0.0, 1e9
    lock, free = threading.Lock(), 0.0  # the link is one, for all connections

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        time.sleep(self.latency)
        path = os.path.join(self.folder, self.path.partition("?")[0].lstrip("/"))
        if not os.path.isfile(path):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        size = os.path.getsize(path)
        asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        low, high = (int(asked[1]), min(size, int(asked[2] or size) + 1)) if asked else (0, size)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {low}-{high - 1}/{size}")
        self.send_header("Content-Length", str(high - low))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{size}"')
        self.end_headers()
        if self.command == "GET":
            with open(path, "rb") as f:
                f.seek(low)
                while low < high:
                    block = f.read(min(1 << 17, high - low))
                    with Link.lock:
                        Link.free = max(Link.free, time.perf_counter()) + len(block) / self.rate
                        until = Link.free
                    time.sleep(max(0.0, until - time.perf_counter()))
                    self.wfile.write(block)
                    low += len(block)

    def log_message(self, *_: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    """Says nothing of connections that a loop leaves when it ends."""

    def handle_error(self, *_: Any) -> None:
        pass


def staged(folder: str, s: Scene) -> dict[str, Any]:
    """Play a scene in a process of its own, beside what belongs to it."""
    s = copy.deepcopy(s)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(s.pop("others", 0))]
    link, cache = s.pop("link", None), None
    if "data" in s:
        s["data"] = os.path.join(folder, s["data"])
    try:
        if link is not None:
            Link.folder, Link.latency, Link.rate = folder, *link
            server = Server(("127.0.0.1", 0), Link)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            cache = tempfile.mkdtemp(dir=folder)
            s["options"] = {**s.get("options", {}), "cache_dir": cache}
            s["data"] = f"http://127.0.0.1:{server.server_port}/{os.path.relpath(s['data'], folder)}"
        run = subprocess.run([sys.executable, __file__, "--play", json.dumps(s)], capture_output=True, text=True, timeout=120)
        if run.returncode != 0:
            raise SystemExit(f"{s}\n{run.stderr}")
        found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
        return found
    finally:
        for o in others:
            o.kill()
            o.wait()
        if cache is not None:
            server.shutdown()
            server.server_close()
            shutil.rmtree(cache)


def promised(says: str) -> float:
    """Return the gain that a sentence promises, as a factor; 0 if it promises none."""
    found = re.findall(r"(?:would make the loop|the loop would be) (?:up to )?([\d.]+)(x| %| times)", says)
    if found:
        return 1 + float(found[0][0]) / 100 if found[0][1] == " %" else float(found[0][0])
    waits = re.match(r"train-bound: training waits (\d+) %", says) or re.match(r"the training step limits .* (\d+)%", says)
    return 1 / (1 - int(waits[1]) / 100) if waits else 0.0


#: Options of Go, which a sentence for Python does not have.
GO = re.compile(r"\b(Workers|MaxPrefetch|BatchSize|Transforms|the Source|the Sampler)\b")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--match", default="", help="only scenes whose name has this")
    parser.add_argument("--folder", help="where datasets are kept for the next run")
    parser.add_argument("--numbers", action="store_true", help="print the loader's statistics, too")
    parser.add_argument("--play", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play:
        print(json.dumps(play(json.loads(args.play))))
        return
    folder = args.folder or tempfile.mkdtemp(prefix="penstock-scenes-")
    right = exact = promises = harmful = count = 0
    try:
        if not os.path.isdir(os.path.join(folder, PHOTOS)):
            os.makedirs(folder, exist_ok=True)
            make(folder)
        for name, want, scene, follow in scenes():
            if args.match not in name:
                continue
            rounds = []
            for _ in range(args.rounds):
                before = staged(folder, scene)
                after = staged(folder, follow(scene, before["says"]))
                rounds.append((before["record"] / after["record"], before))
            rounds.sort(key=lambda r: r[0])
            gain, found = statistics.median(r[0] for r in rounds), rounds[len(rounds) // 2][1]
            says, promise = found["says"], promised(found["says"])
            named = says.startswith(want) and GO.search(says) is None
            count, right = count + 1, right + named
            near = 0.85 < gain / promise < 1 / 0.85 if promise and named else None
            promises, exact = promises + (near is not None), exact + (near is True)
            harmful += named and gain < 0.95 and not follow(scene, says).get("nothing")  # nothing is loaded then, so no advice is followed
            kept = f"{promise:.2f}{'' if near is not False else ', OFF'}" if promise else "-"
            print(f"{'ok' if named else 'NO':3} {name:37} gain {gain:6.2f}  promise {kept:10} {says}", flush=True)
            if args.numbers:
                print(json.dumps(found["loader"]))
    finally:
        if not args.folder:
            shutil.rmtree(folder)
    print(f"{right} of {count} bottlenecks are named; {exact} of {promises} promises within 15 %; {harmful} harmful")


if __name__ == "__main__":
    main()
