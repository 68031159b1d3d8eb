import gc
import pickle
import threading
import unittest

import numpy as np

from penstock._engine import reused


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.before, reused._LEAST = reused._LEAST, 1 << 16
        self.addCleanup(setattr, reused, "_LEAST", self.before)

    def test_memory_is_used_again_when_nothing_refers_to_it(self):
        memory = reused.Memory()
        first = memory.empty((100, 1000), np.float32)
        self.assertEqual((first.shape, first.dtype, first.flags.c_contiguous, first.flags.writeable), ((100, 1000), np.float32, True, True))
        at = first.ctypes.data
        self.assertEqual(at % 64, 0)
        first[:] = 3
        view = first[5:7].T
        del first
        gc.collect()
        self.assertNotEqual(memory.empty((100, 1000), np.float32).ctypes.data, at)
        self.assertTrue((view == 3).all())
        del view
        self.assertEqual(memory.empty((90, 1000), np.float32).ctypes.data, at)

    def test_of_other_sizes(self):
        memory = reused.Memory()
        for n in (0, 10, 1 << 14, 1 << 18, 1 << 15, 1 << 20, 1 << 14):
            a, b = memory.empty((n,), np.int64), memory.empty((n,), np.int64)
            a[:], b[:] = 1, 2
            self.assertEqual((int(a.sum()), int(b.sum())), (n, 2 * n))
        del a, b
        self.assertLessEqual(len(memory._free), 2)
        self.assertEqual(len(pickle.loads(pickle.dumps(memory))._free), 0)

    def test_of_several_threads(self):
        memory, wrong = reused.Memory(), []

        def use(number):
            for _ in range(200):
                a = memory.empty((1 << 14,), np.int64)
                a[:] = number
                if not (a == number).all():
                    wrong.append(number)

        threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
