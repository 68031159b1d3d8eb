"""Threads that copy and convert rows: NumPy lets others run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_pools: dict[int, ThreadPoolExecutor] = {}  # by process: a child of a fork does not have its parent's threads


def divided(work: Callable[[int, int], object], rows: int, parts: int) -> None:
    """Call work with the bounds of each of ``parts`` parts of rows, at least one: this thread has the first part, and other
    threads have the rest.
    """
    from concurrent.futures import wait

    ends = [rows * k // parts for k in range(parts + 1)]
    others = [_pool().submit(work, a, b) for a, b in zip(ends[1:], ends[2:])]
    try:
        work(0, ends[1])
    finally:
        wait(others)
    for other in others:
        other.result()


def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process, which are started as they are needed."""
    if os.getpid() not in _pools:
        from concurrent.futures import ThreadPoolExecutor  # with its logging, which few programs need

        _pools.clear()
        _pools[os.getpid()] = ThreadPoolExecutor(os.cpu_count() or 1, "penstock-rows")
    return _pools[os.getpid()]
