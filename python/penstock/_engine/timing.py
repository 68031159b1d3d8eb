"""Measure a training loop: the wait for each batch, each step, and the CPU time of each process.

It is the training loop of the command ``penstock loadbench --train-step``, over any dataset or loader of Python.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .._base import files
from .._base.errors import Error
from .._base.urls import line, redacted

#: How often the CPU time of other processes is read, in seconds: they may end before the loop does.
_EVERY = 0.2
_LOG_HEAD = ("table", "row", "epoch", "batch", "records", "at_s", "wait_s", "body_s")
_WIDTH = 80


@dataclass(frozen=True)
class Step:
    """One batch of a loop, in seconds: when it came, how long the loop waited for it, and how long it used it."""

    epoch: int
    batch: int
    records: int
    at: float
    wait: float
    body: float


@dataclass
class Report:
    """The measurements of ``loadbench``; ``str`` makes a table of them.

    ``cpu`` are seconds of CPU time by process: "trainer", "workers", "feed", or the name of another child process; empty
    where the system does not say. ``device`` is the name of the CUDA device, its use in percent and its memory in bytes; None without one.
    """

    name: str
    steps: list[Step] = field(default_factory=list)
    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)
    device: dict[str, Any] | None = None
    diagnosis: str = ""

    @property
    def records(self) -> int:
        """The records of all batches."""
        return sum(s.records for s in self.steps)

    @property
    def rate(self) -> float:
        """Records a second, the first batch included."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def waiting(self) -> float:
        """The share of the time that the loop waited for batches, the first of each epoch excluded."""
        after = [s for s in self.steps if s.batch]
        together = sum(s.wait + s.body for s in after)
        return sum(s.wait for s in after) / together if together else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the measurements as JSON has them."""
        return {**asdict(self), "records": self.records, "records_per_s": self.rate, "waiting": self.waiting}

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def write_log(self, path: str | os.PathLike[str]) -> None:
        """Write a line for each batch, as ``penstock loadbench --log`` does: CSV, or JSON lines, by the ending of the name."""
        rows = [("loop", self.name, s.epoch, s.batch, s.records, round(s.at, 9), round(s.wait, 9), round(s.body, 9)) for s in self.steps]
        with files.replacing(path, "w", newline="", encoding="utf-8") as file:
            if _ending(path, (".csv", ".jsonl"), "log") == ".csv":
                csv.writer(file).writerows([_LOG_HEAD, *rows])
            else:
                file.writelines(json.dumps(dict(zip(_LOG_HEAD, row))) + "\n" for row in rows)

    def write_plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the waits and steps of each batch: SVG, or, with matplotlib, PNG."""
        if _ending(path, (".svg", ".png"), "plot") == ".svg":
            with files.replacing(path, "w", encoding="utf-8") as file:
                file.write(_svg(self))
        else:
            _png(self, path)


def loadbench(
    dataset: Any,
    train_step: Callable[[Any], object] | float | None = None,
    batch_size: int | None = None,
    *,
    batches: int = 100,
    epochs: int = 1,
    log: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    quiet: bool = False,
    **options: Any,
) -> Report:
    """Run a training loop, and print and return how long it waits for batches, and for how long each process computes.

    ::

        penstock.loadbench(torch_loader, train_step)
        penstock.loadbench(dataset, 0.05, 64, num_workers=4, shuffle=True, plot="waits.svg")

    Args:
        dataset: A loader, which is iterated over as it is: penstock's, torch's DataLoader, or another iterable of batches. Or a
            dataset: a DataLoader over it is created with ``batch_size`` and ``options``.
        train_step: Called with each batch; or the seconds of a step that sleeps. None is a loop that does nothing with its batches.
            Its time is the host's: a step that only queues work on a device is short.
        batch_size: Records of a batch of a dataset.
        batches: The most batches of an epoch.
        epochs: How many times the loader is iterated over.
        log: A file for a line a batch, ``.csv`` or ``.jsonl``.
        plot: A file for a plot, ``.svg``, or ``.png``, which needs matplotlib.
        quiet: Print nothing.
        options: Parameters of the DataLoader of a dataset.
    """
    if log is not None:
        _ending(log, (".csv", ".jsonl"), "log")
    if plot is not None and _ending(plot, (".svg", ".png"), "plot") == ".png":
        _matplotlib()
    if batches < 1 or epochs < 1:
        raise ValueError(f"batches is {batches} and epochs is {epochs}; both are 1 or more")
    loader, made = _loader(dataset, batch_size, options)
    try:
        report = _measured(loader, _step(train_step), batches, epochs, _name(dataset, loader))
    finally:
        if made:
            loader.close()
    if log is not None:
        report.write_log(log)
    if plot is not None:
        report.write_plot(plot)
    if not quiet:
        print(report)
    return report


def _loader(given: Any, batch_size: int | None, options: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return what is iterated over, and whether it was made here."""
    if batch_size is None:
        if options:
            raise ValueError(f"{', '.join(options)}: for the DataLoader of a dataset; give batch_size too, or make the loader with them")
        if isinstance(given, (str, bytes, os.PathLike)) or not hasattr(given, "__iter__"):
            raise ValueError(f"{redacted(str(_name(given, given)))} is a dataset; give batch_size=, and a DataLoader of it is measured")
        return given, False
    if hasattr(given, "batch_size") and hasattr(given, "dataset") and hasattr(given, "__iter__"):
        raise ValueError(f"the loader has batches of {given.batch_size}; leave batch_size out")
    from .dataloader import DataLoader

    return DataLoader(given, batch_size, **({"output": "numpy"} if "torch" not in sys.modules else {}) | dict(options)), True


def _name(dataset: Any, loader: Any) -> str:
    of = getattr(dataset, "dataset", dataset)
    text = os.fsdecode(of) if isinstance(of, (str, bytes, os.PathLike)) else type(of).__name__
    workers, size = getattr(loader, "num_workers", None), getattr(loader, "batch_size", None)
    return text + (f", batches of {size}" if size else "") + (f", num_workers={workers}" if workers is not None else "")


def _step(given: Any) -> Callable[[Any], object]:
    """Return the step of the loop, of a function, of seconds to sleep or of None."""
    if callable(given):
        return given  # type: ignore[no-any-return]
    if given is not None and (not isinstance(given, (int, float)) or isinstance(given, bool) or not given >= 0):
        raise TypeError(f"train_step is {given!r:.60}; it is a function of a batch, or seconds")
    return lambda _: time.sleep(given) if given else None


def _measured(loader: Iterable[Any], step: Callable[[Any], object], batches: int, epochs: int, name: str) -> Report:
    report = Report(redacted(name))
    began = time.perf_counter()
    with _Observer() as observer:
        for epoch in range(epochs):
            _epoch(loader, step, batches, epoch, began, report)
            if epoch == epochs - 1:
                observer.look()
        report.seconds = time.perf_counter() - began
    report.cpu, report.processes, report.device = observer.cpu, observer.number, observer.device
    own = getattr(loader, "diagnose", None)
    report.diagnosis = str(own()) if callable(own) else _diagnosed(report)
    return report


def _epoch(loader: Iterable[Any], step: Callable[[Any], object], batches: int, epoch: int, began: float, report: Report) -> None:
    asked = time.perf_counter()
    iterator = iter(loader)
    for k in range(batches):
        batch = next(iterator, _END)
        came = time.perf_counter()
        if batch is _END:
            if k == 0:
                raise Error(f"{report.name}: epoch {epoch} has no batch; an iterator can be iterated over once: give what makes it")
            break
        records = _records(batch)
        came_at = came - began
        started = time.perf_counter()
        step(batch)
        del batch
        now = time.perf_counter()
        report.steps.append(Step(epoch, k, records, came_at, came - asked, now - started))
        asked = now


_END = object()


def _records(batch: Any) -> int:
    """Return how many records a batch has: the rows of its first array, tensor or list."""
    while isinstance(batch, (Mapping, tuple)) or (isinstance(batch, list) and batch and hasattr(batch[0], "shape")):
        values = list(batch.values()) if isinstance(batch, Mapping) else list(batch)
        if not values:
            return 0
        batch = values[0]
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    return len(batch) if hasattr(batch, "__len__") and not isinstance(batch, (str, bytes)) else 1


class _Observer:
    """The CPU time of this process and of the processes below it, in seconds, and the use of the CUDA device, where this process works on one."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.number: dict[str, int] = {}
        self.device: dict[str, Any] | None = None
        self._busy: list[float] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._known = os.path.exists(f"/proc/self/task/{os.getpid()}/children")

    def __enter__(self) -> _Observer:
        torch: Any = sys.modules.get("torch")
        self._cuda: Any = torch.cuda if torch is not None and torch.cuda.is_available() else None
        self._own, self._before = time.process_time(), self._children()
        self._latest = dict(self._before)
        self._thread = threading.Thread(target=self._follow, daemon=True, name="penstock_loadbench")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.look()
        self._ended.set()
        self._thread.join()
        self.cpu["trainer"] = time.process_time() - self._own
        if self._cuda is not None:
            busy = sum(self._busy) / len(self._busy) if self._busy else None
            self.device = {"name": self._cuda.get_device_name(), "busy": busy, "memory": int(self._cuda.max_memory_allocated())}
        for pid, (name, seconds) in self._latest.items():
            self.cpu[name] = self.cpu.get(name, 0.0) + seconds - (self._before[pid][1] if pid in self._before else 0.0)
            self.number[name] = self.number.get(name, 0) + 1

    def look(self) -> None:
        """Read the times of processes that may end soon."""
        with self._lock:
            self._latest.update(self._children())

    def _follow(self) -> None:
        while not self._ended.wait(_EVERY):
            self.look()
            if self._cuda is not None:
                with contextlib.suppress(Exception):  # without pynvml it is not known
                    self._busy.append(float(self._cuda.utilization()))

    def _children(self) -> dict[int, tuple[str, float]]:
        """Return name and CPU time of the processes below this process; an empty list where the system does not list them."""
        found: dict[int, tuple[str, float]] = {}
        left = [os.getpid()] if self._known else []
        while left:
            for pid in _below(left.pop()):
                seen = _cpu(pid)
                if seen is not None and pid not in found:
                    found[pid] = seen
                    left.append(pid)
        return found


def _below(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except OSError:  # it has ended
        pass
    return found


#: The kinds of processes, by the names that they have for the system.
_KINDS = {"penstock_worker": "workers", "pt_data_worker": "workers", "penstock": "feed"}


def _cpu(pid: int) -> tuple[str, float] | None:
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return None
    name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return _KINDS.get(name, name), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _diagnosed(report: Report) -> str:
    share = report.waiting
    if share < 0.05:
        return f"the training step limits the loop: it waits for batches {share:.0%} of the time"
    gain = 1 / max(1 - share, 0.01)
    return (
        f"loading limits the loop: it waits for batches {share:.0%} of the time, and could be up to {gain:.1f} times as fast; "
        "penstock.DataLoader of the same dataset says by diagnose() which code is the limit"
    )


def _lines(r: Report) -> list[str]:
    """Return the table, at most 80 columns wide."""
    import textwrap

    later = [s for s in r.steps if s.batch] or r.steps
    first = [s for s in r.steps if not s.batch]
    head = f"{line(r.name)}: {r.records:,} records in {_time(r.seconds)}, {r.rate:,.0f} records/s"
    lines = [*textwrap.wrap(head, _WIDTH), "", f"  {'':8}{'median':>10}{'p90':>10}{'max':>10}{'sum':>10}"]
    for name, values in (("wait", [s.wait for s in later]), ("step", [s.body for s in later])):
        cells = (_quantile(values, 0.5), _quantile(values, 0.9), max(values), sum(values))
        lines.append(f"  {name:8}" + "".join(f"{_time(v):>10}" for v in cells) + (f"   {r.waiting:.0%} of the loop" if name == "wait" else ""))
    lines.append(f"  first batch after {', '.join(_time(s.wait) for s in first[:5])}{' ...' if first[5:] else ''}, which the table leaves out")
    numbers = {name: f"{n} " for name, n in r.processes.items() if n > 1}
    cores = [f"{numbers.get(name, '')}{name} {spent / r.seconds:.2f}" for name, spent in r.cpu.items() if r.seconds]
    lines += textwrap.wrap(f"CPU, in cores: {', '.join(cores)}", _WIDTH - 2, initial_indent="  ", subsequent_indent="    ")
    if r.device is not None:
        busy = "use not known (pip install pynvml)" if r.device["busy"] is None else f"{r.device['busy']:.0f} % busy"
        lines.append(f"  {r.device['name']}: {busy}, {r.device['memory'] / (1 << 30):.2f} GiB at most")
    return [*lines, "", *textwrap.wrap(r.diagnosis, _WIDTH, subsequent_indent="  ")]


def _quantile(values: Sequence[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def _time(seconds: float) -> str:
    """Return a time with three digits, as the command prints it."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            value = seconds / size
            return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _ending(path: str | os.PathLike[str], known: Sequence[str], what: str) -> str:
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in known:
        raise ValueError(f"{what} is {os.fspath(path)!r}; its name ends in {' or '.join(known)}")
    return ending


def _matplotlib() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as e:
        raise Error(f"a plot as PNG needs matplotlib, which cannot be imported ({e}); install it, or give a name that ends in .svg") from e
    return Figure


def _png(r: Report, path: str | os.PathLike[str]) -> None:
    figure = _matplotlib()(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, values in _curves(r).items():
        axes.plot(values, ".", label=name, color=_COLORS[name], markersize=4)
    axes.set(xlabel="batch", ylabel="seconds", yscale="log", title=r.name)
    axes.legend()
    axes.grid(alpha=0.3)
    with files.replacing(path) as file:
        figure.savefig(file, dpi=144, format="png")


_COLORS = {"wait": "#0072b2", "step": "#e69f00"}
_LEAST = 1e-6  # of the drawn bars, in seconds: the axis is logarithmic


def _curves(r: Report) -> dict[str, list[float]]:
    return {"wait": [max(s.wait, _LEAST) for s in r.steps], "step": [max(s.body, _LEAST) for s in r.steps]}


def _svg(r: Report) -> str:
    """Draw points over the number of the batch, with a logarithmic axis of seconds."""
    import html
    import math

    width, height, left, top, right, bottom = 640, 320, 64, 32, 16, 56
    curves = _curves(r)
    values = [v for curve in curves.values() for v in curve]
    low, high = math.floor(math.log10(min(values))), max(math.ceil(math.log10(max(values))), math.floor(math.log10(min(values))) + 1)
    across, down = width - left - right, height - top - bottom

    def x(k: int) -> float:
        return left + across * (k + 0.5) / max(1, len(r.steps))

    def y(v: float) -> float:
        return top + down * (1 - (math.log10(v) - low) / (high - low))

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="20" font-size="13">{html.escape(r.name)}</text>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{_time(10.0**power)}</text>')
    out += [f'<text x="{x(k):.1f}" y="{height - bottom + 18}" text-anchor="middle">{k}</text>' for k in (0, len(r.steps) - 1)]
    out.append(f'<text x="{left + across / 2}" y="{height - bottom + 18}" text-anchor="middle">batch</text>')
    for n, (name, curve) in enumerate(curves.items()):
        points = "".join(f'<circle cx="{x(k):.1f}" cy="{y(v):.1f}" r="2"/>' for k, v in enumerate(curve))
        out.append(f'<g fill="{_COLORS[name]}">{points}</g>')
        out.append(f'<circle cx="{left + 80 * n}" cy="{height - 14}" r="4" fill="{_COLORS[name]}"/>')
        out.append(f'<text x="{left + 80 * n + 10}" y="{height - 10}">{name}</text>')
    return "\n".join([*out, "</svg>", ""])
