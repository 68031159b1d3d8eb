import gc
import importlib.util
import json
import logging
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import threading
import unittest
from collections.abc import Mapping

import numpy as np

import penstock
from penstock import transforms as T
from penstock._code.randomness import record_seed, seed_random
from penstock.functions import PLACE

from . import data

RECORDS = 70
FIELDS = ("image", "boxes", "labels", "text", "label")


def changed(record: dict):
    """Return a record whose values depend on all random numbers, with a field more and one less, and fewer boxes."""
    keep = np.random.rand(len(record["boxes"])) < 0.5
    made = {name: record[name] for name in ("image", "boxes", "labels", "label")}
    made["image"] = made["image"][:, ::-1] ^ np.uint8(random.randrange(256))
    made["boxes"], made["labels"] = made["boxes"][keep], made["labels"][keep]
    made["twice"], made["words"] = 2 * record["label"], record["text"].split()
    made["words"] = made["words"][1]
    return made


def two(image, label):
    return image // 2, label + 1


def third(record: Mapping):
    if record["label"] % 3 == 1:
        raise LookupError(f"the label {record['label']}")
    return record


def shortened(record: "dict[str, object]"):
    record["image"] = record["image"][: 4 + record["label"] % 2]
    return record


setUpModule = data.name_programs


class Several:
    """Results of any number of rows, of random types and sizes, by the record's number."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, record: dict):
        r, of = random.Random(self.seed), random.Random(self.seed * 1000 + int(record["label"]))
        n = of.randrange(r.choice([1, 3, 200]) + 1)
        numbers = [of.randrange(100) for _ in range(n)]
        made = {
            "list": numbers,
            "rows": [[i, i + 1] for i in numbers],
            "floats": tuple(i / 2 for i in numbers),
            "bytes": bytes(numbers),
            "declared": np.array(numbers, "i2"),
            "boxes": record["boxes"][:1],
            "fixed": np.arange(3, dtype=r.choice(["u1", "f4", "f8"])),
            "text": record["text"] * of.randrange(3),
        }
        kept = r.sample(sorted(made), r.randrange(1, len(made) + 1))
        return {name: made[name] for name in made if name in kept}


lock = threading.Lock()
spread = 7


def tokens(text: str):
    """Return tokens of a text, as many as the function above says: any number of them."""
    return [len(text), *range(int(text.rpartition(" ")[2]) % spread)]


@penstock.batched
def tokens_of_records(records: "list[dict]"):
    return [{"ids": np.int32(tokens(record["text"])), "label": record["label"]} for record in records]


def drawn(record: dict):
    return {"ids": [1] * (1 + (record["label"] == 60 and random.random() < 2))}


def killed(record: dict):
    if record["label"] == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return record


def described(image):
    return {"text": "no field"}


class RecordsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="penstock-records-")
        cls.path = os.path.join(cls.base, "ds")
        rng = np.random.default_rng(1)
        schema = [
            penstock.Field("image", "uint8", (8, 9, 3), layout="HWC"),
            penstock.Field("boxes", "float32", content="boxes", instances="objects"),
            penstock.Field("labels", "int64", ragged=True, instances="objects"),
            penstock.Field("text", "uint8", ragged=True, content="utf-8"),
            penstock.Field("label", "int64"),
        ]
        with penstock.Writer(cls.path, schema=schema, command=data.preprocess()) as w:
            for i in range(RECORDS):
                boxes = np.tile(np.float32([1, 2, 6, 7]), (i % 4, 1))
                image = rng.integers(0, 256, (8, 9, 3), np.uint8)
                w.append({"image": image, "boxes": boxes, "labels": np.arange(i % 4), "text": f"text {i}", "label": i})
        cls.ds = penstock.open(cls.path)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.base)

    def loader(self, transforms, batch_size=16, **options):
        made = penstock.DataLoader(
            self.path, batch_size, transforms=transforms, command=data.feed(), **{"num_workers": 2, "output": "numpy", **options}
        )
        self.addCleanup(made.close)
        return made

    def record(self, r, f, seed=0, epoch=0):
        """Return a function's result for a record, by hand."""
        record = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in self.ds[r].items()}
        seed_random(record_seed(seed, epoch, r, place=PLACE))
        return f(record)

    def same(self, batch, i, record):
        self.assertEqual(list(batch.keys()), list(record))
        for name, want in record.items():
            got = batch[name][i]
            if isinstance(want, str):
                self.assertEqual(got, want)
                continue
            self.assertEqual((got.dtype, got.shape), (np.asarray(want).dtype, np.shape(want)), name)
            np.testing.assert_array_equal(got, want, name)


class ResultsTest(RecordsTest):
    def test_any_number_of_rows(self):
        """Beside the same functions called in a loop over the records."""
        first = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))
        for seed in range(first, first + int(os.environ.get("PENSTOCK_TEST_FUNCTIONS", "6"))):
            function, r = Several(seed), random.Random(seed)
            step = penstock.functions.Record(function, makes=[penstock.Field("declared", "int16", ragged=True)])
            batch, workers = r.choice([1, 2, 7, 64]), r.choice([0, 0, 2])
            want = [function({name: self.ds[i][name] for name in FIELDS}) for i in range(RECORDS)]
            with (
                self.subTest(seed=seed),
                penstock.DataLoader(self.path, batch, num_workers=workers, transforms=[step], output="numpy", command=data.feed()) as loader,
            ):
                at = iter(want)
                try:
                    for b in loader:
                        for k in range(int(b.mask.sum())):
                            record = next(at)
                            self.assertEqual(list(dict(b.items())), list(record))
                            for name, x in record.items():
                                got = b[name][k]
                                if isinstance(x, str):
                                    self.assertEqual(got, x)
                                    continue
                                x = np.frombuffer(x, "u1") if isinstance(x, bytes) else np.asarray(x)
                                self.assertEqual(np.asarray(got).tolist(), x.tolist(), (seed, name))
                                if x.size:
                                    self.assertEqual(np.asarray(got).dtype, x.dtype)
                    self.assertIsNone(next(at, None))
                except penstock.functions.WrongOutput as e:  # with a batch of one, all lists of a batch may be empty
                    self.assertRegex(str(e), "empty list in all records")
                    self.assertLessEqual(batch, 7)

    def test_lists_of_texts(self):
        """They are what a column of lists of texts is: a text."""

        def words(label):
            return ['a<\u00e9>&\u2028"\x01\b\n', f"{label}"][: label % 3]

        texts = [words(i) for i in range(RECORDS)]
        want = ["[" + ",".join(json.dumps(x, ensure_ascii=False) for x in of) + "]" for of in texts]
        for plain, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028")):
            want = [x.replace(plain, escaped) for x in want]
        for workers in (0, 1):
            for f in (
                {"text": lambda text: words(int(text.split()[1]))},
                T.Record(lambda text, label: (words(label), label), takes=["text", "label"]),
            ):
                self.assertEqual([x for b in self.loader(f, batch_size=8, num_workers=workers) for x in b["text"]], want)
        made = os.path.join(self.base, "texts")
        penstock.map(lambda of: {"text": of}, texts, made, workers=0, command=data.preprocess())
        self.assertEqual(list(penstock.open(made)["text"]), want)
        if importlib.util.find_spec("polars") is not None:
            import polars

            polars.DataFrame({"text": texts}).write_parquet(f"{made}.parquet")
            penstock.preprocess(f"{made}.parquet", f"{made}-of-parquet", command=data.preprocess())
            self.assertEqual(list(penstock.open(f"{made}-of-parquet")["text"]), want)
        with self.assertRaisesRegex(penstock.functions.WrongOutput, r"text is \|S1, which batches cannot have; .*, str, or lists of str"):
            next(iter(self.loader({"text": lambda text: [b"a", b"b"]}, num_workers=0)))

    def test_declared_results(self):
        for makes, said in (
            (penstock.Field("declared", "int32", ragged=True), "declared is int16 .*makes says int32"),
            (penstock.Field("declared", "int16", (2,), ragged=True), r"makes says int16 \(2,\) of any number of rows"),
        ):
            step = penstock.functions.Record(lambda record: {"declared": np.arange(record["label"], dtype="i2")}, makes=[makes])
            with self.assertRaisesRegex(penstock.functions.WrongOutput, said):
                next(iter(self.loader([step], num_workers=0)))
        with self.assertRaisesRegex(TypeError, "a list of fields"):
            penstock.functions.Record(len, makes=makes)

    def test_as_by_hand(self):
        for options in (
            {"num_workers": 0},
            {"num_workers": 2, "seed": 7, "shuffle": True},
            {"num_workers": 3, "batch_size": 5, "prefetch_factor": 1},
        ):
            made = self.loader([changed], **options)
            for epoch in range(2):
                seen = []
                for b in made:
                    for i, r in enumerate(b.indices):
                        self.same(b, i, self.record(int(r), changed, options.get("seed", 0), epoch))
                    seen += b.indices.tolist()
                self.assertEqual(sorted(seen), list(range(RECORDS)))
        self.assertRegex(made.explain(), r"(?m)^records  3 Python workers +\d+  changed$")

    def test_after_the_engine_and_before_a_conversion(self):
        steps = [T.RandomHorizontalFlip(), T.CenterCrop(6)]
        pairs = zip(
            self.loader(steps), self.loader([*steps, T.Record(two, takes=["image", "label"]), T.ToTensor(), T.Normalize([0.5] * 3, [0.2] * 3)])
        )
        for plain, b in pairs:
            want = ((plain["image"] // 2).transpose(0, 3, 1, 2) / np.float32(255) - np.float32(0.5)) / np.float32(0.2)
            np.testing.assert_array_equal(b["image"], want)
            np.testing.assert_array_equal(b["label"], plain["label"] + 1)
            np.testing.assert_array_equal(b["boxes"].values, plain["boxes"].values)

    def test_conversions_are_the_engines(self):
        ends = [
            [T.ToTensor()],
            [T.ToImage(), T.ToDtype("float32", scale=True)],
            [T.ToImage()],
            [T.ToTensor(), T.Normalize(T.IMAGENET_MEAN, T.IMAGENET_STD)],
        ]
        ends += [[T.ToImage(), T.ToDtype("float16", scale=True)], [T.ToDtype("float32")], [T.ConvertImageDtype()]]
        for end in ends:
            with self.subTest(end=end):
                for plain, b in zip(self.loader(end), self.loader([T.Record(lambda image: image, takes=["image"]), *end], num_workers=0)):
                    self.assertEqual(b["image"].dtype, plain["image"].dtype)
                    np.testing.assert_array_equal(b["image"], plain["image"])

    def test_parameters_by_name(self):
        def f(image, y):
            return {"image": image[:4], "y": np.float32(y)}

        for b in self.loader({"": [T.Record(f, takes={"image": "image", "y": "label"})]}, num_workers=1):
            self.assertEqual((b["image"].shape[1:], b["label"].dtype), ((4, 9, 3), np.float32))
            self.assertEqual(b["label"].tolist(), b.indices.tolist())

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "no torch")
    def test_arrays_of_fields_of_one_shape(self):
        """The feeding process shows such batches by positions, which are tensors where the loader's are."""

        def kinds(record: dict):
            return {"array": isinstance(record["image"], np.ndarray), "image": record["image"]}

        for workers in (0, 1):
            for b in self.loader([kinds], fields=["image", "label"], output="torch", num_workers=workers):
                self.assertTrue(b["array"].all())
                self.assertEqual(str(b["image"].dtype), "torch.uint8")

    def test_states(self):
        options = {"shuffle": True, "seed": 3, "batch_size": 8}
        want = [dict(b.items()) | {"at": b.step} for b in self.loader([changed], **options)]
        for step in (0, 4, 9):
            made = self.loader([changed], **options)
            loop = iter(made)
            for _ in range(step):
                next(loop)
            state = made.state_dict()
            del loop
            again = self.loader([changed], **{**options, "num_workers": random.randint(0, 3)})
            again.load_state_dict(state)
            rest = list(again)
            self.assertEqual([b.step for b in rest], list(range(step, len(want))))
            for b in rest:
                np.testing.assert_array_equal(b["image"], want[b.step]["image"])
        with self.assertRaisesRegex(penstock.Error, "functions 'changed', and this one has 'third'"):
            self.loader([third], **options).load_state_dict(state)

    def test_ranks_together_are_one(self):
        whole = [b["image"] for b in self.loader([changed], batch_size=8, seed=5, shuffle=True, drop_last=True)]
        parts = [
            [b["image"] for b in self.loader([changed], batch_size=4, seed=5, shuffle=True, drop_last=True, rank=r, world_size=2)] for r in range(2)
        ]
        for image, *of_ranks in zip(whole, *parts):
            np.testing.assert_array_equal(image, np.concatenate(of_ranks))

    def test_a_loop_that_is_left(self):
        made = self.loader([changed], batch_size=4)
        for _ in made:
            break
        self.assertEqual([(b.epoch, b.step) for b in made], [(1, k) for k in range(18)])

    def test_a_record_that_is_drawn_twice(self):
        made = self.loader([changed], sampler=penstock.samplers.Weighted([1.0] * 2 + [0.0] * (RECORDS - 2)), batch_size=RECORDS)
        (b,) = made
        self.assertGreater(len({b["image"][i].tobytes() for i in range(RECORDS)}), 20)


class KnownLengthsTest(RecordsTest):
    """Packed results, and buckets by their lengths, beside the same of a dataset that penstock.map makes."""

    def setUp(self):
        self.cache = tempfile.mkdtemp(dir=self.base)
        self.mapped = os.path.join(self.cache, "mapped")
        penstock.map(lambda r: {"text": tokens(r["text"]), "label": r["label"]}, self.ds, self.mapped, workers=0, command=data.preprocess())

    def loader(self, transforms, batch_size=4, **options):
        return super().loader(transforms, batch_size, **{"cache_dir": self.cache, "num_workers": 1, "seed": 2, **options})

    def of_map(self, batch_size=4, **options):
        made = penstock.DataLoader(self.mapped, batch_size, output="numpy", command=data.feed(), **{"seed": 2, **options})
        self.addCleanup(made.close)
        return made

    def equal(self, got, want, names):
        got, want = list(got), list(want)
        self.assertEqual([b.indices.tolist() for b in got], [b.indices.tolist() for b in want])
        for a, b in zip(got, want):
            for name, of in names.items():
                x, y = a[name], b[of]
                np.testing.assert_array_equal(getattr(x, "values", x), getattr(y, "values", y))

    def test_packed(self):
        both = {"text": tokens, "": [T.Record(lambda text: text, takes=["text"])]}
        for transforms, name in (({"text": tokens}, "text"), ([tokens_of_records], "ids"), (both, "text")):
            for pack in ({"length": 9}, {"length": 4, "overflow": "split", "max_open_rows": 2}, {"length": 16, "pad": -1}):
                pad = pack.get("pad", 0)
                packs = [penstock.Pack(**{**pack, "pad": {of: pad}, "fields": [of]}) for of in (name, "text")]
                with self.subTest(name=name, pack=pack):
                    of = {name: "text", "positions": "positions", "segments": "segments", "cu_seqlens": "cu_seqlens"}
                    whole = self.loader(transforms, shuffle=True, pack=packs[0])
                    want = list(self.of_map(shuffle=True, pack=packs[1]))
                    self.equal(whole, want, of)
                    self.assertEqual(len(whole), len(want))
        with self.assertRaisesRegex(penstock.Error, "records have more than Length 2 elements"):
            self.loader([tokens_of_records], pack=penstock.Pack(2))
        with self.assertRaisesRegex(penstock.UnsupportedError, "killed makes no numbers of any number of rows; it makes label"):
            self.loader(T.Record(killed, name="killed"), fields=["label"], filters="label < 9", pack=penstock.Pack(2))

    def test_packed_of_ranks_filters_and_a_state(self):
        def of(**options):
            return self.loader([tokens_of_records], pack=penstock.Pack(9), filters="label > 9", shuffle=True, drop_last=True, **options)

        want = list(of())
        for rank in range(2):
            for a, b in zip(of(batch_size=2, rank=rank, world_size=2), want):
                np.testing.assert_array_equal(a["ids"], b["ids"][2 * rank : 2 * rank + 2])
        made = of()
        next(iter(made))
        again = of()
        again.load_state_dict(made.state_dict())
        self.equal(again, want[1:], {"ids": "ids", "segments": "segments"})

    def test_rows_of_several_datasets(self):
        options = {"sampler": penstock.samplers.Mix([1, 3]), "pack": penstock.Pack(16, fields=["text"])}
        other = os.path.join(self.cache, "other")
        with penstock.Writer(other, command=data.preprocess()) as w:
            w.extend({"text": f"text {i % 5}", "label": i} for i in range(20))
        mapped = os.path.join(self.cache, "other-mapped")
        penstock.map(lambda r: {"text": tokens(r["text"]), "label": r["label"]}, penstock.open(other), mapped, workers=0, command=data.preprocess())
        common = {"output": "numpy", "command": data.feed(), **options}
        with (
            penstock.DataLoader(
                [self.path, other], 4, fields=["text", "label"], transforms={"text": tokens}, num_workers=0, cache_dir=self.cache, **common
            ) as got,
            penstock.DataLoader([self.mapped, mapped], 4, **common) as want,
        ):
            self.equal(got, want, {"text": "text", "segments": "segments"})

    def test_buckets(self):
        for transforms, field, name in (({"text": tokens}, "text", "text"), ([tokens_of_records], "ids", "ids"), ({"text": tokens}, None, "text")):
            fields = ["text", "label"]
            for filters in (None, "label > 20"):
                with self.subTest(name=name, field=field, filters=filters):
                    bucket = {"budget": 30, "multiple": 2}
                    got = self.loader(transforms, fields=fields, filters=filters, sampler=penstock.samplers.Bucket([3, 5], field, **bucket))
                    want = self.of_map(filters=filters, sampler=penstock.samplers.Bucket([3, 5], "text", **bucket))
                    self.equal(got, want, {name: "text", "label": "label"})
        got = self.loader([tokens_of_records], sampler=penstock.samplers.Subset(range(50), inner=penstock.samplers.Bucket(3, "ids")))
        want = self.of_map(sampler=penstock.samplers.Subset(range(50), inner=penstock.samplers.Bucket(3, "text")))
        self.equal(got, want, {"ids": "text"})
        # A field of the dataset that no function is given by name has the lengths that are stored.
        list(self.loader([changed], sampler=penstock.samplers.Bucket(3, "labels")))

    def test_once(self):
        global spread
        options = {"pack": penstock.Pack(9), "num_workers": 0}
        with self.assertLogs("penstock") as logs:
            first = len(self.loader([tokens_of_records], **options))
        self.assertRegex(logs.output[0], "the results of tokens_of_records are computed once and kept in .*/ds-[0-9a-f]{32}$")
        with self.assertNoLogs("penstock"):
            self.assertEqual(len(self.loader([tokens_of_records], **{**options, "num_workers": 2, "pack": penstock.Pack(9)})), first)
        spread = 3
        try:
            with self.assertLogs("penstock") as logs:
                self.assertLess(len(self.loader([tokens_of_records], **options)), first)
            self.assertRegex(logs.output[0], "computed again, as the function")
        finally:
            spread = 7
        with self.assertNoLogs("penstock"):
            self.assertEqual(len(self.loader([tokens_of_records], **options)), first)

    def test_random_results(self):
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)
        own = np.random.default_rng(1)
        for f, text in (
            (drawn, "record 60: drawn draws random numbers: pack= and Bucket need"),
            (lambda record: {"ids": [1] * int(own.integers(1, 99))}, "results of <lambda> differ from one epoch to the next: pack= and"),
        ):
            for options in ({"pack": penstock.Pack(9)}, {"sampler": penstock.samplers.Bucket(2, "ids")}):
                with self.subTest(text=text, options=options), self.assertRaisesRegex((TypeError, penstock.Error), text):
                    self.loader(T.Record(f), num_workers=0, **options)


class FailuresTest(RecordsTest):
    def test_exceptions_name_the_record(self):
        for workers in (0, 2):
            with self.assertRaisesRegex(LookupError, "the label 1" if workers == 0 else r"the label 1(?s:.)*\(record 1, batch 0\)"):
                list(self.loader([third], num_workers=workers))

    def test_records_that_fail(self):
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)
        for on_error in ("backfill", "blank"):
            made = self.loader([third], on_error=on_error, fields=["image", "label"] if on_error == "blank" else FIELDS)
            for b in made:
                for i, r in enumerate(b.indices):
                    self.assertEqual(b.mask[i], r % 3 != 1)
                    if b.mask[i]:
                        self.same(b, i, {name: self.ds[int(r)][name] for name in made.fields})
                    elif on_error == "blank":
                        self.assertFalse(b["image"][i].any() or b["label"][i])
                    else:
                        self.assertTrue(any(np.array_equal(b["image"][i], b["image"][k]) for k in range(len(b.mask)) if b.mask[k]))
            self.assertEqual(made.stats()["skipped"], sum(r % 3 == 1 for r in range(RECORDS)))

    def test_a_worker_that_is_killed(self):
        made = self.loader([killed])
        with self.assertRaisesRegex(RuntimeError, "killed by signal: Killed"):
            list(made)
        with self.assertRaises((RuntimeError, penstock.Error)):
            list(made)

    def test_nothing_is_left(self):
        def left():
            gc.collect()
            return len(multiprocessing.active_children()), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

        def loop(k):
            with self.loader([changed], num_workers=k % 3) as made:
                for _, _ in zip(range(k), made):
                    pass

        loop(1)
        before = left()
        for k in range(6):
            loop(k)
        self.assertEqual(left(), before)

    def test_wrong_results(self):
        for f, text in (
            (shortened, r"record 1: shortened: image is uint8 \(5, 9, 3\), and the first records have uint8 \(4, 9, 3\)"),
            (T.Record(lambda record: None), "returns NoneType; have it return a dict of fields"),
            (T.Record(lambda image: (image, image), takes=["image", "label"]), "takes 1 positional"),
            (T.Record(lambda image, label: image, takes=["image", "label"]), "returns ndarray; have it return a tuple of 2 values"),
            (T.Record(lambda record: {"image": record["image"].astype(complex)}), "complex128, which batches cannot have"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(TypeError, text):
                list(self.loader([f], num_workers=0))

    def test_refused(self):
        for transforms, options, text in (
            ([changed, T.CenterCrop(5)], {}, "CenterCrop follows a function of whole records"),
            ([changed, lambda x: x], {}, "<lambda> follows a function of whole records"),
            ([changed, T.CenterCrop(5), changed], {}, "CenterCrop stands between"),
            ([lambda image: image], {}, r'not the field "boxes", which lies on it; give a function of both, .*Record\(f, takes='),
            ({"label": changed}, {}, "'label': changed takes whole records"),
            (T.Record(two, takes=["image", "y"]), {}, "takes the field 'y', and there are image, boxes"),
            (
                T.Record(lambda label: lock, takes=["label"]),
                {"pack": penstock.Pack(8)},
                r"pack needs results of <lambda>.*: a lock cannot be pickled",
            ),
            (
                [changed],
                {"pack": penstock.Pack(8), "collate_fn": list},
                r"pack comes before .* penstock.map\(FUNCTION, penstock.open\(DATASET\), NEW\)",
            ),
            ([changed], {"batch_transforms": T.MixUp(num_classes=9)}, "batch_transforms comes before functions"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex((ValueError, penstock.Error), text):
                self.loader(transforms, **options)
        with self.assertRaisesRegex(TypeError, r"it is a list of fields: \['image'\]"):
            T.Record(two, takes="image")
