"""The programs in examples, each run with the library that it is for."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from unittest import mock

import penstock

from . import data


def example(name, *libraries):
    """Return a program of examples as a module."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise unittest.SkipTest(f"no {library}")
    spec = importlib.util.spec_from_file_location(name, os.path.join(data.HERE, "..", "examples", f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries
        spec.loader.exec_module(module)
    return module


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(os.environ, {"PENSTOCK_FEED": data.feed()})
        patch.start()
        self.addCleanup(patch.stop)
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore")  # of the libraries
        folder = tempfile.TemporaryDirectory(prefix="penstock-python-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_lightning_resumes_within_an_epoch(self):
        module = example("lightning_module", "torch", "lightning")
        whole = module.train(data.path("images"), 40)  # an epoch has 24 steps
        for steps in (10, 30):
            file = os.path.join(self.folder, f"{steps}.ckpt")
            module.train(data.path("images"), steps, save=file)
            rest = module.train(data.path("images"), 40, file, num_workers=1)
            self.assertEqual(rest.seen, whole.seen[steps:])

    def test_own_datasets(self):
        """The losses are those of torch's DataLoader."""
        for name, *libraries in (
            ("classification", "torch", "torchvision"),
            ("lightning_trainer", "torch", "lightning"),
            ("accelerate_prepare", "torch", "accelerate"),
            ("transformers_trainer", "torch", "transformers", "accelerate"),
            ("timm_prefetcher", "torch", "timm"),
            ("keras_pydataset", "torch", "keras"),
        ):
            with self.subTest(name):
                module = example(f"own_dataset/{name}", *libraries)
                from torch.utils.data import DataLoader

                losses = module.train()
                self.assertEqual(losses, module.train(DataLoader))
                self.assertGreater(len(set(losses)), 2)

    def test_jax(self):
        losses = example("jax_sharded", "jax").train(data.path("images"), epochs=3)
        self.assertEqual(len(losses), 3 * (1500 // 64))

    def test_keras_continues(self):
        """In a process of its own, as a process has one backend of Keras."""
        for library in ("keras", "torch"):
            if importlib.util.find_spec(library) is None:
                raise unittest.SkipTest(f"no {library}")
        script = os.path.join(data.HERE, "..", "examples", "keras_fit.py")
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, ".."), "KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": ""}
        for epochs in (3, 1):  # of 24 steps; the state that was saved last is of step 20 of the third epoch
            ran = subprocess.run([sys.executable, script, data.path("images"), self.folder], env=env, stdout=subprocess.PIPE, text=True, check=True)
            self.assertEqual(len(ran.stdout.split()), epochs)

    def test_forecast(self):
        error, persistence = example("forecast", "torch", "h5py").train(self.folder, epochs=2)
        self.assertLess(error, 0.6 * persistence)

    def test_grain(self):
        seen = [label for batch in example("grain_source", "grain").batches(data.path("images")) for label in batch["labels"].tolist()]
        self.assertEqual(sorted(seen), sorted(penstock.open(data.path("images"))["labels"][:].tolist()))

    def test_hugging_face_resumes_within_an_epoch(self):
        module = example("huggingface_trainer", "torch", "transformers", "accelerate")
        seen = []

        class Loader(penstock.DataLoader):
            def __iter__(self):
                for batch in super().__iter__():
                    seen.append((batch.epoch, batch.step, batch["labels"].tolist(), batch["pixel_values"].sum().item()))
                    yield batch

        with mock.patch.object(penstock, "DataLoader", Loader):
            result = module.train(data.path("images"), os.path.join(self.folder, "whole"), 30)
            self.assertEqual(result.global_step, 30)
            whole = seen[:30]
            for steps in (10, 26):  # an epoch has 24
                output = os.path.join(self.folder, str(steps))
                module.train(data.path("images"), output, steps, save_steps=steps)
                seen.clear()
                result = module.train(data.path("images"), output, 30, os.path.join(output, f"checkpoint-{steps}"), num_workers=1)
                self.assertEqual(result.global_step, 30)
                self.assertEqual(seen[: 30 - steps], whole[steps:])

    def test_dask_streams_while_another_process_trains(self):
        module = example("dask_stream", "dask")
        path = os.path.join(self.folder, "ds")
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, ".."), "PYTHONWARNINGS": "ignore"}
        script = os.path.join(data.HERE, "..", "examples", "dask_stream.py")
        with subprocess.Popen([sys.executable, script, "train", path, "3"], stdout=subprocess.PIPE, text=True, env=env) as trainer:
            lines = []

            def committed(generation):
                """Wait until the trainer has had an epoch of a generation."""
                for line in trainer.stdout:
                    lines.append(line)
                    if f"generation {generation}," in line:
                        return
                self.fail(f"the trainer ended before it saw generation {generation}: {lines}")

            with mock.patch.dict(os.environ, {"PENSTOCK_PREPROCESS": data.preprocess()}):
                module.write(path, 3, committed)
        self.assertEqual(trainer.returncode, 0)
        for generation in (1, 2, 3):
            self.assertTrue(any(f"generation {generation}, {2000 * generation} records" in line for line in lines), lines)
        self.assertGreater(float(lines[-1].split()[-2]), 0.85)
        self.assertGreater(penstock.open(path).verify(), 0)
        self.assertEqual(len(penstock.open(path)), 6000)

    def test_accelerate_is_killed_and_resumes(self):
        example("accelerate_loop", "torch", "accelerate")
        script = os.path.join(data.HERE, "..", "examples", "accelerate_loop.py")
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, ".."), "PYTHONWARNINGS": "ignore"}

        def run(name, workers, kill_after=None):
            arguments = [sys.executable, script, data.path("images"), os.path.join(self.folder, name), str(workers)]
            with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=env) as trainer:
                lines = []
                for line in trainer.stdout:
                    lines.append(line)
                    if len(lines) == kill_after:
                        trainer.kill()
            return lines

        whole = run("whole", 1)
        self.assertEqual(len(whole), 48)
        killed = run("killed", 2, 30)[:30]
        self.assertEqual(killed, whole[:30])
        rest = run("killed", 3)
        self.assertIn(len(rest), (20, 16, 12))  # from the last checkpoint before the kill, in the middle of the second epoch
        self.assertEqual(rest, whole[-len(rest) :])

    def test_torchrun_restarts_with_another_world(self):
        example("torchrun_elastic", "torch")
        examples = os.path.join(data.HERE, "..", "examples")
        script = os.path.join(self.folder, "stuck.py")
        with open(script, "w") as f:  # the processes of two nodes stop in the second epoch, until a third node comes
            f.write(
                "import sys, time, torchrun_elastic as example\n"
                "def step(*arguments, steps=[], real=example.step):\n"
                "    steps.append(1)\n"
                "    if example.dist.get_world_size() == 2 and len(steps) > 30:\n"
                "        time.sleep(600)\n"
                "    return real(*arguments)\n"
                "example.step = step\n"
                "example.train(*sys.argv[1:])\n"
            )
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([os.path.join(data.HERE, ".."), examples]),
            "PYTHONWARNINGS": "ignore",
            "OMP_NUM_THREADS": "1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
        url = self.bucket(env)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        torchrun = [sys.executable, "-m", "torch.distributed.run"]
        node = [
            *torchrun,
            "--nnodes",
            "2:3",
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            f"127.0.0.1:{port}",
            "--rdzv-id",
            "test",
            "--rdzv-conf",
            "last_call_timeout=3",
        ]
        place = [url, os.path.join(self.folder, "run.pt"), os.path.join(self.folder, "cache")]
        whole = steps(
            subprocess.check_output(
                [*torchrun, "--standalone", "--nproc-per-node", "2", os.path.join(examples, "torchrun_elastic.py"), url, place[1] + "1"], env=env
            )
        )

        logs = [tempfile.TemporaryFile(dir=self.folder) for _ in range(3)]  # noqa: SIM115 - closed below
        nodes = []
        for log in logs[:2]:
            nodes.append(subprocess.Popen([*node, script, *place], stdout=log, env=env))
        self.addCleanup(lambda: [n.kill() for n in nodes])
        deadline = time.monotonic() + 300
        while sum(os.fstat(log.fileno()).st_size > 0 and b'"step": 4' in os.pread(log.fileno(), 1 << 20, 0) for log in logs) < 2:
            self.assertLess(time.monotonic(), deadline, "two nodes do not train")
            time.sleep(0.1)
        nodes.append(subprocess.Popen([*node, script, *place], stdout=logs[2], env=env))
        self.assertEqual([n.wait(300) for n in nodes], [0, 0, 0])
        elastic = steps(b"".join(os.pread(log.fileno(), 1 << 24, 0) for log in logs))
        for log in logs:
            log.close()

        self.assertEqual({s["world"] for s in whole.values()}, {2})
        self.assertEqual([elastic[k]["world"] for k in sorted(elastic)], [2] * 29 + [3] * 46)  # it continues after the checkpoint
        for run in (whole, elastic):
            for epoch in range(3):
                records = [r for (e, _), s in run.items() if e == epoch for r in s["records"]]
                self.assertEqual(sorted(records), list(range(1500)))
        for k, s in whole.items():
            self.assertEqual(sorted(elastic[k]["records"]), sorted(s["records"]))
            self.assertAlmostEqual(elastic[k]["loss"], s["loss"], places=12)

    def bucket(self, env):
        """Return the URL of a dataset in a bucket of versitygw, or of a folder where that is not installed, for a feed that env names."""
        env["PENSTOCK_FEED"] = data.feed_with_clouds()
        gateway = shutil.which("versitygw", path=os.pathsep.join([os.environ.get("PATH", ""), os.path.expanduser("~/go/bin")]))
        if gateway is None:
            print("no versitygw: the data are in a folder, and not in a bucket (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)")
            return "file://" + data.path("images")
        root = os.path.join(self.folder, "buckets")
        shutil.copytree(data.path("images"), os.path.join(root, "lab", "images"))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        keys = {"ROOT_ACCESS_KEY": "key", "ROOT_SECRET_KEY": "secret"}
        server = subprocess.Popen([gateway, "--port", f"127.0.0.1:{port}", "posix", root], env={**os.environ, **keys}, stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        env |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
        return f"s3://lab/images?region=us-east-1&endpoint=http://127.0.0.1:{port}&use_path_style=true"


def steps(output):
    """Return the steps that torchrun_elastic has printed, by epoch and number: those of the largest world, with the records of all processes."""
    found = {}
    for line in output.decode().splitlines():
        s = json.loads(line)
        key = s["epoch"], s["step"]
        if key not in found or found[key]["world"] < s["world"]:
            found[key] = s
        elif found[key]["world"] == s["world"]:
            found[key]["records"] += s["records"]
    return found
