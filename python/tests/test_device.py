import gc
import os
import types
import unittest
from unittest import mock

import penstock
from penstock import transforms as T

from . import data
from .test_dataloader import NORMALIZE, indices, loader
from .test_hostile_feed import greeting, serve, welcome

try:
    import torch

    import penstock.torch
    from penstock._engine import device

    from . import fakecuda
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "no torch")
class DeviceTest(unittest.TestCase):
    """Batches on a device, which is a stand-in where nothing happens before somebody waits for it."""

    def compare(self, cuda, want, got):
        """Compare batches with what was read of them on the device, which is done now."""
        cuda.driver.call("cuCtxSynchronize")
        self.assertEqual(len(want), len(got))
        for arrays, read in zip(want, got):
            for name, values in read.items():
                self.assertEqual(bytes(values), arrays[name].tobytes(), name)

    def wanted(self, name, *arguments, **options):
        with loader(name, *arguments, **options) as dl:
            return [{name: v.copy() for name, v in batch.items()} for batch in dl]

    def test_batches_are_held_until_they_are_copied(self):
        want = self.wanted("images", 64, True)
        for how in ("device", "prefetcher", "own copies", "own copies to another device"):
            with self.subTest(how=how), fakecuda.cuda(self) as cuda:
                options = {"device": "cuda"} if how == "device" else {"pin_memory": True}
                dl = loader("images", 64, True, output="torch", **options)
                batches = penstock.torch.Prefetcher(dl) if how == "prefetcher" else dl
                got = []
                for batch in batches:
                    if how.startswith("own copies"):
                        to = torch.device("cuda", 1 if how.endswith("another device") else 0)
                        batch = {name: v.to(to, non_blocking=True) for name, v in batch.items()}
                    got.append({name: cuda.later(v, int(how.endswith("another device"))) for name, v in batch.items()})
                    del batch
                self.assertEqual(dl.stats()["pinned"], "yes")
                self.assertEqual(dl.stats()["copied"], 0)
                self.assertEqual(cuda.recorded, 0 if how.startswith("own copies") else len(want) * len(want[0]))
                dl.close()
                self.compare(cuda, want, got)
                del dl, batches

    def test_mistakes_are_caught(self):
        """The stand-in finds the mistakes that this file is about."""

        def forgets(stage, batch):
            staged = put(stage, batch)
            stage._copied.clear()
            return staged

        put = device.Stage.put if torch else None
        for where, name, mistake in (
            (device.Stage, "put", forgets),
            (device.Stage, "take", lambda stage, staged: staged[0]),
            (device.PendingCopies, "settled", lambda copies, slots, wait: slots),
        ):
            with self.subTest(name=name), self.assertRaises(AssertionError):
                want = self.wanted("images", 64, True)
                with fakecuda.cuda(self) as cuda, mock.patch.object(where, name, mistake):
                    options = {"pin_memory": True} if name == "settled" else {"device": "cuda"}
                    with loader("images", 64, True, output="torch", **options) as dl:
                        got = []
                        for batch in dl:
                            on_device = {n: v.to(torch.device("cuda"), non_blocking=True) for n, v in batch.items()} if name == "settled" else batch
                            got.append({n: cuda.later(v) for n, v in on_device.items()})
                            del batch, on_device
                            if name == "take":
                                cuda.default.synchronize()
                    del dl
                    self.compare(cuda, want, got)
            gc.collect()

    def test_a_loop_that_is_left(self):
        """Copies under way read memory that stays mapped until they are done."""
        want = self.wanted("images", 64, True)
        for close_first in (False, True):
            with self.subTest(close_first=close_first), fakecuda.cuda(self) as cuda:
                dl = loader("images", 64, True, output="torch", device="cuda")
                batches = iter(dl)
                read = {name: cuda.later(v) for name, v in next(batches).items()}
                if close_first:
                    dl.close()
                del batches, dl
                gc.collect()
                self.compare(cuda, want[:1], [read])

    def test_a_prefetcher_that_is_left(self):
        """Its buffers are not reused before they are copied, though the loop that held them is gone."""
        want = self.wanted("images", 64, True)
        with fakecuda.cuda(self) as cuda, loader("images", 64, True, output="torch", pin_memory=True) as dl:
            for batch in penstock.torch.Prefetcher(dl, ahead=1):
                read = {name: cuda.later(v) for name, v in batch.items()}
                break
            gc.collect()
            for batch in dl:
                del batch
            self.compare(cuda, want[:1], [read])
            del dl

    def test_a_copy_that_cannot_be_queued(self):
        with fakecuda.cuda(self) as cuda:
            dl = loader("images", 64, output="torch", device="cuda")
            queue, calls = cuda.to, []

            def fails(tensor, *arguments, **options):
                calls.append(tensor.shape)
                if len(calls) == 2:
                    raise RuntimeError("out of memory")
                return queue(tensor, *arguments, **options)

            with mock.patch.object(cuda, "to", fails), self.assertRaisesRegex(RuntimeError, "out of memory"):
                next(iter(dl))
            self.assertEqual(len(dl._engine.stage._copied), 1)  # with the field that is on its way
            dl.close()
            del dl

    def test_a_fork_leaves_the_driver_alone(self):
        with fakecuda.cuda(self) as cuda:
            dl = loader("images", 64, output="torch", pin_memory=True)
            batch = next(iter(dl))
            child = os.fork()
            if child == 0:
                before = cuda.driver.stats()["calls"]
                dl.close()
                del dl, batch
                gc.collect()
                try:
                    cuda.driver.call("cuCtxSynchronize")
                except penstock.Error as e:
                    os._exit(0 if "child of fork" in str(e) and cuda.driver.stats()["calls"] == before else 2)
                os._exit(3)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertGreater(cuda.driver.stats()["registered"], 0)
            dl.close()
            del dl, batch

    def test_memory_is_page_locked_once(self):
        """None is added after the first batch, but for longer rows, which is registered separately."""
        # A number of workers that is found may add memory.
        with fakecuda.cuda(self) as cuda:
            with loader("images", 64, output="torch", pin_memory=True, num_workers=1) as dl:
                registered = []
                for batch in dl:
                    del batch
                    registered.append(cuda.driver.stats()["registered"])
                self.assertEqual(registered, registered[:1] * len(dl))
                self.assertGreater(registered[0], 0)
            del dl
        want = self.wanted("ragged", 7, True, fields=["tokens", "labels"])
        with fakecuda.cuda(self) as cuda:
            with loader("ragged", 7, True, fields=["tokens", "labels"], output="torch", device="cuda") as dl:
                got = []
                for batch in dl:
                    rows = batch["tokens"].values
                    got.append({"labels": cuda.later(batch["labels"]), **({"tokens": cuda.later(rows)} if rows.nbytes else {})})
                    del batch, rows
                self.assertGreater(cuda.driver.stats()["registered"], 1)
            del dl
            self.compare(cuda, [{"labels": b["labels"], "tokens": b["tokens"].values} for b in want], got)

    def test_memory_that_cannot_be_page_locked(self):
        with fakecuda.cuda(self) as cuda:
            cuda.driver.library.fakecuda_writable(0)  # which refuses it
            with self.assertLogs("penstock", "WARNING") as logged, loader("images", 64, output="torch", pin_memory=True) as dl:
                got = indices(dl)
                self.assertRegex(dl.stats()["pinned"], r"no: \d+ bytes: cuMemHostRegister_v2: CUDA_ERROR_INVALID_VALUE \(1\); is the limit")
            self.assertEqual(len(logged.output), 1)
            self.assertEqual(got, indices(loader("images", 64)))
            del dl

    def test_floats_are_made_on_the_device(self):
        """With the same bits as the feeding process's for the same transforms."""
        for transforms in (
            NORMALIZE,
            [T.RandomHorizontalFlip(), *NORMALIZE],
            [T.ToImage(), T.ToDtype("float32", scale=True), T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))],
            [T.ToImage(), T.ConvertImageDtype("bfloat16"), T.Normalize([0.5], [0.25])],
            [T.RandomHorizontalFlip(), T.ToDtype("float16", scale=True)],
            [T.ToDtype("float32"), T.ToImage()],
            [T.ToTensor(), T.RandomErasing(1.0)],
        ):
            with self.subTest(transforms=transforms), fakecuda.cuda(self) as cuda:
                cuda.at_once = True
                options = {"transforms": transforms, "seed": 5, "output": "torch"}
                with loader("images", 50, True, device="cuda", **options) as dl, loader("images", 50, True, **options) as cpu:
                    finished = dl.fields["images"].dtype == "uint8"
                    self.assertEqual(finished, not isinstance(transforms[-1], T.RandomErasing))
                    for batch, want in zip(dl, cpu):
                        self.assertEqual(batch["images"].dtype, want["images"].dtype)
                        self.assertTrue(torch.equal(batch["images"], want["images"]))
                        self.assertTrue(batch["images"].is_contiguous())
                        self.assertEqual(
                            (batch.indices.tolist(), batch.mask.tolist(), batch.step), (want.indices.tolist(), want.mask.tolist(), want.step)
                        )
                        del batch
                del dl

    def test_blank_records_are_zeros(self):
        """On the device as on the CPU: no Normalize makes -mean / std of them."""
        options = {"transforms": [T.Resize((12, 10)), T.ToTensor(), T.Normalize([0.5], [0.25])], "on_error": "blank", "output": "torch"}
        with fakecuda.cuda(self) as cuda:
            cuda.at_once = True
            with self.assertLogs("penstock", "WARNING"), loader("photos", 8, device="cuda", **options) as dl, loader("photos", 8, **options) as cpu:
                for batch, want in zip(dl, cpu):
                    self.assertTrue(torch.equal(batch["image"], want["image"]))
                    for i in (~batch.mask).nonzero()[0]:
                        self.assertEqual((batch["image"][i].abs().max(), batch.indices[i]), (0, 5))
                    del batch
            del dl

    def test_what_is_left_to_the_device_is_checked(self):
        for finish in (
            {"t": {"dtype": "float32", "layout": "CHW"}},
            {"none": {"dtype": "float32", "layout": "CHW"}},
            {"t": 1},
            {"t": {"dtype": "Tensor", "layout": "CHW"}},
        ):
            with self.subTest(finish=finish), fakecuda.cuda(self):
                feed = serve(self, greeting({"welcome": welcome(finish=finish)}))
                with self.assertRaisesRegex(penstock.Error, "unexpected message from feed"):
                    penstock.DataLoader(**feed, batch_size=2, device="cuda")

    def test_prefetcher_normalizes(self):
        f = penstock.open(data.path("images")).fields["images"]
        for on in ("cpu", "cuda"):
            with self.subTest(on=on), fakecuda.cuda(self) as cuda:
                cuda.at_once = True
                with loader("images", 50, output="torch", pin_memory=True) as dl, loader("images", 50) as cpu:
                    for batch, want in zip(penstock.torch.Prefetcher(dl, on, normalize=True), cpu):
                        self.assertEqual(batch["images"].numpy().tobytes(), f.float32(want["images"]).tobytes())
                        self.assertEqual(batch.indices.tolist(), want.indices.tolist())
                        del batch
                del dl
        with self.assertRaisesRegex(penstock.Error, "no field of uint8 images with a mean and std"):
            penstock.torch.Prefetcher([], "cpu", normalize=True)

    def test_the_loop_is_not_far_ahead(self):
        with fakecuda.cuda(self) as cuda, loader("images", 10, output="torch", device="cuda") as dl:
            want, read = [], []
            for batch in dl:
                read.append(cuda.later(batch["labels"]))
                want.append(penstock.open(data.path("images"))["labels"][batch.indices].tobytes())
                if len(read) > device.AHEAD + 2:
                    self.assertEqual(bytes(read[-device.AHEAD - 3]), want[-device.AHEAD - 3])
                del batch
            del dl

    def test_positions(self):
        want = indices(loader("images", 50, True, seed=3))
        with fakecuda.cuda(self) as cuda:
            for make in (
                lambda: loader("images", 50, True, seed=3, output="torch", device="cuda"),
                lambda: penstock.torch.Prefetcher(loader("images", 50, True, seed=3, output="torch", pin_memory=True)),
            ):
                first, second = make(), make()
                got = []
                for batch in first:
                    got.append(batch.indices.tolist())
                    if len(got) == 3:
                        state = first.state_dict()
                        break
                self.assertEqual((state["epoch"], state["step"]), (0, 3))
                self.assertEqual(first.state_dict(), state)
                second.load_state_dict(state)
                got += indices(second)
                self.assertEqual(got, want)
                self.assertEqual(second.state_dict()["epoch"], 1)
                first.set_epoch(0)
                self.assertEqual(indices(first), want)
                self.assertEqual(len(first), len(want))
                for dl in (first, second):
                    getattr(dl, "loader", dl).close()
                del batch, first, second, dl
                gc.collect()
            self.assertEqual(cuda.driver.stats()["registered"], 0)

    def test_an_error_comes_after_the_batches_before_it(self):
        def batches():
            yield {"x": torch.ones(3)}
            raise ValueError("the second")

        with fakecuda.cuda(self, pageable=1):
            got = []
            with self.assertRaisesRegex(ValueError, "the second"):
                got.extend(penstock.torch.Prefetcher(batches(), "cuda:0"))
            self.assertEqual(len(got), 1)

    def test_a_device_that_is_not_of_cuda(self):
        """A stand-in of the host: what is copied to it is a clone."""
        there, to = types.SimpleNamespace(type="xpu", index=0), torch.Tensor.to

        def copied(t, *where, **options):
            return t.clone() if where == (there,) else to(t, *where, **options)

        with mock.patch.object(device, "resolve", lambda _: there), mock.patch.object(torch.Tensor, "to", copied):
            with loader("images", 50, output="torch", device="xpu", pin_memory=True, transforms=NORMALIZE) as dl:
                self.assertEqual(dl.stats()["pinned"], "no: batches are copied to no CUDA device")
                got = list(dl)
            with loader("images", 50, output="torch") as dl:
                own = list(penstock.torch.Prefetcher(dl, "xpu"))
        with loader("images", 50, transforms=NORMALIZE) as cpu, loader("images", 50) as raw:
            for batch, want, other, plain in zip(got, cpu, own, raw, strict=True):
                self.assertEqual(batch["images"].numpy().tobytes(), want["images"].tobytes())
                self.assertEqual(other["images"].numpy().tobytes(), plain["images"].tobytes())

    def test_without_a_device(self):
        device._said.clear()
        with mock.patch.object(torch.cuda, "is_available", lambda: False), self.assertLogs("penstock", "WARNING") as logged:
            with loader("images", 50, output="torch", device="cuda", transforms=NORMALIZE) as dl, loader("images", 50, transforms=NORMALIZE) as cpu:
                for batch, want in zip(penstock.torch.Prefetcher(dl, "cuda"), cpu):
                    self.assertEqual(batch["images"].numpy().tobytes(), want["images"].tobytes())
                self.assertEqual(dl.stats()["pinned"], "not asked for")
        self.assertEqual(logged.output, ["WARNING:penstock:device is cuda, and torch finds no CUDA device: batches stay in the CPU's memory"])
        with self.assertLogs("penstock", "WARNING") as logged, loader("images", 50, output="torch", device="xpu") as dl:
            self.assertEqual(next(iter(dl))["images"].device.type, "cpu")
        self.assertEqual(logged.output, ["WARNING:penstock:device is xpu, and torch finds no XPU device: batches stay in the CPU's memory"])
        for name in ("meta", "gpu", "cuda:x", "", 1.5):
            with self.assertRaisesRegex(ValueError, f"device is {name!r}; it is a device of kind cuda, mps, xpu, hpu"):
                loader("images", 50, output="torch", device=name)
        with self.assertRaisesRegex(ValueError, "NumPy has no arrays on devices"):
            loader("images", 50, device="cuda")
        with loader("images", 50, pin_memory=True) as dl:
            self.assertRegex(dl.stats()["pinned"], "no: NVIDIA's driver cannot be opened")
