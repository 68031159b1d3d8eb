"""Where the tasks of ``penstock.map(engine=...)`` run: on a cluster of Ray, Dask, Spark or Slurm.

A task is a rank: it makes one part of the dataset. Engines may kill a task, run it again elsewhere and
run it twice at the same time; the dataset stays the same.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from .._base import files
from .._base.errors import Error

#: Makes the part of a rank.
Task = Callable[[int], None]

#: How often an engine repeats a task that fails.
_RETRIES = 4

ENGINES = ("ray", "dask", "spark", "slurm")


def check(engine: str) -> None:
    """Raise Error if there is no such engine."""
    if engine not in ENGINES:
        raise Error(f"engine is {engine!r}; it must be one of {', '.join(ENGINES)}")


def run(engine: str, task: Task, ranks: int, path: str) -> None:
    """Run the task of every rank on an engine, and return when all have ended; the error of a task that fails is raised."""
    {"ray": _ray, "dask": _dask, "spark": _spark, "slurm": _slurm}[engine](task, ranks, path)


def _ray(task: Task, ranks: int, path: str) -> None:
    ray = _import("ray", "ray")
    remote = ray.remote(max_retries=_RETRIES, retry_exceptions=False)(_call)
    ray.get([remote.remote(task, rank) for rank in range(ranks)])


def _dask(task: Task, ranks: int, path: str) -> None:
    distributed = _import("distributed", "dask distributed")
    client = distributed.get_client()
    client.gather(client.map(task, range(ranks), pure=False, retries=_RETRIES))


def _spark(task: Task, ranks: int, path: str) -> None:
    sql = _import("pyspark.sql", "pyspark")
    context = sql.SparkSession.builder.getOrCreate().sparkContext
    context.parallelize(range(ranks), ranks).foreach(task)


def _slurm(task: Task, ranks: int, path: str) -> None:
    """Run an array of jobs by sbatch.

    The task and its logs are in a folder next to the dataset, where all nodes see it. Unpickling runs code: the jobs know
    the digest of the task, so that nobody who can rename files in that folder gives them another task.
    """
    folder = above = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    while above != (above := os.path.dirname(above)):
        files.check_shared(above)
    files.check_shared(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".penstock-") as own:
        file, data = os.path.join(own, "task"), _pickler().dumps(task)
        with files.replacing(file) as f:
            f.write(data)
        paths = os.pathsep.join(p for p in sys.path if p)
        work = shlex.join(["exec", sys.executable, "-m", __name__, file, hashlib.sha256(data).hexdigest()])
        command = ["sbatch", "--wait", "--parsable", "--requeue", f"--array=0-{ranks - 1}", "--job-name=penstock"]
        command += [f"--output={own}/%a.log", "--open-mode=truncate", f"--export=ALL,PYTHONPATH={paths}", f'--wrap={work} "$SLURM_ARRAY_TASK_ID"']
        try:
            array = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            raise Error("there is no command sbatch: run this on a machine that submits jobs to Slurm") from None
        texts = [_text(os.path.join(own, f"{rank}.log")) for rank in range(ranks)]
    if array.returncode != 0:
        failures = [f"rank {rank}: {text}" for rank, text in enumerate(texts) if text]
        raise Error(f"Slurm ended with code {array.returncode}: {(failures or [array.stderr.strip()])[0]}")


def _text(log: str) -> str:
    """Return the text of a log, which the node has written."""
    try:
        with open(log) as f:
            return f.read().strip()
    except OSError:
        return ""


def _load(path: str, digest: str) -> Task:
    """Return the task of a file, if it is the task that was submitted."""
    with open(path, "rb") as file:
        data = file.read()
    if hashlib.sha256(data).hexdigest() != digest:
        raise Error(f"{path}: it is not the task that was submitted: another program wrote this file; call penstock.map again")
    task: Task = pickle.loads(data)
    return task


def _call(task: Task, rank: int) -> None:
    task(rank)


def _pickler() -> Any:
    """Return cloudpickle, which takes functions of a script, where it is installed; functions of modules need no more than pickle."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return pickle


def _import(module: str, packages: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Error(f"{module} is not installed: pip install {packages}") from None


if __name__ == "__main__":
    try:
        _load(sys.argv[1], sys.argv[2])(int(sys.argv[3]))
    except Error as _error:
        sys.exit(str(_error))
