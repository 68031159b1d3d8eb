"""Tables of joins, which are files as long as somebody has them."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

from penstock import found


@unittest.skipIf(found.fcntl is None, "folders of tables are locked on Unix only")
class FolderTest(unittest.TestCase):
    def test_folders_of_killed_processes_go(self):
        with tempfile.TemporaryDirectory() as parent:
            killed = f"import os; from penstock import found; print(found._own_folder({parent!r})[0]); os.sys.stdout.flush(); os.kill(os.getpid(), 9)"
            left = subprocess.run([sys.executable, "-c", killed], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
            self.assertTrue(os.path.isdir(left), left)
            other, begun, old = (os.path.join(parent, name) for name in ("other", "penstock-table-begun", "penstock-table-old"))
            for folder in (other, begun, old):
                os.mkdir(folder)
            for folder in (left, old):
                os.utime(folder, times=(time.time() - 7200,) * 2)
            mine, lock = found._own_folder(parent)
            os.utime(mine, times=(time.time() - 7200,) * 2)
            again, other_lock = found._own_folder(parent)
            self.assertEqual(sorted(os.listdir(parent)), sorted(os.path.basename(p) for p in (other, begun, mine, again)))
            for folder, held in ((mine, lock), (again, other_lock)):
                found._forget("", folder, held)
            self.assertEqual(sorted(os.listdir(parent)), ["other", "penstock-table-begun"])
