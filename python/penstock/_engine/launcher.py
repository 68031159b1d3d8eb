"""Which of several processes that train together this process is, according to their launcher.

It is for ``rank="auto"``, and for the warning of a DataLoader that would give all processes the same data.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping

from .._base.errors import Error

#: Variables with the number of a process and of all, by launcher: the same list as in package rank in Go, in its order.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),  # torchrun, Accelerate, Kubeflow PyTorchJob
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),  # MVAPICH
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("SLURM_PROCID", "SLURM_NTASKS"),  # srun
    ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"),  # Kubernetes Indexed Job
    ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),  # AWS Batch array job
    ("BATCH_TASK_INDEX", "BATCH_TASK_COUNT"),  # Google Cloud Batch
    ("CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT"),  # Cloud Run job
)


def training(environ: Mapping[str, str] | None = None) -> tuple[int, int, str] | None:
    """Return rank, world size and where they are from; None if nothing says them.

    A process group of torch.distributed that is initialized says more than the environment. Raise
    Error for one variable of a pair without the other, or with a value that is not a rank.
    """
    if environ is None:
        environ = os.environ
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank, size = distributed.get_rank(), distributed.get_world_size()
            return rank, size, f"torch.distributed has rank {rank} of {size}"
    for number, total in _VARIABLES:
        if number in environ and total in environ:
            return _parsed(number, environ[number], total, environ[total])
        if number in environ or (total in environ and number != "SLURM_PROCID"):  # Slurm sets the number for a batch script, too, which is not a task
            there, missing = (number, total) if number in environ else (total, number)
            raise Error(f"environment: {there} is set, but not {missing}; set both, or give rank= and world_size= as numbers")
    return None


def _parsed(number: str, rank: str, total: str, size: str) -> tuple[int, int, str]:
    said = f"{number}={rank} {total}={size}"
    try:
        at, of = int(rank), int(size)
    except ValueError:
        at, of = -1, 0
    if not 0 <= at < of:
        raise Error(f"environment: {said}: a rank is a number from 0 to {total} - 1")
    return at, of, said


def automatic(world_size: int | None) -> tuple[int, int]:
    """Return rank and world size for rank="auto": 0 and 1 where no launcher says them."""
    rank, size, said = training() or (
        0,
        1,
        "torch.distributed is not initialized, and the environment has no launcher's variables, such as RANK and WORLD_SIZE",
    )
    if world_size not in (None, size):
        raise Error(f'rank="auto": {said}, and world_size is {world_size}; leave world_size out, or give rank as a number')
    return rank, size


def warn_of_others() -> None:
    """Warn that this process is one of several, and gets all the data, as the other processes do."""
    try:
        found = training()
    except Error:
        return  # it is nobody's launcher
    if found is not None and found[1] > 1:
        warnings.warn(
            f"{found[2]}, and a DataLoader without rank= has each process load all of the data; "
            'give rank="auto" for a part each, or rank=0, world_size=1 '
            "for all of it",
            stacklevel=4,
        )
