#!/usr/bin/env python3
"""Tests .ci/environments.py with an empty list of packages, which needs no network."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
import environments  # noqa: E402

MAKE = "import sys; sys.path.insert(0, sys.argv[1]); import environments, pathlib; " \
    "environments.ROOT = pathlib.Path(sys.argv[2]); print(environments.make('test'))"


class Environments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        (root / ".ci").mkdir()
        (root / ".ci/test.txt").write_text("# nothing\n")
        for patch in (mock.patch.object(environments, "ROOT", root), mock.patch.dict(os.environ, XDG_CACHE_HOME=folder.name)):
            patch.start()
            self.addCleanup(patch.stop)

    def begin(self):
        return subprocess.Popen([sys.executable, "-c", MAKE, str(Path(__file__).parent), str(environments.ROOT)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_two_at_once_make_one(self):
        results = [p.communicate() for p in [self.begin(), self.begin()]]
        self.assertEqual([out.strip() for out, _ in results], [str(environments.place("test") / "bin/python")] * 2, results)
        self.assertEqual(sum("made in" in err for _, err in results), 1, results)

    def test_a_broken_or_half_one_is_repaired(self):
        place = environments.place("test")
        half = Path(f"{place}.part.1")
        (half / "bin").mkdir(parents=True)  # of a process that was killed
        (place / "bin").mkdir(parents=True)
        (place / "bin/python").symlink_to("/removed/python")
        self.assertIsNone(environments.ready("test"))
        python = environments.make("test")
        prefix = subprocess.run([python.parent / "pip", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertIn(str(place), prefix)
        self.assertFalse(half.exists())
        self.assertEqual(environments.make("test"), python)

    def test_what_pip_cannot_install_leaves_nothing(self):
        (environments.ROOT / ".ci/test.txt").write_text("/no/such/package.whl\n")
        with self.assertRaisesRegex(environments.Missing, "pip cannot install .ci/test.txt"):
            environments.make("test")
        self.assertEqual(list(environments.place("test").parent.glob("test-*[!k]")), [])


if __name__ == "__main__":
    unittest.main()
