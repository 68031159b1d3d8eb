"""A dataset by Ray: each task makes one part, and this program joins them.

    RAY_ADDRESS=HOST:6379 python preprocess.py PARTS SOURCE DEST [flags of preprocess]

SOURCE and DEST are on a disk that all workers share, or in a bucket. The workers and this machine
need the program penstock, which is in the wheel (make wheel), or $PENSTOCK. A task may be killed, retried
elsewhere and run twice at the same time.
"""

import os
import subprocess
import sys

import ray

PROGRAM = os.environ.get("PENSTOCK", "penstock")  # of this machine: tasks take its value


def penstock(*arguments):
    run = subprocess.run([PROGRAM, *arguments], stderr=subprocess.PIPE, text=True)
    if run.returncode not in (0, 3):  # 3: some samples were skipped, as --on-error skip asks for
        raise RuntimeError(run.stderr.strip() or f"penstock ended with code {run.returncode}")


parts, arguments = int(sys.argv[1]), sys.argv[2:]


def make(rank):
    penstock("preprocess", *arguments, "--quiet", "--rank", str(rank), "--world-size", str(parts))


ray.init()
task = ray.remote(max_retries=4)(make)
ray.get([task.remote(rank) for rank in range(parts)])
penstock("preprocess", "merge", "--resume", arguments[1])
