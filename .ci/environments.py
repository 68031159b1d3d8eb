#!/usr/bin/env python3
"""Makes virtual environments of Python from lists of packages, outside the clones, and says where they are.

    .ci/environments.py python            # prints the interpreter of the environment of .ci/python.txt; exit 1 if it is not there
    .ci/environments.py python --make     # makes it first, or repairs it

An environment is ~/.cache/penstock/NAME-HASH (or below $XDG_CACHE_HOME), with the hash of its list: another list is another folder.
It is made beside and renamed, under a lock, so that it is there whole or not at all. Packages come by pip, with pip's configuration.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What is said before an environment is made.
COSTS = {"python": "torch for CUDA, TensorFlow, JAX and others: a download of about 3 GB, 8 GB on disk, 4 minutes on a fast link"}


class Missing(Exception):
    """Says what this machine lacks, and what to install."""


def packages(name):
    """Return the path of an environment's list."""
    return ROOT / f".ci/{name}.txt"


def place(name):
    """Return the folder of an environment."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "penstock" / f"{name}-{hashlib.sha256(packages(name).read_bytes()).hexdigest()[:12]}"


def runs(python):
    """Return whether an interpreter starts: that of an environment is a link, whose target may be removed."""
    with contextlib.suppress(OSError):
        return subprocess.run([python, "-c", ""], check=False, stderr=subprocess.DEVNULL).returncode == 0
    return False


def ready(name):
    """Return the interpreter of an environment, None where it is not there or does not run."""
    python = place(name) / "bin/python"
    return python if runs(python) else None


def create(folder):
    """Make a virtual environment with pip."""
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        raise Missing(f"{sys.executable} cannot make a virtual environment (Debian: apt-get install python3-venv): {made.stdout.strip()}")


@contextlib.contextmanager
def pip():
    """Yield the command of a pip: this interpreter's, or, as on Debian without python3-pip, one of a virtual environment."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        yield own
        return
    with tempfile.TemporaryDirectory() as folder:
        create(folder)
        yield [f"{folder}/bin/python", "-m", "pip"]


def make(name):
    """Return the interpreter of an environment, which is made or repaired if need be."""
    if python := ready(name):
        return python
    if sys.version_info < (3, 11):
        raise Missing(f"{packages(name).relative_to(ROOT)} is for Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}")
    folder = place(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (python := ready(name)):  # another process was faster
            print(f"environments: making {folder} from PyPI{': ' + COSTS[name] if name in COSTS else ''}", file=sys.stderr, flush=True)
            install(name, folder)
            python = ready(name)
    if not python:
        raise Missing(f"{folder}/bin/python does not run")
    return python


def install(name, folder):
    """Make the folder of an environment. One that is there is broken."""
    for left in folder.parent.glob(f"{folder.name}.part.*"):  # of runs that were killed: the lock is ours
        shutil.rmtree(left)
    part, began = Path(f"{folder}.part.{os.getpid()}"), time.monotonic()
    try:
        create(part)
        installed = subprocess.run([f"{part}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
                                    "--no-deps", "--requirement", str(packages(name))], check=False, stdout=sys.stderr)
        if installed.returncode != 0:
            raise Missing(f"pip cannot install {packages(name).relative_to(ROOT)}; its reasons are above")
        for script in (part / "bin").iterdir():  # they have the folder's name
            if not script.is_symlink() and str(part).encode() in (text := script.read_bytes()):
                script.write_bytes(text.replace(str(part).encode(), str(folder).encode()))
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print(f"environments: made in {time.monotonic() - began:.0f} s", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=sorted(p.stem for p in ROOT.glob(".ci/*.in")))
    parser.add_argument("--make", action="store_true", help="make or repair it first")
    args = parser.parse_args()
    try:
        python = make(args.name) if args.make else ready(args.name)
    except Missing as e:
        raise SystemExit(f"environments: {e}") from None
    if not python:
        raise SystemExit(f"environments: {place(args.name)} is not there: run .ci/deps {args.name}")
    print(python)


if __name__ == "__main__":
    main()
