"""The datasets that the tests read: made by the Go program in this folder."""

import atexit
import os
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import numpy as np

from penstock._engine import sharedfile

#: Whether memory is passed over a unix socket, or inherited: see PENSTOCK_TRANSPORT.
NATIVE = sharedfile.transport() == "native"
needs_native = unittest.skipUnless(NATIVE, "only the native transport passes memory over a socket that several clients connect to")
needs_proc = unittest.skipUnless(os.path.isdir("/proc/self/fd"), "it looks at processes in /proc, which Linux has")

HERE = os.path.dirname(os.path.abspath(__file__))


def folder() -> str:
    """Return where the datasets are; make them if PENSTOCK_TEST_DATA does not say."""
    if "PENSTOCK_TEST_DATA" not in os.environ:
        made = tempfile.mkdtemp(prefix="penstock-python-")
        atexit.register(shutil.rmtree, made)
        try:
            subprocess.run(["go", "run", ".", made], cwd=HERE, check=True)
        except FileNotFoundError as e:
            raise unittest.SkipTest("the datasets of the tests are made by Go, which is not in PATH") from e
        os.environ["PENSTOCK_TEST_DATA"] = made
    return os.environ["PENSTOCK_TEST_DATA"]


def path(name: str) -> str:
    return os.path.join(folder(), name)


def expected(dataset: str, field: str) -> bytes:
    """Return all values of a field, as package mmapds reads them."""
    with open(path(f"{dataset}.{field}.bin"), "rb") as f:
        return f.read()


def expected_rows(dataset: str, field: str) -> np.ndarray:
    """Return where the records of a ragged field start and end in its values."""
    return np.fromfile(path(f"{dataset}.{field}.offsets"), "<i8")


def expected_floats(dataset: str, field: str) -> np.ndarray:
    """Return them as the numbers that they are for Go, where NumPy has no such type."""
    return np.fromfile(path(f"{dataset}.{field}.f32"), "<f4")


class Copied(unittest.TestCase):
    """A test that changes a dataset: it gets one of its own."""

    def copy(self, name: str) -> str:
        base = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, base)
        copied = os.path.join(base, name)
        if os.path.isdir(path(name)):
            shutil.copytree(path(name), copied)
            for file in os.listdir(copied):
                os.chmod(os.path.join(copied, file), 0o644)
        else:
            shutil.copy(path(name), copied)
            os.chmod(copied, 0o644)
        return copied


def feed() -> str:
    """Return the command feed, built if PENSTOCK_TEST_FEED does not say where it is."""
    return _command("feed", "PENSTOCK_TEST_FEED")


def preprocess() -> str:
    """Return the command preprocess, built if PENSTOCK_TEST_PREPROCESS does not say where it is."""
    return _command("preprocess", "PENSTOCK_TEST_PREPROCESS")


def penstock() -> str:
    """Return the program penstock, built if PENSTOCK_TEST_PENSTOCK does not say where it is."""
    return _command("penstock", "PENSTOCK_TEST_PENSTOCK")


def name_programs() -> None:
    """Have penstock start the programs of these tests until those of the module end: call it in setUpModule."""
    patch = mock.patch.dict(os.environ, {"PENSTOCK_PROGRAM": penstock(), "PENSTOCK_PREPROCESS": preprocess(), "PENSTOCK_FEED": feed()})
    patch.start()
    unittest.addModuleCleanup(patch.stop)


def _command(name: str, variable: str) -> str:
    if variable not in os.environ:
        made = os.path.join(folder(), name)
        subprocess.run(["go", "build", "-C", os.path.join(HERE, "..", ".."), "-tags", "nocloud", "-o", made, f"./cmd/{name}"], check=True)
        os.environ[variable] = made
    return os.environ[variable]


def feed_with_clouds() -> str:
    """Build the command feed with the SDKs of the clouds, which those of other tests do not have: they take long to link."""
    made = os.path.join(folder(), "clouds", "feed")
    subprocess.run(["go", "build", "-C", os.path.join(HERE, "..", ".."), "-o", made, "./cmd/feed"], check=True)
    return made
