"""CSV and JSON lines against pandas and Python's csv and json: random tables of odd cells."""

import atexit
import contextlib
import csv
import io
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import pandas

import penstock
from tests.peers import cases

INTEGERS = [
    "0",
    "1",
    "-1",
    "7",
    "+5",
    "007",
    "255",
    "-32768",
    "16777216",
    "16777217",
    "-16777217",
    "123456789",
    "9007199254740991",
    "9007199254740993",
    "-9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
]
HUGE = ["9223372036854775808", "18446744073709551615", "18446744073709551616", "99999999999999999999"]
FRACTIONS = [
    "0.5",
    "-0.25",
    "1.0",
    "1.",
    ".5",
    "-.5",
    "1e5",
    "1E-3",
    "-0.0",
    "0.1",
    "3.14159265358979",
    "1700000000.25",
    "1e39",
    "1e-40",
    "123456.789",
]
SPECIAL = ["nan", "NaN", "inf", "-inf", "Infinity"]
WORDS = [
    "a",
    "cat",
    "1_23",
    "12_3",
    "0x10",
    "1,5",
    'say "hi"',
    "x\ny",
    "x\r\ny",
    " lead",
    "trail ",
    "é",
    "日本",
    "1.5.2",
    "--1",
    "1e",
    "=1+1",
    "'",
    "a\tb",
    ";",
    "|",
]
CELLS = [
    INTEGERS,
    INTEGERS[:8],
    INTEGERS + FRACTIONS,
    INTEGERS[:9] + FRACTIONS + SPECIAL,
    INTEGERS + HUGE[:2],
    INTEGERS + HUGE + ["nan"],
    FRACTIONS,
    WORDS,
    WORDS + INTEGERS,
    [*WORDS, ""],
    [*INTEGERS, ""],
    ["true", "false"],
    ["True", "False"],
    ["true", "1"],
]


class Preprocess:
    """The command preprocess. A process of many runs serves all cases, and one in a hundred has a process of its own."""

    def __init__(self):
        self._many, self._runs = None, 0

    def __call__(self, source, dest):
        """Run the command. Return its error output, or None if it made a dataset."""
        arguments = ["--quiet", "--on-error", "skip", "--workers", "1", source, dest]
        self._runs += 1
        if self._runs % 100 == 0:
            run = subprocess.run(
                [os.environ["PENSTOCK_TEST_PREPROCESS"], *arguments], capture_output=True, encoding="utf-8", errors="backslashreplace"
            )
            code, error = run.returncode, run.stderr
        else:
            if self._many is None:
                self._many = subprocess.Popen([os.environ["PENSTOCK_TEST_MANY"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                atexit.register(self._many.communicate)
            self._many.stdin.write(json.dumps(arguments).encode() + b"\n")
            self._many.stdin.flush()
            answer = json.loads(self._many.stdout.readline())
            code, error = answer["Code"], answer["Stderr"]
        if (code in (0, 3)) != os.path.exists(dest):
            raise AssertionError(f"exit status {code}, and a dataset: {os.path.exists(dest)}: {error}")
        return None if os.path.exists(dest) else error


preprocess = Preprocess()


class Table(unittest.TestCase):
    def check(self, rng, name, text, cells, is_text, pandas_types=None):
        """Compare a dataset with the cells that were written: columns of Python values, None for one that is missing."""
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        try:
            for file, part in text.items() if isinstance(text, dict) else [(name, text)]:
                with open(os.path.join(folder, file), "w", newline="", encoding="utf-8") as f:
                    f.write(part)
            error = preprocess(os.path.join(folder, name), os.path.join(folder, "out"))
            if error is not None:
                self.assertIn("no usable sample", error)
                self.compare(None, cells, is_text, text, pandas_types)
                return
            with penstock.open(os.path.join(folder, "out")) as ds:
                self.compare(ds, cells, is_text, text, pandas_types)
        finally:
            shutil.rmtree(folder)

    def compare(self, ds, cells, is_text, text, pandas_types):
        rows = len(cells["row"])
        if ds is None:  # every row has a cell that is missing where it has to be a number or a label
            for i in range(rows):
                self.assertTrue(any(c[i] in (None, "") for c in cells.values()), text)
            return
        kept = [int(i) for i in ds["row"]]
        fields = {name: ds.fields[name] for name in cells}
        for name, column in cells.items():
            f = fields[name]
            for at, i in enumerate(kept):
                self.same(f, ds[name][at], column[i], (name, i, text))
            if pandas_types and f.content != "utf-8":
                self.number_type(f, pandas_types[name], column, text)
        for i in set(range(rows)) - set(kept):  # left out only for a cell that is missing
            self.assertTrue(any(c[i] in (None, "") and fields[n].content != "utf-8" for n, c in cells.items()), (i, text))

    def same(self, f, got, cell, where):
        if f.content == "utf-8":
            got = got if isinstance(got, str) else bytes(got).decode()
            self.assertEqual(got, "" if cell is None else cell, where)
        elif f.classes:
            self.assertEqual(f.classes[int(got)], cell, where)
        elif f.dtype == "bool":
            self.assertEqual(bool(got), cell.lower() == "true", where)
        elif f.dtype in ("int64", "uint64"):
            self.assertEqual(int(got), int(cell), where)
        else:
            want = np.array(float(cell), f.dtype)
            self.assertEqual(np.array(got).tobytes() if want == want else "nan", want.tobytes() if want == want else "nan", where)
            if cell.strip("+-").isdigit():
                self.assertEqual(int(got), int(cell), where)

    def number_type(self, f, want, column, text):
        """Compare the kind of numbers with that of pandas."""
        kind = {"i": "int64", "u": "uint64", "f": "float", "b": "bool"}.get(want.kind)
        if any(c in (None, "") for c in column) and kind == "float":
            return  # pandas has NaN for cells that are missing
        if want.kind == "O" and f.dtype == "float64" and any(c in HUGE for c in column):
            return  # pandas leaves integers from 2**64 on with NaN as objects; same() has compared the values
        self.assertTrue(str(f.dtype).startswith(kind or "none"), (f.name, f.dtype, want, text))


class CSV(Table):
    @cases(100)
    def test_as_pandas(self, rng: random.Random) -> None:
        rows, columns = rng.randrange(1, 9), rng.randrange(1, 7)
        cells = {"row": [str(i) for i in range(rows)]}
        for k in range(columns):
            pool = rng.choice(CELLS)
            few = [rng.choice(pool) for _ in range(rng.randrange(1, 5))]
            cells[f"label{k}" if rng.random() < 0.1 else f"c{k}"] = [rng.choice(few) for _ in range(rows)]
        file = io.StringIO()
        end = rng.choice(["\n", "\r\n"])
        quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        comma = rng.choice([",", "\t", ";", "|"])
        writer = csv.writer(file, lineterminator=end, quoting=quoting, delimiter=comma)
        writer.writerow(cells)
        writer.writerows(zip(*cells.values()))
        text = file.getvalue()
        read = list(csv.reader(io.StringIO(text, newline=""), delimiter=comma))
        self.assertEqual([dict(zip(cells, r)) for r in read[1:]], [dict(zip(cells, r)) for r in zip(*cells.values())])
        types = pandas.read_csv(io.StringIO(text, newline=""), sep=comma, keep_default_na=False, na_values=["", "nan", "NaN"]).dtypes.to_dict()
        if rng.random() < 0.3:
            text = text.rstrip("\r\n") if not text.endswith('"' + end) else text
        self.check(rng, "t.csv", "\ufeff" * (rng.random() < 0.1) + text, cells, None, types)

    @cases(50)
    def test_several_files(self, rng: random.Random) -> None:
        """Files of one table have their columns in any order, and types that differ."""
        rows = rng.randrange(2, 200)
        cells = {"row": [str(i) for i in range(rows)]}
        for k in range(rng.randrange(1, 5)):
            pool, last = rng.choice(CELLS), rng.choice(CELLS)
            turn = rng.choice([rows, rng.randrange(rows)])
            cells[f"c{k}"] = [rng.choice(pool if i < turn else last) for i in range(rows)]
        cuts = [0, *sorted(rng.sample(range(1, rows), rng.randrange(1, min(rows, 4)))), rows]
        files = {}
        for begin, end in zip(cuts, cuts[1:]):
            names = rng.sample(list(cells), len(cells)) if rng.random() < 0.5 else list(cells)
            file = io.StringIO()
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(zip(*(cells[name][begin:end] for name in names)))
            files[f"{begin:03d}.csv"] = file.getvalue()
        self.check(rng, "*.csv", files, cells, None)


class JSONLines(Table):
    @cases(100)
    def test_as_json(self, rng: random.Random) -> None:
        rows, columns = rng.randrange(1, 9), rng.randrange(1, 6)
        cells, raw = {"row": [str(i) for i in range(rows)]}, {"row": [str(i) for i in range(rows)]}
        for k in range(columns):
            name = f"a.b{k}" if rng.random() < 0.2 else f"c{k}"
            kind = rng.random()
            if kind < 0.5:
                pool = rng.choice(JSON_NUMBERS) or ["1"]
                few = [rng.choice(pool) for _ in range(rng.randrange(1, 5))]
                cells[name] = [rng.choice(few) for _ in range(rows)]
                raw[name] = list(cells[name])
            else:
                few = [rng.choice([*WORDS, "1", "true", "😀", "\u2028", "\\ud800", "\x7f"]) for _ in range(rng.randrange(1, 5))]
                cells[name] = [rng.choice(few) for _ in range(rows)]
                raw[name] = [json.dumps(c, ensure_ascii=rng.random() < 0.5) for c in cells[name]]
            for i in range(rows):
                if rng.random() < 0.05:
                    cells[name][i], raw[name][i] = None, "null"
        lines = []
        for i in range(rows):
            members = {n: r[i] for n, r in raw.items()}
            order = list(members)
            if rng.random() < 0.3:
                rng.shuffle(order)
            parts = []
            for n in order:
                outer, nested, inner = n.partition(".")
                parts.append(f'"{n}":{members[n]}' if not nested else f'"{outer}":{{"{inner}": {members[n]}}}')
            if sum(p.startswith('"a":') for p in parts) > 1:  # one object a row
                raise unittest.SkipTest("two objects of one name")
            space = rng.choice(["", " "])
            lines.append("{" + space + ("," + space).join(parts) + space + "}")
        text = "\n".join(lines) + "\n" * rng.randrange(2)
        for i, line in enumerate(lines):
            for n, value in json.loads(line).items():
                if isinstance(value, str):
                    self.assertEqual(value, cells[n][i])
        self.check(rng, "t.jsonl", text, cells, None)

    @cases(50)
    def test_refused_or_the_same(self, rng: random.Random) -> None:
        """A line that Python's json refuses, or that has a name twice, never becomes a record of other values."""
        lines = [json.dumps({"row": i, "t": rng.choice(WORDS), "n": rng.choice([1, 2.5, 10**15])}, ensure_ascii=False) for i in range(6)]
        broken = bytearray("\n".join(lines).encode())
        for _ in range(rng.randrange(1, 3)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        try:
            path = os.path.join(folder, "t.jsonl")
            with open(path, "wb") as f:
                f.write(broken)
            if preprocess(path, os.path.join(folder, "out")) is not None:
                return
            want = []
            for line in bytes(broken).split(b"\n"):
                with contextlib.suppress(ValueError):
                    want.append(json.loads(line.decode()))
            with penstock.open(os.path.join(folder, "out")) as ds:
                if "row" not in ds.fields or "t" not in ds.fields or ds.fields["t"].content != "utf-8":
                    return
                known = [str(w["t"]) if isinstance(w, dict) and isinstance(w.get("t"), str) else None for w in want]
                for i in range(len(ds)):
                    got = ds["t"][i]
                    got = got if isinstance(got, str) else bytes(got).decode()
                    self.assertTrue(
                        got in known or got == "" or any(isinstance(w, dict) and not isinstance(w.get("t"), str) for w in want), (got, bytes(broken))
                    )
        finally:
            shutil.rmtree(folder)


def valid(number):
    """Report whether a number of CSV is one of JSON."""
    if number.lower().strip("-") in ("nan", "inf", "infinity"):
        return False  # Python's json takes some of them, and JSON has none
    try:
        return not isinstance(json.loads(number), (str, bool))
    except ValueError:
        return False


JSON_NUMBERS = [[c for c in pool if valid(c)] for pool in CELLS]
