import ctypes
import unittest
from unittest import mock

import penstock.cuda


class CUDATest(unittest.TestCase):
    """Tests that need no driver; loader/cuda's tests have the rest."""

    def test_without_driver(self):
        want = "no libthatisnotthere.so.1; install it, in a container run with --gpus"
        with mock.patch.object(penstock.cuda, "LIBRARIES", ("libthatisnotthere.so.1",)), self.assertRaisesRegex(penstock.Error, want):
            penstock.cuda.Imports(0)

    def test_handle_is_passed_whole(self):
        handle = bytes(range(64))
        self.assertEqual(bytes(penstock.cuda._Handle.from_buffer_copy(handle)), handle)
        self.assertEqual(ctypes.sizeof(penstock.cuda._Handle), 64)
