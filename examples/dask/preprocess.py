"""A dataset by Dask: each task makes one part, and this program joins them.

    DASK_SCHEDULER_ADDRESS=tcp://HOST:8786 python preprocess.py PARTS SOURCE DEST [flags of preprocess]

SOURCE and DEST are on a disk that all workers share, or in a bucket. The workers and this machine
need the program penstock, which is in the wheel (make wheel), or $PENSTOCK. A task may be killed, retried
elsewhere and run twice at the same time.
"""

import os
import subprocess
import sys

from dask.distributed import Client

PROGRAM = os.environ.get("PENSTOCK", "penstock")  # of this machine: tasks take its value


def penstock(*arguments):
    run = subprocess.run([PROGRAM, *arguments], stderr=subprocess.PIPE, text=True)
    if run.returncode not in (0, 3):  # 3: some samples were skipped, as --on-error skip asks for
        raise RuntimeError(run.stderr.strip() or f"penstock ended with code {run.returncode}")


parts, arguments = int(sys.argv[1]), sys.argv[2:]


def make(rank):
    penstock("preprocess", *arguments, "--quiet", "--rank", str(rank), "--world-size", str(parts))


with Client() as client:
    client.gather(client.map(make, range(parts), pure=False, retries=4))
penstock("preprocess", "merge", "--resume", arguments[1])
