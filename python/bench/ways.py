"""Ways to read the same records, compared in rounds: used by sequences.py and volume.py."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

Way = Callable[[], Iterator[Any]]


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def once(way: Way, seconds: float) -> tuple[float, float, float]:
    """Return records a second, records a CPU second, and the seconds to the first batch."""
    start, used, n, first = time.perf_counter(), cpu(), 0, 0.0
    batches = way()
    try:
        for batch in batches:
            first = first or time.perf_counter() - start
            n += len(batch)
            if time.perf_counter() - start > seconds:
                break
        took = time.perf_counter() - start
    finally:
        batches.close()  # type: ignore[attr-defined]
    return n / took, n / max(1e-9, cpu() - used), first


def compare(ways: dict[str, Way], base: str, seconds: float, rounds: int) -> None:
    """Have ways take turns, after a round that does not count, and print medians and the ratios to one of them."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for k in range(rounds + 1):
        for name, way in ways.items():
            result = once(way, seconds)
            if k > 0:
                found[name].append(result)
    print(f"{'way':32} {'records/s':>11} {'records/CPU s':>14} {'first batch':>12}   {base} is")
    for name, results in found.items():
        rate, per_cpu, first = (statistics.median(column) for column in zip(*results))
        times, cheap = (statistics.median(a[i] / b[i] for a, b in zip(found[base], results)) for i in (0, 1))
        print(f"{name:32} {rate:11.0f} {per_cpu:14.0f} {first:10.2f} s   {times:.2f} times as fast, by CPU time {cheap:.2f}")
