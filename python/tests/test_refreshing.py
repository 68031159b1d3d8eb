"""DataLoaders that take the newest generation of their datasets between epochs."""

import os
import pickle
import unittest

import numpy as np

import penstock
from penstock._write import changing

from . import data

setUpModule = data.name_programs


def loader(dataset, **options):
    return penstock.DataLoader(dataset, 16, shuffle=True, seed=1, output="numpy", **options)


def numbers(batches):
    return sorted(np.concatenate([b["number"] for b in batches]).tolist())


class RefreshingTest(data.Copied):
    def setUp(self):
        self.path = self.copy("images")
        ds = penstock.open(self.path)
        self.n = len(ds)
        ds.add_column("number", np.arange(self.n))

    def test_the_newest_generation_is_taken_between_epochs(self):
        for dataset in (str, penstock.open):
            with self.subTest(dataset), loader(dataset(self.path)) as batches:
                first = penstock.open(self.path).generation
                self.assertEqual(numbers(batches), list(range(self.n)))
                same = batches.refresh()
                self.assertEqual((len(same), str(same)), (0, "nothing changed: the newest generation is open"))
                penstock.open(self.path).add_column("score", np.zeros(self.n)).set_column("labels", np.ones(self.n, np.uint8)).delete("number < 10")
                feed = batches.pid
                changed = batches.refresh()
                self.assertNotEqual(batches.pid, feed)
                columns = "columns: added score; replaced labels"
                self.assertEqual(str(changed), f"{self.path}: from generation {first} to {first + 3}: {columns}; records: 10 deleted")
                self.assertEqual((changed[0].added, changed[0].replaced, changed[0].deleted), (("score",), ("labels",), 10))
                self.assertEqual((batches.epoch, batches.records), (1, self.n - 10))
                epoch = list(batches)
                self.assertEqual(epoch[0].epoch, 1)
                self.assertEqual(numbers(epoch), list(range(10, self.n)))
                self.assertTrue(all((b["labels"] == 1).all() and not b["score"].any() for b in epoch))
                state = batches.state_dict()
                self.assertEqual(pickle.loads(pickle.dumps(batches)).refresh(), ())
                batches.load_state_dict(state)
                penstock.open(self.path).drop_columns("score").restore_records()
                (back,) = batches.refresh()
                self.assertEqual((back.dropped, back.restored), (("score",), 10))
                with self.assertRaisesRegex(penstock.Error, f"open .*@{first + 3}"):
                    batches.load_state_dict(state)

    def test_an_epoch_that_is_under_way_is_not_changed(self):
        batches = loader(self.path)
        loop = iter(batches)
        next(loop)
        penstock.open(self.path).delete("number < 10")
        for _ in range(2):
            with self.assertRaisesRegex(penstock.Error, r"an epoch is under way; call it after the loop, .*: loader.set_epoch\(1\)"):
                batches.refresh()
            loop = None  # as after a break
        batches.set_epoch(1)
        self.assertEqual(len(batches.refresh()), 1)
        self.assertEqual((numbers(batches), batches.epoch), (list(range(10, self.n)), 2))

    def test_views_find_their_records_again(self):
        ds = penstock.open(self.path, ["number"])
        made = loader(ds.filter("number > 5 and number < 30"))
        joined = loader(ds.zip(penstock.open(self.path, ["labels"])))
        both = loader([self.path, self.path], fields=["number"])
        chosen = loader(ds.select([3, 1, 2]))
        file = f"{self.path}.view.json"
        self.addCleanup(os.remove, file)
        ds.select([3, 1, 2]).save(file)
        saved = loader(file)
        self.assertEqual(numbers(made), list(range(6, 30)))
        penstock.open(self.path).delete("number < 10")
        self.assertEqual([str(made.refresh()), numbers(made)], [f"{self.path}: from generation 2 to 3: records: 10 deleted", list(range(10, 30))])
        self.assertEqual([len(joined.refresh()), numbers(joined)], [1, list(range(10, self.n))])
        self.assertEqual([len(both.refresh()), len(numbers(both))], [1, 2 * (self.n - 10)])
        for batches in (chosen, saved):
            with self.assertRaisesRegex(penstock.Error, "numbers of records of generation 2, which are others now: make the view|another dataset"):
                batches.refresh()
            self.assertEqual(numbers(batches), [1, 2, 3])

    def test_records_in_the_places_of_others_are_others(self):
        path = f"{self.path}.own"
        for number, generation in (1, None), (100, None), (200, 1):
            if generation:
                plain, chosen = loader(path), loader(penstock.open(path).select([3]))
                with self.assertRaisesRegex(penstock.Error, "record 5"):
                    penstock.open(path).add_column("text", lambda record: str(1 // int(102 - record["number"])), resume=True)
                penstock.open(path, generation=generation).restore()
            with penstock.Writer(path, append=number > 1) as w:
                w.extend({"number": number + i, "other": 0} for i in range(3))
        with self.assertRaisesRegex(penstock.Error, "cannot resume"):  # values of the records that were there before
            penstock.open(path).add_column("text", lambda record: str(record["number"]), resume=True)
        with self.assertRaisesRegex(penstock.Error, "records: 3 appended, 3 deleted; the view has numbers of records"):
            chosen.refresh()
        self.assertEqual(numbers(chosen), [100])
        (changed,) = plain.refresh()
        self.assertEqual((changed.appended, changed.deleted, changed.replaced, numbers(plain)), (3, 3, (), [1, 2, 3, 200, 201, 202]))

    def test_a_saved_view_keeps_its_generation(self):
        file = f"{self.path}.view.json"
        self.addCleanup(os.remove, file)
        penstock.open(self.path).filter("number > 5").save(file)
        saved = loader([file])
        self.assertEqual(saved.refresh(), ())
        penstock.open(self.path).delete("number < 10")
        for _ in range(2):
            with self.assertRaisesRegex(penstock.Error, f"^refresh: {file} is a view of {self.path}@2, a generation, which stays; .*'{self.path}'"):
                saved.refresh()
        self.assertEqual(numbers(saved), list(range(6, self.n)))

    def test_a_pruned_generation_of_hdf5_is_left(self):
        path = f"{self.path}.h5"
        self.addCleanup(os.remove, path)
        penstock.preprocess(self.path, path)
        held = penstock.open(path).delete("number < 10")
        batches, chosen = loader(path), loader(held.select([3, 1, 2]))
        penstock.open(path).delete("number < 20")
        changing.run(["prune", "--", path])
        with self.assertRaisesRegex(penstock.Error, "which was pruned, to 3; the view has numbers of records of generation 2"):
            chosen.refresh()
        changed = batches.refresh()
        self.assertEqual((str(changed), changed[0].pruned), (f"{path}: from generation 2, which was pruned, to 3", True))
        self.assertEqual([numbers(batches), batches.refresh()], [list(range(20, self.n)), ()])
        with self.assertRaisesRegex(penstock.Error, "its generation was pruned, or another dataset has taken its place .*; open it again"):
            held.add_column("score", np.zeros(len(held)))

    def test_what_cannot_be_refreshed_is_refused(self):
        ds = penstock.open(self.path)
        pinned = [loader(f"{self.path}@2"), loader(penstock.open(self.path, generation=2))]
        weighted = penstock.DataLoader(self.path, 16, sampler=penstock.samplers.Weighted(np.ones(self.n)), seed=1, output="numpy")
        named = loader(self.path, fields=["number"])
        of_code = penstock.DataLoader(list(range(5)), 2, output="numpy")
        ds.delete("number < 10").rename_column("number", "other")
        for batches, says in (
            *((p, f"names a generation, which stays; to follow the dataset, open {self.path}") for p in pinned),
            (weighted, "the sampler has numbers or weights of the records of generation 2"),
            (named, "number"),
            (of_code, "refresh is for datasets that preprocess made"),
        ):
            with self.assertRaisesRegex(penstock.Error, says):
                batches.refresh()
        self.assertEqual([numbers(named), len(numbers(pinned[0]))], [list(range(self.n)), self.n])
        with self.assertRaisesRegex(penstock.Error, "closed"):
            named.close()
            named.refresh()
        file = f"{self.path}.npy"
        self.addCleanup(os.remove, file)
        np.save(file, np.arange(40))
        with self.assertRaisesRegex(penstock.Error, "has no generations; make a new DataLoader"):
            loader(file).refresh()


if __name__ == "__main__":
    unittest.main()
