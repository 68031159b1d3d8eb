"""Attacks of other users of the machine: planted links, folders where they may rename, sockets and tasks of theirs."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import pickle
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import penstock
from penstock._base import files
from penstock._code import engines
from penstock._engine import process

from . import data

#: How often names are attacked while files are written: 1,000 and more by hand.
RACES = int(os.environ.get("PENSTOCK_TEST_RACES", "10"))

_NOBODY = 65534


def setUpModule() -> None:
    data.name_programs()


def task(rank: int) -> None:
    with open(os.path.join(os.environ["PENSTOCK_TEST_OUT"], str(rank)), "w") as f:
        f.write("ran")


class Attacker:
    """Plants links to a victim's file under every name that appears in a folder, and under those that can be guessed."""

    def __init__(self, folder: str, victim: str, guesses: list[str]) -> None:
        self._folder, self._victim, self._guesses, self._end = folder, victim, guesses, threading.Event()
        self._thread = threading.Thread(target=self._attack)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _attack(self) -> None:
        while not self._end.is_set():
            for name in self._guesses:
                try:
                    os.symlink(self._victim, os.path.join(self._folder, name))
                except OSError:
                    continue


class FilesTest(data.Copied):
    def setUp(self) -> None:
        self.base = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, self.base)
        self.victim = os.path.join(self.base, "victim")
        with open(self.victim, "w") as f:
            f.write("mine")

    def unharmed(self) -> None:
        with open(self.victim) as f:
            self.assertEqual(f.read(), "mine")

    def test_views_are_written_through_no_link(self) -> None:
        folder = os.path.join(self.base, "shared")
        os.mkdir(folder)
        numbers = np.random.default_rng(0).integers(0, 1500, 1 << 17)
        view = penstock.open(data.path("images")).select(numbers)
        path = os.path.join(folder, "v.view.json")
        guesses = [f"v.view.json.{os.getpid()}.tmp", "v.records-0.npy", ".v.view.json.tmp"]
        for _ in range(RACES):
            with Attacker(folder, self.victim, guesses):
                view.save(path)
            self.unharmed()
            self.assertEqual(len(penstock.open(path)), len(numbers))
            self.assertFalse([n for n in os.listdir(folder) if n not in (*guesses, "v.view.json")])
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))

    def test_temporary_views_are_in_a_folder_of_this_user(self) -> None:
        with mock.patch.object(tempfile, "tempdir", self.base), mock.patch.object(files, "_own", None):
            view = penstock.open(data.path("images")).select(np.arange(0, 1500, 3))
            path = view.path
            above = path
            while (above := os.path.dirname(above)) != self.base:
                self.assertEqual(stat.S_IMODE(os.stat(above).st_mode), 0o700, above)
            self.assertEqual(len(penstock.open(path)), 500)
            del view
            self.assertFalse(os.path.exists(path))
            self.assertEqual(glob.glob(f"{self.base}/**/*.json", recursive=True), [])

    def test_a_planted_folder_for_temporary_files_is_refused(self) -> None:
        own = os.path.join(self.base, f"penstock-{os.geteuid()}")
        view = penstock.open(data.path("images")).select(range(3))
        with mock.patch.object(tempfile, "tempdir", self.base), mock.patch.object(files, "_own", None):
            os.symlink("/", own)
            with self.assertRaisesRegex(penstock.Error, "not a folder of this user alone"):
                print(view.path)
            os.remove(own)
            os.mkdir(own, 0o777)
            os.chmod(own, 0o777)
            with self.assertRaisesRegex(penstock.Error, "not a folder of this user alone"):
                print(view.path)
            os.rmdir(own)
            os.chmod(self.base, 0o777)
            with self.assertRaisesRegex(penstock.Error, r"others may rename what is in it; run chmod \+t"):
                print(view.path)
            os.chmod(self.base, 0o1777)
            self.assertTrue(view.path)

    def test_files_take_their_names_when_they_are_complete(self) -> None:
        path = os.path.join(self.base, "file")
        old = os.umask(0o027)
        try:
            with files.replacing(path) as f:
                f.write(b"a")
                self.assertFalse(os.path.exists(path))
        finally:
            os.umask(old)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o640)
        with self.assertRaises(ZeroDivisionError), files.replacing(path) as f:
            f.write(b"b")
            raise ZeroDivisionError
        os.remove(path)
        os.symlink(self.victim, path)
        with files.replacing(path) as f:
            f.write(b"c")
        self.assertFalse(os.path.islink(path))
        self.unharmed()
        self.assertEqual(sorted(os.listdir(self.base)), ["file", "victim"])
        pipe = os.path.join(self.base, "pipe")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        with files.replacing(pipe) as f:
            f.write(b"d")
        self.assertEqual(os.read(reader, 9), b"d")
        os.close(reader)

    def test_logs_plots_and_statistics_replace_links(self) -> None:
        ds = penstock.open(data.path("images"))
        with contextlib.redirect_stdout(io.StringIO()):
            report = penstock.loadbench(penstock.DataLoader(ds, 500, output="numpy"), 0.0, epochs=1)
        numbers = next(name for name, f in ds.fields.items() if not f.ragged and f.content != "source-name")
        for name, write in (
            ("log.csv", report.write_log),
            ("plot.svg", report.write_plot),
            ("statistics.npz", ds.statistics(numbers).save),
        ):
            path = os.path.join(self.base, name)
            os.symlink(self.victim, path)
            write(path)
            self.unharmed()
            self.assertTrue(os.path.getsize(path) > 10 and not os.path.islink(path), name)

    def test_locks_of_columns_follow_no_link(self) -> None:
        ds = penstock.open(self.copy("images"))
        lock = os.path.join(os.path.dirname(ds.path), f".{os.path.basename(ds.path)}.t.values.lock")
        os.symlink(self.victim, lock)
        with self.assertRaisesRegex(penstock.Error, "the lock cannot be made: Too many levels of symbolic links; remove"):
            ds.add_column("t", [str(i) for i in range(len(ds))])
        self.unharmed()

    def test_a_column_that_exists_leaves_no_values(self) -> None:
        ds = penstock.open(self.copy("images"))
        texts, before = [str(i) for i in range(len(ds))], os.listdir(os.path.dirname(ds.path))
        ds.add_column("t", texts)
        with self.assertRaisesRegex(penstock.Error, "it has a column 't' already; set_column replaces one"):
            ds.add_column("t", texts)
        self.assertEqual(os.listdir(os.path.dirname(ds.path)), before)

    def test_tables_of_views_replace_links(self) -> None:
        ds = penstock.open(data.path("images"))
        key = next(name for name, f in ds.fields.items() if not f.ragged and not f.shape)
        values = ds[key][:]
        unique = np.sort(np.unique(values, return_index=True)[1])[:3]
        view = ds.select(unique).join({key: values[unique], "x": [1, 2, 3]}, on=key)
        folder = os.path.join(self.base, "away")
        os.mkdir(folder)
        os.symlink(folder, os.path.join(self.base, "v.table-0"))
        view.save(os.path.join(self.base, "v.view.json"))
        self.assertEqual(os.listdir(folder), [])
        self.assertEqual(penstock.open(os.path.join(self.base, "v.view.json"))["x"][:].tolist(), [1, 2, 3][: len(unique)])

    @unittest.skipIf(files.fcntl is None, "folders of processes are locked on Unix only")
    def test_folders_of_killed_processes_go(self) -> None:
        killed = "import os; from penstock._base import files; print(files.temporary('x-')); os.sys.stdout.flush(); os.kill(os.getpid(), 9)"
        env = {**os.environ, "TMPDIR": self.base}
        left = subprocess.run([sys.executable, "-c", killed], stdout=subprocess.PIPE, text=True, env=env).stdout.strip()
        self.assertTrue(os.path.isdir(left), left)
        own = os.path.join(self.base, f"penstock-{os.geteuid()}")
        other, begun, old = (os.path.join(own, name) for name in ("other", "process-begun", "process-old"))
        for folder in (other, begun, old):
            os.mkdir(folder)
        for folder in (os.path.dirname(left), old):
            os.utime(folder, times=(time.time() - 7200,) * 2)
        with mock.patch.object(tempfile, "tempdir", self.base), mock.patch.object(files, "_own", None):
            mine = os.path.dirname(files.temporary("x-"))
            os.utime(mine, times=(time.time() - 7200,) * 2)
            subprocess.run([sys.executable, "-c", killed.replace("os.kill(os.getpid(), 9)", "")], stdout=subprocess.PIPE, env=env, check=True)
            self.assertEqual(sorted(os.listdir(own)), sorted(map(os.path.basename, (other, begun, mine))))

    def test_a_forked_process_leaves_the_files(self) -> None:
        script = (
            "import os, penstock, sys; v = penstock.open(sys.argv[1]).select(range(3)); p = v.path\n"
            "if os.fork() == 0:\n    del v; sys.exit()\n"
            "os.wait(); assert os.path.exists(p); del v; assert not os.path.exists(p)"
        )
        subprocess.run([sys.executable, "-c", script, data.path("images")], check=True, env={**os.environ, "TMPDIR": self.base})


@data.needs_native
class SocketTest(unittest.TestCase):
    def setUp(self) -> None:
        self.base = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, self.base)
        self.path = os.path.join(self.base, "feed")

    def as_nobody(self, act: Callable[[], None]) -> int:
        """Run a function in a forked process of another user, and return its number."""
        child = os.fork()
        if child == 0:
            try:
                os.setresgid(_NOBODY, _NOBODY, _NOBODY)
                os.setresuid(_NOBODY, _NOBODY, _NOBODY)
                act()
            finally:
                os._exit(0)
        return child

    @unittest.skipIf(os.geteuid(), "only root can be another user")
    def test_a_feed_of_another_user_is_refused(self) -> None:
        os.chmod(self.base, 0o777)

        def serve() -> None:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(self.path)
                listener.listen()
                time.sleep(60)

        child = self.as_nobody(serve)
        try:
            while not os.path.exists(self.path):
                time.sleep(0.01)
            with self.assertRaisesRegex(penstock.Error, rf"{self.path}: the feed there belongs to user .*{_NOBODY}.*, and this process to .*0"):
                penstock.DataLoader(socket=self.path, batch_size=2, output="numpy")
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)

    @unittest.skipIf(os.geteuid(), "only root can be another user")
    def test_a_client_of_another_user_is_refused(self) -> None:
        os.chmod(self.base, 0o777)
        server = subprocess.Popen([data.feed(), data.path("images"), "--socket", self.path, "--quiet"])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        while not os.path.exists(self.path):
            time.sleep(0.01)
        penstock.DataLoader(socket=self.path, batch_size=2, output="numpy").close()  # that of this user; it imports all that is needed
        os.chmod(self.path, 0o777)
        reader, writer = os.pipe()

        def load() -> None:
            try:
                penstock.DataLoader(socket=self.path, batch_size=2, output="numpy")
            except penstock.Error as e:
                os.write(writer, str(e).encode())

        os.waitpid(self.as_nobody(load), 0)
        os.close(writer)
        with open(reader) as said:
            self.assertIn(f"it serves user 0 alone, and this client belongs to user {_NOBODY}", said.read())

    def test_the_user_of_a_feed_is_its_own(self) -> None:
        with socket.socket(socket.AF_UNIX) as listener, mock.patch.object(os, "geteuid", lambda: 12345):
            listener.bind(self.path)
            listener.listen()
            if os.getuid() == 0:
                process.connect(self.path).close()  # root may serve all users
            else:
                with self.assertRaisesRegex(penstock.Error, "and this process to 12345; start your own"):
                    process.connect(self.path)


class SlurmTest(unittest.TestCase):
    """Slurm, played by a script that runs what it is given in this machine's shell, and may change the task before."""

    def setUp(self) -> None:
        self.base = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, self.base)
        self.out = os.path.join(self.base, "out")
        os.mkdir(self.out)
        script = f"""#!{sys.executable}
import glob, os, pickle, stat, subprocess, sys
given = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
[task] = glob.glob({self.base!r} + "/.penstock-*/*")
assert stat.S_IMODE(os.stat(os.path.dirname(task)).st_mode) == 0o700
if "PLANTED" in os.environ:
    os.rename(task, task + "~")
    with open(task, "wb") as f:
        f.write(eval(os.environ["PLANTED"]))
first, last = given["--array"].split("-")
code = 0
for rank in range(int(first), int(last) + 1):
    with open(given["--output"].replace("%a", str(rank)), "w") as log:
        env = {{**os.environ, "SLURM_ARRAY_TASK_ID": str(rank), "PYTHONPATH": given["--export"].split("PYTHONPATH=")[1]}}
        code = code or subprocess.run(["sh", "-c", given["--wrap"]], stdout=log, stderr=log, env=env).returncode
sys.exit(code)
"""
        path = os.path.join(self.base, "bin")
        os.mkdir(path)
        with open(os.path.join(path, "sbatch"), "w") as f:
            f.write(script)
        os.chmod(f.name, 0o755)
        self.environ = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "PENSTOCK_TEST_OUT": self.out}

    def run_task(self, dest: str, **more: str) -> list[str]:
        with mock.patch.dict(os.environ, {**self.environ, **more}):
            engines.run("slurm", task, 2, dest)
        return sorted(os.listdir(self.out))

    def test_tasks_run_and_leave_nothing(self) -> None:
        self.assertEqual(self.run_task(os.path.join(self.base, "ds")), ["0", "1"])
        self.assertEqual(sorted(os.listdir(self.base)), ["bin", "out"])

    def test_a_planted_task_does_not_run(self) -> None:
        planted = repr(pickle.dumps(Planted(os.path.join(self.out, "planted"))))
        with self.assertRaisesRegex(penstock.Error, "rank 0: .*it is not the task that was submitted"):
            self.run_task(os.path.join(self.base, "ds"), PLANTED=planted)
        self.assertEqual(os.listdir(self.out), [])

    def test_folders_where_others_rename_are_refused(self) -> None:
        for mode in (0o777, 0o775):
            os.chmod(self.base, mode)
            for dest in ("ds", "deep/ds"):
                with self.assertRaisesRegex(penstock.Error, rf"{self.base}: others may rename what is in it; run chmod \+t"):
                    self.run_task(os.path.join(self.base, dest))
        self.assertEqual(os.listdir(self.out), [])
        os.chmod(self.base, 0o1777)
        self.assertEqual(self.run_task(os.path.join(self.base, "ds")), ["0", "1"])


class Planted:
    """A pickle that runs code."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return open, (self._path, "w")
