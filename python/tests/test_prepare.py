"""penstock.preprocess, and its progress."""

import inspect
import io
import os
import re
import subprocess
import sys
import textwrap
import time
import unittest
from unittest import mock

import penstock
from penstock._base import progress
from penstock._write import prepare
from penstock._write.preprocess_command import failure

from . import data
from .test_writer import Writing, files, photo

#: Flags of the command for its own output; Python has no parameters for them.
OUTPUT = {"help", "json", "quiet", "version", "print-pipeline"}


class TestPreprocess(Writing):
    def photos(self, n=12, classes=("cat", "dog")):
        """Return a folder of photos in class folders."""
        for i in range(n):
            folder = self.path("photos", classes[i % len(classes)])
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{i:04}.bmp"), "wb") as f:
                f.write(photo(i))
        return self.path("photos")

    def test_the_dataset_is_that_of_the_command(self):
        photos = self.photos()
        done = penstock.preprocess(photos, self.path("a"), resize=24, crop=(16, 20), split={"train": 0.5, "val": 0.5}, stratify=True, progress=False)
        flags = ["--resize=24", "--crop=16x20", "--split=train=0.5,val=0.5", "--stratify"]
        subprocess.run([data.preprocess(), "--quiet", *flags, photos, self.path("b")], check=True)
        self.assertEqual(files(self.path("a")), files(self.path("b")))
        self.assertEqual((done.dest, done.format, done.records, done.samples, done.kind), (self.path("a"), "flat", 12, 12, "imagefolder"))
        self.assertEqual(done.id, penstock.open(self.path("a")).id)
        self.assertEqual(done.fields, tuple(penstock.open(self.path("a")).fields.values()))
        self.assertEqual((done.classes, dict(done.splits)), (("cat", "dog"), {"train": 6, "val": 6}))
        self.assertGreater(done.seconds, 0)
        with self.assertRaises(AttributeError):
            done.records = 3

    def test_normalization(self):
        done = penstock.preprocess(self.photos(), self.path("ds"), crop=8, normalize=((0.5, 0.25, 0.5), (0.5, 0.5, 0.25)), progress=False)
        n = done.fields[0].normalization
        self.assertEqual((n.applied, n.mean, n.std), (False, (0.5, 0.25, 0.5), (0.5, 0.5, 0.25)))

    def test_every_flag_is_a_parameter(self):
        text = subprocess.run([data.preprocess(), "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        found = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.MULTILINE))
        self.assertGreater(len(found), 40)
        parameters = set(inspect.signature(penstock.preprocess).parameters)
        self.assertEqual(
            {name.rstrip("_").replace("_", "-") for name in parameters} - {"source", "dest", "command"}, found - OUTPUT - {"rechunk"}
        )  # penstock.rechunk

    def test_skipped(self):
        photos = self.photos()
        with open(os.path.join(photos, "cat", "bad.bmp"), "wb") as f:
            f.write(photo(3)[:60])
        done = penstock.preprocess(photos, self.path("ds"), crop=8, on_error="skip", progress=False)
        self.assertEqual([s.sample for s in done.skipped], ["cat/bad.bmp"])
        self.assertEqual((done.records, done.samples, sum(done.skipped_kinds.values())), (12, 13, 1))

    def test_refusals_are_in_words_of_python(self):
        photos = self.photos()
        for options, want in [
            ({"resize": 0}, "^resize 0: must be a number of pixels"),
            ({"from_": "lance"}, '^from_="lance": must be one of auto'),
            ({"resize": 8, "keep_encoded": True, "crop": 4}, "keep_encoded=True: files stay as they are"),
            ({"fit": "cover"}, "^fit cover: says how to resize, which is not given"),
            ({}, "images of several sizes|crop"),
        ]:
            if not options:
                with open(os.path.join(photos, "cat", "large.bmp"), "wb") as f:
                    f.write(photo(3, (60, 60)))
            with self.subTest(options=options), self.assertRaisesRegex(penstock.Error, want) as raised:
                penstock.preprocess(photos, self.path("ds"), progress=False, **options)
            self.assertNotIn("--", str(raised.exception))
            self.assertFalse(os.path.exists(self.path("ds")))
        for text, want in [  # values are strings, and commands stay commands
            ("; use --on-error skip to leave out such samples", '; use on_error="skip" to leave out such samples'),
            ("rows: --records '*[:]', or each of them: --records '*'?", 'rows: records="*[:]", or each of them: records="*"?'),
            ("one length: --fields a,b/c; or x", 'one length: fields=["a", "b/c"]; or x'),
            ("give --fields '\"a, b\"=x:float32[2,3],y:label'", r'give fields=["\"a, b\"=x:float32[2,3]", "y:label"]'),
            ("it: penstock preprocess a.csv b --on-error skip", "it: penstock preprocess a.csv b --on-error skip"),
            (
                "it: tar --sort=name -cf N .; or --fields images:images takes all",
                'it: tar --sort=name -cf N .; or fields=["images:images"] takes all',
            ),
            ("--sixteen-bit kept or high-byte takes it; see --max-errors", 'sixteen_bit="kept" or high-byte takes it; see max_errors'),
        ]:
            self.assertEqual(failure(b"preprocess: " + text.encode()), want)
        with self.assertRaisesRegex(penstock.Error, r"penstock\.Writer"):
            penstock.preprocess("-", self.path("ds"))
        with self.assertRaisesRegex(TypeError, "progress is 3; it must be True, False, None, or a function"):
            penstock.preprocess(photos, self.path("ds"), progress=3)

    def test_an_existing_dataset(self):
        photos = self.photos()
        penstock.preprocess(photos, self.path("ds"), crop=8, progress=False)
        with self.assertRaisesRegex(penstock.Error, "overwrite=True"):
            penstock.preprocess(photos, self.path("ds"), crop=4, progress=False)
        self.assertEqual(penstock.preprocess(photos, self.path("ds"), crop=4, overwrite=True, progress=False).fields[0].shape, (3, 4, 4))

    def test_progress_by_a_function(self):
        seen = []
        penstock.preprocess(self.photos(), self.path("ds"), crop=8, progress=seen.append)
        last = seen[-1]
        self.assertEqual((last.stage, last.done, last.total, last.unit, last.ended), ("writing", 12, 12, "images", True))
        self.assertGreater(last.rate, 0)
        self.assertEqual(last.seconds_left, 0)
        self.assertEqual([p.done for p in seen if p.stage == "writing"], sorted(p.done for p in seen if p.stage == "writing"))

    def test_an_exception_of_the_function_ends_the_run(self):
        def fail(p):
            if p.stage == "writing":
                raise ZeroDivisionError("of the user")

        with self.assertRaisesRegex(ZeroDivisionError, "of the user"):
            penstock.preprocess(self.many(), self.path("ds"), fields="name=image:image", resize=512, progress=fail)
        self.assertFalse(os.path.exists(self.path("ds")))
        penstock.preprocess(self.photos(), self.path("ds"), crop=8, progress=False)  # nothing is in its way

    def many(self, n=6000):
        """Return a table that names some photos many times: more work than a test waits for."""
        self.photos(4)
        rows = [f"photos/{('cat', 'dog')[i % 2]}/{i % 4:04}.bmp" for i in range(n)]
        with open(self.path("many.csv"), "w") as f:
            f.write("\n".join(["name", *rows]))
        return self.path("many.csv")

    def interrupted(self, how):
        """Run preprocess in a process of its own, end that while it writes, and return its exit code and output."""
        text = textwrap.dedent(f"""
            import os, signal, penstock
            def end(p):
                if p.stage == "writing" and p.done > 10:
                    {how}
            penstock.preprocess({self.many()!r}, {self.path("ds")!r}, fields="name=image:image", resize=300, progress=end)
        """)
        with subprocess.Popen(
            [sys.executable, "-c", text], cwd=os.path.join(data.HERE, ".."), stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as p:
            _, errors = p.communicate(timeout=60)
            return p.returncode, errors

    def test_ctrl_c(self):
        code, errors = self.interrupted("os.kill(os.getpid(), signal.SIGINT)")
        self.assertNotEqual(code, 0)
        self.assertRegex(errors, r"KeyboardInterrupt: interrupted after \d+ of 6000 rows; nothing was written to .*ds\n")
        self.assertFalse(os.path.exists(self.path("ds")))

    def test_the_run_ends_with_its_process(self):
        code, _ = self.interrupted("os.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(code, -9)
        end = time.monotonic() + 20
        while True:  # a run that goes on holds the lock of the stage
            try:
                done = penstock.preprocess(self.photos(), self.path("ds"), crop=8, overwrite=True, progress=False)
                break
            except penstock.Error:
                self.assertLess(time.monotonic(), end, "the run of a process that was killed continues")
                time.sleep(0.1)
        self.assertEqual(done.records, 12)


class TestDisplay(unittest.TestCase):
    steps = tuple(progress.Progress("writing", n, 1000, "images", 0.5 * n / 100, n == 1000) for n in range(0, 1001, 100))

    def test_progress(self):
        self.assertEqual(str(self.steps[3]), "writing: 300 of 1,000 images (30 %), 200/s, 4 s left")
        self.assertEqual(str(self.steps[-1]), "writing: 1,000 of 1,000 images (100 %), 200/s")
        unknown = progress.Progress("looking", 10, None, "samples", 0)
        self.assertEqual((str(unknown), unknown.seconds_left), ("looking: 10 samples, 0/s", None))

    def test_lines(self):
        out = io.StringIO()
        with mock.patch.object(sys, "stderr", out), mock.patch.object(progress.time, "monotonic", iter(range(100)).__next__):
            lines = progress._Lines()
            for p in self.steps:
                lines.show(p)
            lines.say("two\nlines")
            lines.close()
        printed = out.getvalue().splitlines()
        self.assertEqual(printed[-3:], [f"penstock: {self.steps[-1]}", "penstock: two", "penstock: lines"])
        self.assertTrue(2 < len(printed) < len(self.steps) + 3, printed)

    def test_choice(self):
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        with mock.patch.object(sys, "stderr", terminal), mock.patch("importlib.util.find_spec", lambda name: None):
            self.assertIsInstance(progress.display(None), progress._Lines)
            self.assertIsNone(progress.display(False))
        with mock.patch.object(sys, "stderr", io.StringIO()):
            self.assertIsNone(progress.display(None))
            with mock.patch.dict(sys.modules, {"ipykernel": prepare}):
                self.assertIsNotNone(progress.display(None))

    def test_tqdm(self):
        """A bar a stage, with what tqdm is asked for."""
        bars = []

        class Bar:
            def __init__(self, **options):
                self.options, self.n, self.closed = options, 0, False
                bars.append(self)

            def update(self, n):
                self.n += n

            def close(self):
                self.closed = True

        module = type(sys)("tqdm.auto")
        module.tqdm = Bar
        with mock.patch.dict(sys.modules, {"tqdm": type(sys)("tqdm"), "tqdm.auto": module}):
            bar = progress._Bar()
        for stage in ("looking", "writing"):
            for p in self.steps[:-1]:
                bar.show(progress.Progress(stage, p.done, None if stage == "looking" else 1000, "images", p.seconds))
        bar.close()
        self.assertEqual(
            [(b.n, b.closed, b.options["total"], b.options["desc"]) for b in bars], [(900, True, None, "looking"), (900, True, 1000, "writing")]
        )


if __name__ == "__main__":
    unittest.main()
