import contextlib
import gc
import mmap
import multiprocessing
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from collections import deque
from unittest import mock

import numpy as np

import penstock
from penstock import samplers
from penstock._code.memory import Reader, Writer, memory_file
from penstock._engine import sharedfile
from penstock._engine.shared import Rows, SharedMemory, Slot
from penstock._engine.sharedfile import SharedFile

from . import data
from .test_dataloader import gone, loader, records


def pair_of_tcp():
    """Return what socket.socketpair returns on Windows."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        ours = socket.create_connection(listener.getsockname())
        return ours, listener.accept()[0]


def write_in_child(file, at):
    file.grow(at + mmap.ALLOCATIONGRANULARITY)
    with file.map(at, 5) as memory:
        memory[:] = b"child"


def load_in_child(pipe, name, feed):
    with penstock.DataLoader(name, 100, output="numpy", command=feed) as dl:
        pipe.send((os.environ[sharedfile.TRANSPORT], records(dl)))


class PortableTest(unittest.TestCase):
    """A few tests of the portable transport; with PENSTOCK_TRANSPORT=portable, all others are of it, too."""

    def setUp(self):
        data.folder()  # before TMPDIR is another one
        self.folder = tempfile.mkdtemp(prefix="penstock python ümlaut ")
        self.addCleanup(shutil.rmtree, self.folder)
        names = {sharedfile.TRANSPORT: "portable", "TMPDIR": self.folder, "TEMP": self.folder}
        for patch in (mock.patch.dict(os.environ, names), mock.patch.object(tempfile, "tempdir", None)):
            patch.start()
            self.addCleanup(patch.stop)

    def test_the_batches_of_the_other_transport(self):
        ragged = {"sampler": samplers.Weighted(np.arange(700) % 7, 900), "prefetch_factor": 3, "num_workers": 1}
        for name, options in (("images", {"shuffle": True}), ("ragged", ragged), ("types", {})):
            batches = []
            for transport in ("portable", "native" if data.NATIVE else "portable"):
                with mock.patch.dict(os.environ, {sharedfile.TRANSPORT: transport}), loader(name, 64, seed=5, **options) as dl:
                    batches.append([{n: np.asarray(getattr(v, "values", v)).tobytes() for n, v in b.items()} for _ in range(2) for b in dl])
                    self.assertGreater(dl.stats()["shared"], 0)
            self.assertEqual(*batches)
        gc.collect()
        self.assertEqual(os.listdir(self.folder), [], "a file stays in the temporary folder")

    def test_arrays_of_a_slot_in_two_parts_of_the_memory(self):
        file, page = SharedFile.create(), mmap.ALLOCATIONGRANULARITY
        file.grow(2 * page)
        memory, freed, rows = SharedMemory(file), deque(), Rows(np.dtype(np.uint8))
        memory.mapped(page)
        slot = Slot(memory.mapped(2 * page), 3, freed, 64)
        near, far = slot.array(64, rows, 100), slot.array(page + 64, rows, 100)
        near[:], far[:] = 1, 2
        (first, n), (second, _) = sorted(slot.addresses(), key=lambda place, at=near.ctypes.data: place[0] != at)
        self.assertEqual((first, second, n), (near.ctypes.data, far.ctypes.data, 100))
        for at in (page - 64, 2 * page, -64, 1):
            with self.subTest(at=at), self.assertRaises(penstock.Error):
                slot.array(at, rows, 100)
        del slot, near
        self.assertEqual((memory.used(), len(freed)), ([3], 0))
        kept = far[50:].reshape(5, 10).T
        del far
        self.assertEqual((kept.sum(), len(freed)), (100, 0))
        del kept
        self.assertEqual([lent.number for lent in freed], [3])
        last = Slot(memory.mapped(2 * page), 4, freed, 64).array(page + 64, rows, 100)
        memory.close()
        self.assertEqual(last.sum(), 200)

    def test_a_connection_of_windows(self):
        with mock.patch.object(socket, "socketpair", pair_of_tcp), loader("images", 100, prefetch_factor=1, num_workers=1) as dl:
            self.assertEqual(records(dl), list(range(1500)))
            child = dl._engine.session.child
        self.assertEqual(child.returncode, 0)

    def test_memory_of_a_worker_that_grows_while_it_is_mapped(self):
        """A file on a disk grows in pieces: its end may be within a slot."""
        file = memory_file()
        writer, reader = Writer(file), Reader(file)
        self.addCleanup(reader.close)

        def send(n):
            room = writer.room(n)
            room.take(n)[:] = n % 251
            return room.number, room.at, room.size, writer.end

        for n in (100, 3 << 20):
            slot = send(n)
            file.grow(file.size + mmap.ALLOCATIONGRANULARITY)  # the first piece of the next slot
            self.assertEqual(set(reader.slot(*slot)(0, n).tolist()), {n % 251})
        slot = send(5 << 20)
        self.assertEqual(set(reader.slot(*slot)(0, 5 << 20).tolist()), {(5 << 20) % 251})

    def test_files_have_no_name_and_one_reader(self):
        with loader("images", 100):
            self.assertEqual(os.listdir(self.folder) if os.name == "posix" else [], [])
        file = SharedFile.create()
        self.addCleanup(file.close)
        if os.name == "posix":
            self.assertEqual(stat.S_IMODE(os.fstat(file.fd).st_mode), 0o600)

    def test_a_file_grows(self):
        file = SharedFile.create()
        self.addCleanup(file.close)
        page = mmap.ALLOCATIONGRANULARITY
        file.append(memoryview(b"x" * 7))
        file.grow(3 * page)
        first = file.map(0, 2 * page)
        file.grow(3 << 20)
        file.grow(page)  # it does not shrink
        self.assertEqual((file.size, first[:9]), (3 << 20, b"x" * 7 + b"\0\0"))
        again, last = file.map(page, page), file.map((3 << 20) - page, page)
        again[3], last[page - 1] = 5, 6
        self.assertEqual((first[page + 3], last[page - 1]), (5, 6))
        with self.assertRaisesRegex(ValueError, "of a file of 3145728"):
            file.map(3 << 20, 1)
        del first, again, last

    def test_processes_of_multiprocessing(self):
        file = SharedFile.create()
        self.addCleanup(file.close)
        with self.assertRaises(RuntimeError):
            file.__reduce__()  # it goes to a process that is started, and nowhere else
        process = multiprocessing.get_context("spawn").Process(target=write_in_child, args=(file, mmap.ALLOCATIONGRANULARITY))
        process.start()
        process.join(300)
        self.assertEqual(process.exitcode, 0)
        with file.map(0, file.size) as memory:
            self.assertEqual(memory[mmap.ALLOCATIONGRANULARITY :][:5], b"child")

    def test_a_loader_in_a_spawned_process(self):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=load_in_child, args=(theirs, data.path("images"), data.feed()))
        process.start()
        theirs.close()
        self.assertEqual(ours.recv(), ("portable", list(range(1500))))
        process.join(300)
        self.assertEqual(process.exitcode, 0)

    def test_what_it_cannot_do(self):
        with self.assertRaisesRegex(penstock.Error, "^x: socket= needs the native transport of Linux, which passes memory over the socket; "):
            penstock.DataLoader(socket="x", batch_size=2, output="numpy")
        with (
            mock.patch.dict(os.environ, {sharedfile.TRANSPORT: "Portable"}),
            self.assertRaisesRegex(penstock.Error, "PENSTOCK_TRANSPORT=Portable: must be native or portable"),
        ):
            loader("images", 2)
        with mock.patch.dict(os.environ, {sharedfile.TRANSPORT: "native"}), mock.patch.object(sys, "platform", "darwin"):
            with self.assertRaisesRegex(penstock.Error, "PENSTOCK_TRANSPORT=native needs Linux; unset it"):
                loader("images", 2)

    @unittest.skipUnless(os.name == "posix", "the shell limits the sizes of files")
    def test_a_full_disk(self):
        """An error of the loader says so; no process ends by a fault."""
        command = os.path.join(self.folder, "feed")
        with open(command, "w") as f:
            f.write(f'#!/bin/sh\nulimit -f 100\nexec "{data.feed()}" "$@"\n')
        os.chmod(command, 0o700)
        with self.assertRaisesRegex(penstock.Error, "allocating .* bytes of shared memory: .*file too large; lower batch_size or prefetch"):
            with penstock.DataLoader(data.path("images"), 1000, output="numpy", command=command) as dl:
                list(dl)

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    @data.needs_proc
    def test_processes_that_are_killed(self):
        """Whichever is killed, at whatever moment: the other ends, and no file stays."""
        pids = os.path.join(self.folder, "pids")
        code = f"""if True:
            import os, time, penstock
            def note(pid):
                with open({pids!r}, "a") as f:
                    print(pid, file=f)
            note(os.getpid())
            f = penstock.DataLoader({data.path("images")!r}, 50, output="numpy", command={data.feed()!r})
            note(f.pid)
            if os.fork() == 0: # which has the socket, too
                note(os.getpid())
                time.sleep(600)
            while True:
                for batch in f:
                    pass
        """
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, "..")}
        for noted, wait in ((1, 0), (1, 0.02), (1, 0.05), (2, 0), (3, 0), (3, 0.1)):
            with subprocess.Popen([sys.executable, "-c", code], env=env, start_new_session=True) as trainer:
                numbers, end = [], time.monotonic() + 300
                while len(numbers) < noted and time.monotonic() < end:
                    with contextlib.suppress(FileNotFoundError), open(pids) as f:
                        numbers = f.read().split()
                    time.sleep(0.001)
                time.sleep(wait)
                trainer.kill()
            with open(pids) as f:
                _, *others = map(int, f.read().split())
            try:
                self.assertTrue(all(map(gone, others[:1])), "the feeding process outlives the trainer")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(trainer.pid, signal.SIGKILL)  # also a fork that had not noted its number yet
            os.unlink(pids)
        # Python tries the folder with a file of a random name, which stays if it is killed then.
        left = [name for name in os.listdir(self.folder) if name.startswith("penstock")]
        self.assertEqual(left, [], "a file stays in the temporary folder")


if __name__ == "__main__":
    unittest.main()
