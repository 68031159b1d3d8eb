"""torch.cuda on the stand-in for NVIDIA's driver that loader/cuda's tests have.

Copies run as late as they may, and read their source when they run: memory that is used again, unmapped
or no longer page-locked gives wrong bytes or a fault, as on a device.
"""

import ctypes
import functools
import gc
import os
import shutil
import subprocess
import tempfile
import unittest
from contextlib import contextmanager
from unittest import mock

import torch

import penstock
from penstock._engine import device, pinned

from . import data

_SOURCE = os.path.join(data.HERE, "..", "..", "loader", "cuda", "testdata", "fakecuda", "fakecuda.c")
_STATS = ("contexts", "host", "registered", "device", "streams", "events", "modules", "calls", "faults", "copies", "pageable")


@functools.cache
def library():
    """Return the path of the stand-in, built with gcc."""
    if shutil.which("gcc") is None:
        raise unittest.SkipTest("the stand-in for NVIDIA's driver is built with gcc, which is not in PATH")
    path = os.path.join(tempfile.mkdtemp(prefix="penstock-fakecuda-"), "libcuda.so.1")
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", path, _SOURCE, "-lpthread"], check=True)
    return path


class Driver:
    """The stand-in, with nothing alive."""

    def __init__(self, lazy=True):
        self.library = ctypes.CDLL(library())
        self.library.fakecuda_fault.restype = ctypes.c_char_p
        self.library.fakecuda_reset(int(lazy), 1, 50, 1)
        self.library.fakecuda_writable(1)
        self.context = pinned.Context(0)

    def call(self, name, *arguments):
        self.context.call(name, *arguments)

    def stats(self):
        out = (ctypes.c_long * 13)()
        self.library.fakecuda_stats(out)
        return dict(zip(_STATS, out))

    def fault(self):
        return self.library.fakecuda_fault().decode()


class Stream:
    def __init__(self, driver, handle=None):
        self.driver, self.handle = driver, ctypes.c_void_p(handle)
        if handle is None:
            driver.call("cuStreamCreate", ctypes.byref(self.handle), 1)

    def wait_event(self, event):
        self.driver.call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def synchronize(self):
        self.driver.call("cuStreamSynchronize", self.handle)


class Event:
    def __init__(self, cuda):
        self.cuda, self.handle = cuda, ctypes.c_void_p()
        cuda.driver.call("cuEventCreate", ctypes.byref(self.handle), 3)

    def record(self, stream=None):
        self.cuda.driver.call("cuEventRecord", self.handle, (stream or self.cuda.current_stream()).handle)

    def query(self):
        try:
            self.cuda.driver.call("cuEventQuery", self.handle)
        except penstock.Error as e:
            if "NOT_READY" not in str(e) and "(600)" not in str(e):
                raise
            return False
        return True

    def synchronize(self):
        self.cuda.driver.call("cuEventSynchronize", self.handle)


class Cuda:
    """torch.cuda, and the tensors of its device: over memory of the stand-in."""

    def __init__(self, driver):
        self.driver, self.default, self.recorded = driver, Stream(driver, 1), 0
        self._current = self.default
        self.second = Stream(driver)  # the current stream of another device, which torch uses too
        self.at_once = False  # copies are done before to() returns, for work on their results that is none of the stand-in's

    def Stream(self, _):
        return Stream(self.driver)

    def Event(self, blocking=False):
        return Event(self)

    def device_count(self):
        return 3

    def current_stream(self, where=None):
        index = where.index if isinstance(where, torch.device) else where
        if index == 2:
            raise AssertionError("a device that torch has not begun to use")
        return self.second if index == 1 else self._current

    @contextmanager
    def stream(self, stream):
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def to(self, tensor, *arguments, **options):
        if not (arguments and isinstance(arguments[0], torch.device) and arguments[0].type == "cuda"):
            return _to(tensor, *arguments, **options)
        address = ctypes.c_uint64()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(tensor.nbytes, 1)))
        if tensor.nbytes == 0:
            return tensor.clone()
        assert tensor.is_contiguous() and options == {"non_blocking": True}
        self.driver.call(
            "cuMemcpyHtoDAsync_v2",
            address,
            ctypes.c_void_p(tensor.data_ptr()),
            ctypes.c_size_t(tensor.nbytes),
            self.current_stream(arguments[0]).handle,
        )
        if self.at_once:
            self._current.synchronize()
        memory = (ctypes.c_ubyte * tensor.nbytes).from_address(address.value)
        return torch.frombuffer(memory, dtype=tensor.dtype).reshape(tensor.shape)

    def later(self, tensor, index=0):
        """Queue a read of a tensor on the current stream of a device, and return the bytes that it will have read."""
        host = ctypes.c_void_p()
        self.driver.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(tensor.nbytes), 0)
        self.driver.call(
            "cuMemcpyDtoHAsync_v2", host, ctypes.c_uint64(tensor.data_ptr()), ctypes.c_size_t(tensor.nbytes), self.current_stream(index).handle
        )
        ctypes.memset(host, 0xAB, tensor.nbytes)
        return (ctypes.c_ubyte * tensor.nbytes).from_address(host.value)

    def record_stream(self, _):
        self.recorded += 1


_to = torch.Tensor.to


@contextmanager
def cuda(test, lazy=True, pageable=0):
    """Have torch find a device, and fail the test if memory is used in a way that a device punishes."""
    with mock.patch.object(pinned, "LIBRARIES", (library(),)):
        driver = Driver(lazy)
        fake = Cuda(driver)
        with (
            mock.patch.object(device, "_cuda", fake),
            mock.patch.object(device, "_in_use", lambda index: index < 2),
            mock.patch.object(torch.cuda, "is_available", lambda: True),
            mock.patch.object(torch.cuda, "current_device", lambda: 0),
            mock.patch.object(torch.Tensor, "to", lambda t, *a, fake=fake, **o: fake.to(t, *a, **o)),
            mock.patch.object(torch.Tensor, "record_stream", lambda t, s, fake=fake: fake.record_stream(s)),
        ):
            yield fake
            gc.collect()
            driver.call("cuCtxSynchronize")
        stats = driver.stats()
        test.assertEqual(stats["faults"], 0, driver.fault())
        test.assertEqual(stats["registered"], 0, "memory that is still page-locked")
        test.assertEqual(stats["pageable"], pageable, "copies of memory that is not page-locked")
        del fake, driver
        gc.collect()
