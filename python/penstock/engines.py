"""Where the tasks of ``penstock.map(engine=...)`` run: on a cluster of Ray, Dask, Spark or Slurm.

A task is a rank: it makes one part of the dataset. Engines may kill a task, run it again elsewhere and
run it twice at the same time; the dataset stays the same.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from .errors import Error

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
    """Run the task of every rank on an engine, and return when all have ended; the error of one that fails is raised."""
    check(engine)
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
    """Run an array of jobs by sbatch. The task file is next to the dataset, where all nodes see it."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".penstock-", suffix=".task") as file:
        file.write(_pickler().dumps(task))
        file.flush()
        paths = os.pathsep.join(p for p in sys.path if p)
        work = f"exec '{sys.executable}' -m penstock.engines '{file.name}' \"$SLURM_ARRAY_TASK_ID\""
        command = ["sbatch", "--wait", "--parsable", "--requeue", f"--array=0-{ranks - 1}", "--job-name=penstock"]
        command += [f"--output={file.name}.%a.log", "--open-mode=truncate", f"--export=ALL,PYTHONPATH={paths}", f"--wrap={work}"]
        try:
            array = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            raise Error("there is no command sbatch: run this on a machine that submits jobs to Slurm") from None
        logs = [f"{file.name}.{rank}.log" for rank in range(ranks)]
        texts = [_take(log) for log in logs]
    if array.returncode != 0:
        failures = [f"rank {rank}: {text}" for rank, text in enumerate(texts) if text]
        raise Error(f"Slurm ended with code {array.returncode}: {(failures or [array.stderr.strip()])[0]}")


def _take(log: str) -> str:
    """Return the text of a log that the node has written, and remove it."""
    try:
        with open(log) as f:
            text = f.read().strip()
        os.remove(log)
    except OSError:
        return ""
    return text


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
    with open(sys.argv[1], "rb") as _file:
        _task = pickle.load(_file)
    try:
        _task(int(sys.argv[2]))
    except Error as _error:
        sys.exit(str(_error))
