"""Training loops that are measured, and the user code that limits them."""

import contextlib
import csv
import io
import json
import os
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

import numpy as np

import penstock
from penstock._code import measure, profile

from . import data

setUpModule = data.name_programs


class Images:
    """A dataset with a transform."""

    def __init__(self, transform=None, n=60):
        self.transform, self.n = transform, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = np.full(4, i, np.float32)
        return (x if self.transform is None else self.transform(x)), i


def slow(x):
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    return x


def collate_slowly(samples):
    return slow(len(samples))


class Loadbench(unittest.TestCase):
    def measured(self, *arguments, **options):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report = penstock.loadbench(*arguments, **options)
        return report, out.getvalue()

    def test_a_loader(self):
        seen = []
        with penstock.DataLoader(Images(), 8, num_workers=1, output="numpy") as loader:
            report, text = self.measured(loader, seen.append, epochs=2)
        self.assertEqual([len(b[0]) for b in seen], ([8] * 7 + [4]) * 2)
        self.assertEqual((report.records, len(report.steps)), (120, 16))
        self.assertEqual([(s.epoch, s.batch, s.records) for s in report.steps[6:9]], [(0, 6, 8), (0, 7, 4), (1, 0, 8)])
        self.assertGreater(report.seconds, sum(s.wait + s.body for s in report.steps))
        self.assertIn("Images, batches of 8, num_workers=1: 120 records in", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        self.assertEqual(text, str(report) + "\n")
        self.assertEqual(json.loads(json.dumps(report.to_json()))["records"], 120)

    def test_waits_and_steps(self):
        class Slow(Images):
            def __getitem__(self, i):
                time.sleep(0.01)
                return i

        report, _ = self.measured(Slow(n=20), 0.03, 4, quiet=True)
        self.assertEqual(len(report.steps), 5)
        self.assertGreater(min(s.wait for s in report.steps), 0.035)
        self.assertGreater(min(s.body for s in report.steps), 0.029)
        self.assertTrue(0.3 < report.waiting < 0.9, report.waiting)

    def test_other_iterables(self):
        batches = [[np.zeros((5, 2)), [1] * 5], {"a": np.zeros(3)}, (["x", "y"],), np.zeros(4), "text", []]
        report, _ = self.measured(batches, quiet=True)
        self.assertEqual([s.records for s in report.steps], [5, 3, 2, 4, 1, 0])
        self.assertIn("the loop", report.diagnosis)
        report, _ = self.measured(batches, batches=2, quiet=True)
        self.assertEqual(len(report.steps), 2)
        with self.assertRaisesRegex(penstock.Error, "epoch 1 has no batch; an iterator can be iterated over once"):
            self.measured(iter(batches), epochs=2)

    def test_a_prepared_dataset(self):
        report, text = self.measured(data.path("images"), 0.0, 100, shuffle=True, seed=1, output="numpy", command=data.feed())
        self.assertEqual(report.records, 1500)
        if os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            self.assertIn("feed", report.cpu, text)

    def test_cpu_by_process(self):
        if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            self.skipTest("children of processes are looked up in /proc")
        report, text = self.measured(Images(slow, n=60), None, 5, num_workers=2, output="numpy")
        self.assertEqual(report.processes["workers"], 2)
        self.assertGreater(report.cpu["workers"], 0.6)  # of 1.2 s
        self.assertLess(report.cpu["trainer"], report.cpu["workers"])
        self.assertIn("2 workers", text)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            log, lines, plot = (os.path.join(folder, name) for name in ("log.csv", "log.jsonl", "waits.svg"))
            report, _ = self.measured(Images(), None, 7, log=log, plot=plot, quiet=True)
            with open(log, newline="") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual([(r["epoch"], r["batch"], r["records"]) for r in rows], [("0", str(k), str(n)) for k, n in enumerate([7] * 8 + [4])])
            self.assertAlmostEqual(float(rows[3]["wait_s"]), report.steps[3].wait, places=8)
            report.write_log(lines)
            with open(lines) as file:
                self.assertEqual([float(r["body_s"]) for r in rows], [json.loads(line)["body_s"] for line in file])
            root = xml.etree.ElementTree.parse(plot).getroot()
            self.assertEqual(sum(e.tag.endswith("circle") for e in root.iter()), 2 * 9 + 2)

    def test_a_plot_of_matplotlib(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(penstock.Error, "needs matplotlib.*ends in .svg"):
                self.measured([np.zeros(3)], plot="waits.png")
            return
        with tempfile.TemporaryDirectory() as folder:
            plot = os.path.join(folder, "waits.png")
            self.measured([np.zeros(3)] * 4, plot=plot, quiet=True)
            with open(plot, "rb") as file:
                self.assertEqual(file.read(4), b"\x89PNG")

    def test_refused(self):
        loader = penstock.DataLoader(Images(), 8, output="numpy")
        for arguments, options, why in (
            ((Images(),), {}, "Images is a dataset; give batch_size="),
            ((data.path("images"),), {}, "is a dataset; give batch_size="),
            ((loader, None, 4), {}, "the loader has batches of 8; leave batch_size out"),
            ((loader,), {"shuffle": True}, "shuffle: for the DataLoader of a dataset"),
            ((loader, -1), {}, "train_step is -1; it is a function of a batch, or seconds"),
            ((loader,), {"log": "x.txt"}, "log is 'x.txt'; its name ends in .csv or .jsonl"),
            ((loader,), {"plot": "x.pdf"}, "plot is 'x.pdf'; its name ends in .svg or .png"),
            ((loader,), {"batches": 0}, "batches is 0 and epochs is 1"),
        ):
            with self.subTest(why), self.assertRaisesRegex((ValueError, TypeError), why):
                penstock.loadbench(*arguments, **options)


class Diagnosis(unittest.TestCase):
    def test_the_function_that_is_the_limit(self):
        with penstock.DataLoader(Images(slow, n=100), 4, num_workers=2, output="numpy") as loader:
            for _ in loader:
                pass
            said = loader.diagnose()
        self.assertRegex(said, r"^user code limits the loop: .* Images\.__getitem__ takes (9\d|100)% of the work")
        self.assertRegex(said, r"% of it in slow \(test_timing\.py:\d+\)")
        self.assertIn("penstock.map(lambda i: dict(zip(('x', 'y'), dataset[i])), range(len(dataset)), 'NEW')", said)

    @unittest.skipUnless(sys.platform == "linux", "only Linux says how long other processes have computed")
    def test_what_training_computes_is_not_of_other_programs(self):
        with penstock.DataLoader(data.path("images"), 8, output="numpy", num_workers=1) as loader:
            begin = time.process_time()
            while time.process_time() - begin < 0.6:
                for _ in loader:
                    step = time.process_time()
                    while time.process_time() - step < 0.05:
                        pass
            took = time.process_time() - begin
            self.assertGreater(loader.stats()["loader"]["CPU"] / 1e9, 0.7 * took)

    def test_waits_are_those_of_the_training(self):
        """A wait of feed is not one of the training while others are ready: a step that is slower than the workers never waits."""

        def nap(x):
            time.sleep(0.004)
            return x

        with penstock.DataLoader(data.path("images"), 4, output="numpy", num_workers=1, transforms=[nap]) as loader:
            begin = 0.0
            for k, _ in enumerate(loader):
                if k == 0:
                    begin = time.perf_counter()
                time.sleep(0.01)  # less than the 16 ms that a batch takes
            whole = time.perf_counter() - begin
            stats = loader.stats()["loader"]
        share = (stats["Wait"] - stats["Starts"]) / (stats["Wait"] - stats["Starts"] + stats["Body"])
        self.assertLess(share, 1 - 0.01 * k / whole + 0.1)  # what was slept was not waited
        self.assertLess(stats["LateBatch"]["Wait"], stats["Wait"])

    def test_code_that_waits(self):
        """More workers than cores help code that waits for something else than a core."""
        second = 10**9
        of = {"batches": 50, "wait_ns": 3 * second, "loop_ns": 4 * second}
        for workers, work, cpu, want in (
            (2, 7.6, 0.1, "mostly for something else than a core: num_workers=8 would make the loop up to 3.7 times as fast"),
            (2, 7.6, 7.0, "cores"),
            (0, 3.0, 0.1, "in this process; it waits for something else than a core: num_workers=4 would make the loop up to 3.7 times as fast"),
            (0, 3.0, 2.9, r"in this process; num_workers=\d+ would use all cores"),
        ):
            made = measure.Measures(workers=workers, dataset_ns=int(work * second), cpu_ns=int(cpu * second), **of)
            self.assertRegex(made.diagnose(), f"{want}$")

    def test_collate(self):
        with penstock.DataLoader(Images(n=200), 2, num_workers=1, collate_fn=collate_slowly, output="numpy") as loader:
            for _ in loader:
                pass
            said = loader.diagnose()
        self.assertRegex(said, r"collate_slowly takes (9\d|100)% of the work.* slow \(test_timing")
        self.assertNotIn("penstock.map", said)

    def test_code_that_stores_samples_runs(self):
        class Named(Images):
            def __getitem__(self, i):
                return {"a": i}

        class Single(Images):
            def __getitem__(self, i):
                return np.full(2, i)

        with tempfile.TemporaryDirectory() as folder:
            for k, dataset in enumerate((Images(), Named(), Single())):
                batch = next(iter(penstock.DataLoader(dataset, 2, output="numpy")))
                code = measure.storing(dataset, batch).replace("'NEW'", f"{os.path.join(folder, str(k))!r}, command={data.preprocess()!r}")
                self.assertIn("command=", code)
                eval(code, {"penstock": penstock, "dataset": dataset})
                self.assertEqual(len(penstock.open(os.path.join(folder, str(k)))), 60)

        class ImageFolder(Images):
            root = "my photos"

        self.assertEqual(measure.storing(ImageFolder(), None), "penstock preprocess 'my photos' NEW --keep-encoded")

    def test_stacks(self):
        seen = {("get", "load", "read"): 60, ("get", "load", "decode"): 30, ("get", "crop"): 10, (): 0}
        self.assertEqual(profile.hottest(seen), ("read", 0.6))
        self.assertEqual(profile.hottest(seen, 0.7), ("load", 0.9))
        self.assertIsNone(profile.hottest({}))
        self.assertIsNone(profile.hottest({("a",): 1, ("b",): 1, ("c",): 1}))


if __name__ == "__main__":
    unittest.main()
