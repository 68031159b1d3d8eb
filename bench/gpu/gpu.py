"""Measure penstock on a GPU, in one run: python3 gpu.py [--minutes 24] [STAGE...]

It is in the folder that "make gpu-build" makes (bin/gpu), with all that it needs but Python, NumPy and PyTorch: no Go, no
compiler. Each line has a value and a verdict: met, SHORT, or skipped and why. It ends with 1 if a line is short.
With --rehearse, the stages in Python run on the CPU, small: to test this file. Their verdicts say nothing then.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "penstock")
ON_CPU = False
short = 0


def line(what: str, value: str, met: bool | None = None) -> None:
    """Print a line; met is None where there is nothing to be met."""
    global short
    short += met is False
    print(f"{'' if met is None else 'met' if met else 'SHORT':<6}{what}: {value}", flush=True)


def skipped(what: str, why: str) -> None:
    print(f"{'':<6}{what}: skipped: {why}", flush=True)


# ---- the tests and benchmarks of loader/cuda ----


def tests(binary: str, seconds: float, *flags: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PENSTOCK_GPU": "1", "PYTHON": sys.executable}
    command = [os.path.join(HERE, binary), f"-test.timeout={max(1, int(seconds))}s", *flags]
    return subprocess.run(command, cwd=os.path.join(HERE, "loader", "cuda"), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def go_tests(seconds: float) -> None:
    """Correctness in Go: every test for a device, without cgo and with it."""
    for binary, what in (("cuda.test", "without cgo"), ("cuda-cgo.test", "with cgo")):
        if not os.path.exists(os.path.join(HERE, binary)):
            skipped(f"tests of loader/cuda {what}", "it was not built: no C compiler")
            continue
        ran = tests(binary, seconds / 2, "-test.v", "-test.run=^TestGPU", "-test.skip=^TestGPUTests$")
        done = {k: re.findall(rf"^--- {k}: (TestGPU\w+)", ran.stdout, re.M) for k in ("PASS", "FAIL", "SKIP")}
        line(f"tests of loader/cuda {what}", f"{len(done['PASS'])} passed, {len(done['FAIL'])} failed, {len(done['SKIP'])} skipped",
             ran.returncode == 0)
        if binary == "cuda.test":
            cases = len(re.findall(r"^    --- PASS: TestGPUNormalize/", ran.stdout, re.M))
            line("normalization on the device, bit for bit", f"{cases} cases", cases >= 54)
            for name, what in GO_LINES.items():
                line(what, "passed" if name in done["PASS"] else "FAILED", name in done["PASS"])
        if ran.returncode != 0:
            print(ran.stdout[-6000:])


GO_LINES = {
    "TestGPUManyBatches": "10,000 batches in Go, slow consumers and breaks, 0 wrong",
    "TestGPURaggedGrowth": "fields of variable length that grow",
    "TestGPUOpenClose": "memory of the device after 100 opens and closes in Go",
    "TestGPUIllegalAccess": "an illegal access is an error",
}


def metrics(text: str, name: str) -> dict[str, float]:
    found = re.search(rf"^Benchmark{re.escape(name)}(?:-\d+)?\s+\d+\s+(.*)$", text, re.M)
    return {unit: float(value) for value, unit in re.findall(r"(\S+) (\S+)", re.sub(r"\s+", " ", found[1]))} if found else {}


def go_rates(seconds: float) -> None:
    """Rates in Go against the limit of page-locked memory, and overlap."""
    ran = tests("cuda.test", seconds, "-test.run=^$", "-test.bench=^BenchmarkGPU", "-test.benchtime=256x")
    if ran.returncode != 0:
        line("benchmarks of loader/cuda", "failed", False)
        print(ran.stdout[-6000:])
        return
    limit = metrics(ran.stdout, "GPUPinnedLimit").get("GB/s", 0)
    line("limit: copies of one page-locked buffer", f"{limit:.1f} GB/s")
    for way in ("pinned", "pageable", "direct", "normalized"):
        rate = metrics(ran.stdout, f"GPUPrefetch/{way}").get("GB/s", 0)
        line(f"batches in Go, {way}", f"{rate:.1f} GB/s, {rate / limit if limit else 0:.3f} of the limit",
             rate >= 0.95 * limit > 0 if way == "pinned" else None)
    for part in ("0.5", "1", "2"):
        m = metrics(ran.stdout, f"GPUOverlap/compute={part}")
        ratio = m.get("step/max", 9e9)
        line(f"a step that computes {part} times a copy, to max(load, copy, compute)", f"{ratio:.3f}: {m}", ratio <= 1.03)


# ---- Python ----


def dataset(folder: str, records: int, side: int) -> str:
    """Make a dataset of noise, and return its path."""
    import numpy as np
    import penstock

    path = os.path.join(folder, f"{records}x{side}")
    if not os.path.exists(path):
        random = np.random.default_rng(records)
        with penstock.Writer(path, normalize="imagenet") as w:
            for i in range(records):
                w.append({"images": random.integers(0, 256, (side, side, 3), dtype=np.uint8), "labels": i % 10})
    return path


def where() -> str:
    return "cpu" if ON_CPU else "cuda"


def wait() -> None:
    import torch

    if not ON_CPU:
        torch.cuda.synchronize()


def clock(n: int, f) -> float:
    """Return the seconds of one of n calls."""
    f()
    wait()
    began = time.perf_counter()
    for _ in range(n):
        f()
    wait()
    return (time.perf_counter() - began) / n


def registered(folder: str) -> None:
    """A batch of a DataLoader, page-locked and not, against memory of torch's own."""
    import penstock
    import torch

    path, batch, n = (dataset(folder, 16, 32), 8, 3) if ON_CPU else (dataset(folder, 2048, 224), 256, 50)
    rates = {}
    own = torch.empty((batch, 224, 224, 3), dtype=torch.uint8, pin_memory=not ON_CPU)
    rates["torch's page-locked memory"] = own.nbytes / clock(n, lambda: own.to(where(), non_blocking=True)) / 1e9
    for pin in (True, False):
        with penstock.DataLoader(path, batch, pin_memory=pin, fields=["images"]) as loader:
            x = next(iter(loader))["images"]
            name = "page-locked: " + loader.stats()["pinned"] if pin else "not page-locked"
            rates[name] = x.nbytes / clock(n, lambda x=x: x.to(where(), non_blocking=True)) / 1e9
            del x
    limit, locked, plain = rates.values()
    line("a batch of a DataLoader to the device", ", ".join(f"{name} {rate:.1f} GB/s" for name, rate in rates.items()), locked >= 0.95 * limit)
    line("page-locked against not", f"{locked / plain:.1f} times as fast", locked > plain)


def checksums(x, weights):
    """Return a number that identifies each record, on the device of the records."""
    import torch

    return (x.reshape(len(x), -1).to(torch.int64) * weights).sum(1)


def dropped(folder: str) -> None:
    """Batches that are dropped while their copies wait for a long kernel."""
    wrong(folder, "a page-locked batch dropped during a long kernel", 20 if ON_CPU else 400, {"pin_memory": True}, True)


def many(folder: str) -> None:
    """10,000 batches, compared on the device, with slow consumers and loops that are left."""
    wrong(folder, "10,000 batches in Python, slow consumers and breaks", 100 if ON_CPU else 10_000, {"device": where()}, False)


def wrong(folder: str, what: str, batches: int, options: dict, kernels: bool) -> None:
    import numpy as np
    import penstock
    import torch

    path = dataset(folder, 1003, 32)
    weights = torch.arange(1, 3 * 32 * 32 + 1, dtype=torch.int64)
    want = checksums(torch.from_numpy(penstock.open(path)["images"].take(np.arange(1003))), weights)
    weights, want = weights.to(where()), want.to(where())
    random, n, bad, seen = np.random.default_rng(1), 0, 0, []
    with penstock.DataLoader(path, 17, True, fields=["images"], **options) as loader:
        while n < batches:
            for batch in loader:
                if kernels and not ON_CPU and n % 20 == 0:
                    torch.cuda._sleep(50_000_000)
                x = batch["images"].to(where(), non_blocking=True)
                at = torch.from_numpy(batch.indices.copy())
                del batch
                seen.append((checksums(x, weights) != want[at.to(where())]).sum())
                n += 1
                if random.random() < 0.01:
                    time.sleep(0.002)
                if n >= batches or random.random() < 0.01:
                    break
        bad = int(sum(s.item() for s in seen))
    line(what, f"{n} batches, {bad} records wrong", bad == 0)


def bits(folder: str) -> None:
    """Floats that are made on the device."""
    import penstock
    import torch
    from penstock import transforms as T

    path, differ, n = dataset(folder, 1003, 32), 0, 0
    for last in ([T.ToTensor(), T.Normalize()], [T.ToImage(), T.ToDtype("float16", scale=True)],
                 [T.ToImage(), T.ToDtype("bfloat16", scale=True), T.Normalize()]):
        options = {"transforms": [T.RandomHorizontalFlip(), *last], "seed": 3}
        with penstock.DataLoader(path, 100, device=where(), **options) as device, penstock.DataLoader(path, 100, **options) as cpu:
            for a, b in zip(device, cpu):
                differ += not torch.equal(a["images"].cpu(), b["images"])
                n += 1
    line("floats made on the device, bit for bit", f"{n} batches, {differ} differ", differ == 0)


def opens(folder: str) -> None:
    """Memory after 100 opens and closes."""
    import gc

    import penstock
    import torch

    path = dataset(folder, 1003, 32)

    def once() -> None:
        with penstock.DataLoader(path, 64, device=where()) as loader:
            next(iter(loader))
        gc.collect()

    def used() -> tuple[int, int]:
        wait()
        if not ON_CPU:
            torch.cuda.empty_cache()
        with open("/proc/self/statm") as f:
            resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        return 0 if ON_CPU else torch.cuda.mem_get_info()[0], resident

    for _ in range(5):
        once()
    (free, resident), n = used(), 10 if ON_CPU else 100
    for _ in range(n):
        once()
    free_after, resident_after = used()
    grown = (resident_after - resident) / 1e6
    line(f"memory after {n} opens and closes", f"{(free - free_after) / 1e6:.1f} MB more on the device, {grown:.1f} MB on the host",
         free_after >= free and grown < 20)


def training(folder: str) -> None:
    """Training by several ways to load, side by side: records a second, the medians of rounds."""
    import penstock
    import torch
    from penstock import transforms as T

    path, batch, steps, rounds = (dataset(folder, 64, 32), 16, 3, 1) if ON_CPU else (dataset(folder, 16384, 224), 256, 60, 3)
    on, pipeline = where(), [T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize()]
    side = penstock.open(path).fields["images"].shape[0]

    class Records(torch.utils.data.Dataset):  # what torch's DataLoader has to do, with as little as there can be
        def __init__(self):
            self.ds = penstock.open(path, mode="c")

        def __len__(self):
            return len(self.ds)

        def __getitem__(self, i):
            r = self.ds[i]
            return torch.from_numpy(r["images"]), int(r["labels"])

    class DataPrefetcher:  # NVIDIA's, as the tutorial has it
        def __init__(self, loader):
            self.loader = loader
            self.mean = torch.tensor((0.485, 0.456, 0.406), device=on).view(1, 3, 1, 1) * 255
            self.std = torch.tensor((0.229, 0.224, 0.225), device=on).view(1, 3, 1, 1) * 255

        def __iter__(self):
            stream = None if ON_CPU else torch.cuda.Stream()
            batches, following = iter(self.loader), None

            def preload():
                x, y = next(batches, (None, None))
                if x is None:
                    return None
                with torch.cuda.stream(stream):
                    return (x.to(on, non_blocking=True).permute(0, 3, 1, 2).float().sub_(self.mean).div_(self.std), y.to(on, non_blocking=True))

            following = preload()
            while following is not None:
                if not ON_CPU:
                    torch.cuda.current_stream().wait_stream(stream)
                    for t in following:
                        t.record_stream(torch.cuda.current_stream())
                now, following = following, preload()
                yield now

    def pairs(loader):
        while True:
            for b in loader:
                yield b["images"].to(on, non_blocking=True), b["labels"].to(on, non_blocking=True)

    def endless(prefetcher):
        while True:
            yield from prefetcher

    def resident():
        x, y = torch.randn(batch, 3, side, side, device=on), torch.randint(10, (batch,), device=on)
        while True:
            yield x, y

    cores = os.cpu_count() or 1
    options = {"drop_last": True, "shuffle": True}
    workers = {} if ON_CPU else {"num_workers": cores, "persistent_workers": True, "prefetch_factor": 4}
    ours = {"transforms": pipeline, "num_workers": max(1, cores - 2), **options}
    makers = {
        "resident batch": resident,
        "DataLoader": lambda: pairs(penstock.DataLoader(path, batch, **ours)),
        "DataLoader, pin_memory": lambda: pairs(penstock.DataLoader(path, batch, pin_memory=True, **ours)),
        "DataLoader, device": lambda: pairs(penstock.DataLoader(path, batch, device=on, **ours)),
        "torch's, pin_memory and DataPrefetcher": lambda: endless(
            DataPrefetcher(torch.utils.data.DataLoader(Records(), batch, pin_memory=not ON_CPU, **workers, **options))),
    }
    for size in ("small", "large"):
        rates = {name: [] for name in makers}
        for name, make in makers.items():
            torch.manual_seed(0)
            model = network(size).to(on)
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            batches = make()
            for r in range(rounds + 1):
                wait()
                began = time.perf_counter()
                for _ in range(steps):
                    x, y = next(batches)
                    optimizer.zero_grad(set_to_none=True)
                    torch.nn.functional.cross_entropy(model(x), y).backward()
                    optimizer.step()
                wait()
                if r:
                    rates[name].append(batch * steps / (time.perf_counter() - began))
            del batches, model, optimizer
        median = {name: statistics.median(r) for name, r in rates.items()}
        for name, rate in median.items():
            line(f"training a {size} network, {name}", f"{rate:,.0f} records/s, {rate / median['resident batch']:.3f} of a resident batch")
        device, peer = median["DataLoader, device"], median["torch's, pin_memory and DataPrefetcher"]
        line(f"a {size} network: device, to a resident batch", f"{device / median['resident batch']:.3f}", device >= 0.97 * median["resident batch"])
        if size == "small":
            line("a small network: device, to torch's with pinning and prefetcher", f"{device / peer:.2f}", device > peer)


def network(size: str):
    from torch import nn

    if size == "small":
        return nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.LazyLinear(10))
    width, layers = 64, [nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(), nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.ReLU()]
        width *= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def loadbench(seconds: float) -> None:
    """The tutorial's table: the rows on the device are measured where there is one."""
    ran = subprocess.run([PROGRAM, "loadbench", "--quiet", "--markdown", "--quick", "--synthetic"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
    rows = [row for row in ran.stdout.splitlines() if "device" in row]
    measured = [row for row in rows if row.startswith("|") and "n/a" not in row]
    print(ran.stdout)
    line("loadbench's rows on the device", f"{len(measured)} measured", ran.returncode == 0 and (ON_CPU or len(measured) >= 2))


# ---- all of it ----

PYTHON = {f.__name__: f for f in (registered, dropped, bits, many, opens, training)}
STAGES = ("go_tests", "go_rates", "registered", "dropped", "bits", "many", "opens", "training", "loadbench")


def no_driver() -> str:
    """Return why there is no device; "" if there is one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        return f"no device: {e}"
    n = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(n)) != 0 or n.value == 0:
        return "no device: the driver finds none"
    return ""


def no_torch() -> str:
    try:
        import torch
    except ImportError as e:
        return f"no torch: {e}"
    return "" if torch.cuda.is_available() or ON_CPU else "no device that torch can use"


def run(stage: str, why: str, seconds: float, folder: str) -> bool:
    """Run a stage, unless it is skipped: those in Python in a process of their own, whose end takes nothing with it."""
    if stage in ("go_tests", "go_rates", "loadbench"):
        if why:
            skipped(stage, why)
        else:
            globals()[stage](seconds)
        return not why
    why = no_torch() if ON_CPU else why
    if why:
        skipped(stage, why)
        return False
    global short
    try:
        command = [sys.executable, os.path.abspath(__file__), "--folder", folder, *(["--rehearse"] if ON_CPU else []), "--only", stage]
        short += subprocess.run(command, timeout=seconds).returncode != 0
    except subprocess.TimeoutExpired:
        line(stage, f"not done in {seconds:.0f} s", False)
    return True


def main() -> int:
    global ON_CPU
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=24, help="after which what is left is skipped")
    parser.add_argument("--rehearse", action="store_true", help="run the stages in Python on the CPU")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("stages", nargs="*", help=f"of {', '.join(STAGES)}; all by default")
    a = parser.parse_args()
    ON_CPU = a.rehearse
    os.environ.setdefault("PENSTOCK_FEED", PROGRAM + "-feed")
    os.environ.setdefault("PENSTOCK_PREPROCESS", PROGRAM + "-preprocess")
    sys.path.insert(0, os.path.join(HERE, "python"))
    if a.only:
        why = no_torch()
        if why:
            skipped(a.only, why)
        else:
            PYTHON[a.only](a.folder)
        return short > 0
    end, why, ran = time.monotonic() + 60 * a.minutes, no_driver(), False
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores; {why or 'a device'}")
    with tempfile.TemporaryDirectory(prefix="penstock-gpu-") as folder:
        for stage in a.stages or STAGES:
            began, left = time.monotonic(), end - time.monotonic()
            if left < 10:
                skipped(stage, f"the {a.minutes:g} minutes are over")
                continue
            ran |= run(stage, why, min(left, 600), folder)
            print(f"{'':<6}({stage}: {time.monotonic() - began:.0f} s)", flush=True)
    if not ran:
        print(f"nothing measured: {(why and 'no GPU') or 'every stage was skipped'}")
    else:
        print(f"{short} short" if short else "none short")
    return short > 0


if __name__ == "__main__":
    sys.exit(main())
