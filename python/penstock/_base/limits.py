"""What this process may use of the machine: cores and memory, as its control group and the programs around it limit them."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Iterator


@functools.cache
def memory() -> int:
    """Return how many bytes of memory the process may have: the machine's, or less where its control group is limited."""
    try:
        limit: int = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize
    for text in _group("memory", "memory.max", "memory.limit_in_bytes"):
        with contextlib.suppress(ValueError):
            limit = min(limit, int(text))
    return limit


def cores() -> int:
    """Return how many cores this process may use.

    They are the cores that it is bound to, or fewer: by the quota of its control group, by ``PYTHON_CPU_COUNT`` of Python and
    ``LOKY_MAX_CPU_COUNT`` of joblib, and in a task of a Dask worker by the threads of that worker, as there is a worker for the
    other cores.
    """
    return min(bound(), _allowed())


def bound() -> int:
    """Return how many cores this process is bound to, or the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment() -> dict[str, str]:
    """Return what the environment of a program of Go says, which knows what it is bound to, so that it keeps to the cores of this process."""
    allowed = _allowed()
    return {"GOMAXPROCS": str(allowed)} if allowed < bound() and "GOMAXPROCS" not in os.environ else {}


def _allowed() -> int:
    """Return the limit of cores that the system and other libraries have set."""
    limit = math.inf
    for text in _group("cpu", "cpu.max", "cpu.cfs_quota_us"):
        quota, _, period = text.partition(" ")
        if quota.isdecimal():  # else "max" or -1
            limit = min(limit, math.ceil(int(quota) / int(period or 100_000)))
    for name in ("PYTHON_CPU_COUNT", "LOKY_MAX_CPU_COUNT"):
        with contextlib.suppress(ValueError):
            limit = min(limit, int(os.environ.get(name, "")))
    dask = sys.modules.get("distributed.worker")
    if dask is not None:
        with contextlib.suppress(ValueError, AttributeError):  # not in a task
            limit = min(limit, dask.get_worker().state.nthreads)
    return max(1, int(min(limit, sys.maxsize)))


def _group(controller: str, name: str, old: str) -> Iterator[str]:
    """Yield what a file of a controller says for the control groups that the process is in: ``old`` is its name in the first version."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as f:
        for line in f.read().splitlines():
            controllers, group = line.split(":", 2)[1:]
            if controllers and controller not in controllers.split(","):
                continue
            root, file = (f"/sys/fs/cgroup/{controllers}", old) if controllers else ("/sys/fs/cgroup", name)
            parts = group.strip("/").split("/")
            for n in range(len(parts) + 1):
                with contextlib.suppress(OSError), open(f"{root}{''.join('/' + part for part in parts[:n])}/{file}") as limit:
                    yield limit.read().strip()
