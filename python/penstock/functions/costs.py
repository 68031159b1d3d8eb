"""The costs of the steps of a pipeline, measured so far, and who does each step."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from .._code.measure import BUSY
from .._engine.advice import more_at_once, times_as_fast

_WIDTH = 80
_TOO_EARLY = 8  # batches

_MOST_CORES = 0.7  # cores in use: the other cores are not free to use
_MORE_READY = 8  # times as many batches are advised to wait ready
_MOST_SLOTS = 256


def table(
    pipelines: Mapping[str, Sequence[Mapping[str, Any]] | None],
    stats: Mapping[str, Any],
    workers: int,
    device: Sequence[str] = (),
    more: Sequence[tuple[str, str, str, str]] = (),
) -> str:
    """Return a table of pipelines by field: the steps, where they run and, of functions, microseconds a record. ``more`` are rows at its end."""
    reports = {report["field"]: report for report in stats.get("functions") or ()}
    lines = [("field", "where", "us/record", "steps")]
    for name, pipeline in pipelines.items():
        fields = [name] if name else [*reports] or ["images"]
        for field in fields:
            lines += _rows(field, pipeline, reports.get(field), workers)
    loader = stats["loader"]
    records = max(1, loader.get("Records") or 0)
    total = f"{(loader.get('Transform') or 0) / records / 1e3:.0f}" if loader.get("Records") else "-"
    lines.append(("all", "engine", total, "goroutines, waiting for workers included"))
    if device:
        lines.append((", ".join(device), "device", "", "the last steps, which convert bytes to floats"))
    lines += more
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    indent = sum(widths) + 6
    out = []
    for field, where, cost, steps in lines:
        head = f"{field:{widths[0]}}  {where:{widths[1]}}  {cost:>{widths[2]}}  "
        parts = textwrap.wrap(steps, max(20, _WIDTH - indent)) or [""]
        out += [(" " * indent if i else head) + part for i, part in enumerate(parts)]
    return "\n".join(out)


def _rows(
    field: str, pipeline: Sequence[Mapping[str, Any]] | None, report: Mapping[str, Any] | None, workers: int
) -> list[tuple[str, str, str, str]]:
    """Return the rows of a field: the engine's steps before functions, the functions, and what is after them."""
    runs: list[tuple[bool, list[str]]] = []
    for entry in pipeline or ():
        called = entry["op"] == "Function"
        if not runs or runs[-1][0] != called:
            runs.append((called, []))
        runs[-1][1].append(entry["name"] if called else entry["op"])
    records = report["records"] if report else 0

    def cost(nanoseconds: float) -> str:
        return f"{nanoseconds / records / 1e3:.0f}" if records else "-"

    where = "this process" if workers == 0 else f"{workers} Python worker{'s' * (workers > 1)}"
    rows, seen = [], False
    for called, names in runs:
        spent = "-"
        if report and called:
            spent = "(above)" if seen else cost(report["function"])
        elif report:
            spent = cost(report["after"] if seen else report["head"])
        seen = seen or called
        rows.append((field, where if called else "engine", spent, ", ".join(names)))
    if report and seen:
        rows.append((field, "overhead", cost(report["worker"] - report["function"]), "of workers: messages, seeds and copies"))
    return rows


def diagnose(stats: Mapping[str, Any], workers: int) -> str:
    """Return the sentence of a loop whose functions limit it, or the engine's own."""
    sentence, loader = str(stats["diagnose"]), stats["loader"]
    reports = [r for r in stats.get("functions") or () if r["records"]]
    wait, body = loader["Wait"] - loader.get("Starts", 0), loader["Body"]
    together = wait + body
    if not reports or loader["Batches"] < _TOO_EARLY or together <= 0 or wait < 0.05 * together or sentence.startswith("other programs"):
        return sentence
    slowest = max(reports, key=lambda r: r["worker"])
    share = sum(r["worker"] for r in reports) / (max(1, workers) * together)
    if share < BUSY:
        if not sentence.startswith("transforms wait"):
            return sentence
        factor = (min(_MORE_READY * (loader.get("Prefetch") or 1), _MOST_SLOTS) - 2) // max(1, workers)
        return (  # what the engine waits for is workers, which have time left
            f"bursts: training waits {100 * wait / together:.0f} % of the time for batches although the {workers} worker processes are busy for only "
            f"{100 * share:.0f} %; prefetch_factor={max(1, factor)} would let more batches wait ready"
        )
    name, each = ", ".join(slowest["functions"]), slowest["function"] / slowest["records"] / 1e3
    engine = sum(r["head"] + r["after"] for r in reports) / max(1, loader["Workers"])
    gain = together / max(body, engine, together / 20)
    who = "this process" if workers == 0 else f"{workers} worker processes"
    field = slowest["field"]
    cores = loader.get("Cores") or 0
    more = f"; num_workers={cores} would use all cores" if 0 < workers < cores else ""
    work, cpu = sum(r["worker"] for r in reports), loader.get("CPU") or 0
    if 0 < cpu < min(work / 2, _MOST_CORES * cores * together) and workers > 0:  # it waits for a network, say
        enough, faster = more_at_once(together, body, work, workers)
        more = (
            f"; it used {cpu / together:.1f} of {cores} cores, so the function waits for something else: num_workers={enough} would make "
            f"the loop {times_as_fast(faster)}"
        )
    prepared = f"penstock.map(lambda r: {{**r, {field!r}: {name.partition(',')[0]}(r[{field!r}])}}, penstock.open(OLD), NEW)"
    return (
        f"user code: {name} takes {each:.0f} us a record, and {who} {'is' if workers == 0 else 'are'} busy for {100 * min(1.0, share):.0f} %; "
        f"training waits {100 * wait / together:.0f} % of the time for batches{more}; if it draws no random numbers and comes first, store its "
        f"results: {prepared}, with which the loop would be {times_as_fast(gain)}"
    )
