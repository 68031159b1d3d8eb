"""Finished datasets that a stranger made: penstock.open leaves no folder, and waits for no pipe or device. Go's tests have the engine."""

import os
import shutil
import socket
import sys
import tempfile
import unittest

import penstock
from tests import data


@unittest.skipIf(sys.platform == "win32", "links and pipes are those of Unix")
class StrangersTest(unittest.TestCase):
    def test_open_stays_in_the_folder(self) -> None:
        good = os.path.join(data.folder(), "empty")
        for name in sorted(os.listdir(good)):
            for how in ("link out", "link in", "/dev/zero", "pipe", "socket", "folder"):
                with self.subTest(name=name, how=how), tempfile.TemporaryDirectory() as top:
                    path = os.path.join(top, "ds")
                    shutil.copytree(good, path)
                    _put(how, path, name, good)
                    if how == "link in":
                        with penstock.open(path) as ds:
                            self.assertEqual(len(ds), 10)
                    elif ".crc." not in name or how != "link out":  # Python reads no checksums
                        with self.assertRaises(penstock.Error):
                            penstock.open(path)


def _put(how: str, folder: str, name: str, outside: str) -> None:
    """Put something else in the place of a file."""
    path = os.path.join(folder, name)
    if how == "link in":
        os.rename(path, path + ".kept")
        os.symlink(name + ".kept", path)
        return
    os.remove(path)
    if how == "link out":
        os.symlink(os.path.join(outside, name), path)
    elif how == "/dev/zero":
        os.symlink("/dev/zero", path)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        os.mkdir(path)
    else:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(os.path.relpath(path))
