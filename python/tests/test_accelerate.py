"""A DataLoader where Accelerate prepares it: the records of torch's own loader in the same program, in one process and in two."""

import os
import socket
import subprocess
import sys
import tempfile
import traceback
import unittest
import warnings

import penstock
from penstock import order

from . import data

try:
    import accelerate
    import torch
    from accelerate.state import AcceleratorState, GradientState
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

SEED = 5
CONFIGURATIONS = (
    {}, {"split_batches": True}, {"even_batches": False}, {"dispatch_batches": True}, {"split_batches": True, "even_batches": False},
    {"use_seedable_sampler": True},
)  # fmt: skip


if not MISSING:

    class Own(Dataset):
        """A dataset of Python code: the numbers of its records."""

        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            return torch.tensor(int(i)), float(i)


class Kind:
    """A kind of data: DataLoaders of penstock and of torch over the same records, in the same order."""

    def __init__(self, name, dataset, records, **options):
        self.name, self.dataset, self.records, self.options = name, dataset, records, options

    def penstock(self, **options):
        return penstock.DataLoader(self.dataset() if callable(self.dataset) else self.dataset, **self.options, **options)

    def torch(self, shuffle=False, **options):
        """Return torch's DataLoader; where the order is penstock's, its sampler lists that of the first epoch."""
        if shuffle and ("seed" in self.options or not callable(self.dataset)):
            return DataLoader(Own(self.records), sampler=order.shuffle(self.records, self.options.get("seed", 0), 0)[:].tolist(), **options)
        return DataLoader(Own(self.records), shuffle=shuffle, **options)


def kinds(folder):
    """Return all kinds of data."""
    images, n = os.path.join(folder, "images"), 150
    prepared = penstock.open(images)
    photos = os.path.join(folder, "photos")
    with penstock.DataLoader(photos, 1, prepare="off") as raw:
        photographs = raw.records
    return [
        Kind("prepared", images, len(prepared), fields=["labels"]),
        Kind("raw", photos, photographs, fields=["labels"], prepare="off"),
        Kind("arrays", lambda: TensorDataset(torch.arange(n), torch.arange(n)), n),
        Kind("own", lambda: Own(n), n, num_workers=1),
        Kind("arrays, seeded", lambda: TensorDataset(torch.arange(n), torch.arange(n)), n, seed=SEED),
        Kind("own, seeded", lambda: Own(n), n, num_workers=0, seed=SEED),
    ]


def numbers(batch):
    """Return the numbers of the records of a batch."""
    return batch.indices.tolist() if isinstance(batch, penstock.LoaderBatch) else batch[0].tolist()


def accelerator(**configuration):
    for shared in (AcceleratorState, GradientState):
        shared._reset_state()
    torch.manual_seed(1)
    return accelerate.Accelerator(cpu=True, dataloader_config=accelerate.DataLoaderConfiguration(**configuration))


def run(made, configuration, skip, gather):
    """Return what a loop over a DataLoader shows, which Accelerate prepared."""
    a = accelerator(**configuration)
    loader = a.prepare(made)
    seen = []
    for batch in a.skip_first_batches(loader, skip) if skip else loader:
        found = numbers(batch)
        all_of = a.gather_for_metrics(torch.tensor(found)).tolist() if gather else None
        seen.append((found, a.gradient_state.end_of_dataloader, all_of))
    return len(loader), seen


def resumed(kind, make, configuration, folder, size):
    """Return the records of the second epoch, and those of a run that is saved in the middle of it and continued."""
    whole, rest = [], []
    for seen in (whole, rest):
        a = accelerator(use_stateful_dataloader=True, use_seedable_sampler=True, **configuration)
        loader = a.prepare(make(batch_size=size, shuffle=True))
        where = os.path.join(folder, f"state-{kind.name}-{len(configuration)}")
        if seen is rest:
            a.load_state(where)
        for epoch in range(2) if seen is whole else range(1, 2):
            loader.set_epoch(epoch)
            for step, batch in enumerate(loader):
                seen.append((epoch, numbers(batch)))
                if seen is whole and (epoch, step) == (1, 0):
                    with a.main_process_first():  # all of them write dl_state_dict.bin, into each other where they are as fast
                        a.save_state(where)
                    a.wait_for_everyone()
                    del seen[:]
    return whole, rest


def problems(datasets, scratch):
    """Return how the DataLoaders of penstock and of torch differ in this process."""
    found = []
    several = accelerate.PartialState(cpu=True).num_processes > 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module="torch|accelerate")
        for kind in kinds(datasets):
            size = 4 if kind.records < 100 else 32
            for configuration in CONFIGURATIONS:
                for drop_last, skip in ((False, 0), (True, 0), (False, 1)):
                    if skip and several and "dispatch_batches" in configuration:
                        continue  # where Accelerate skips batches of one process, and not of all
                    uneven = configuration.get("even_batches") is False or drop_last
                    # Accelerate loses count of its own last batch after skip_first_batches
                    what = {"configuration": configuration, "skip": skip, "gather": not skip and not (several and uneven)}
                    options = {"batch_size": size, "drop_last": drop_last, "shuffle": skip > 0}
                    try:
                        want, got = run(kind.torch(**options), **what), run(kind.penstock(**options), **what)
                    except Exception:
                        found.append(f"{kind.name}, {options}, {what}:\n{traceback.format_exc()}")
                        continue
                    if got != want:
                        found.append(f"{kind.name}, {options}, {what}:\n   {got}\nnot {want}")
            for configuration in ({}, {"split_batches": True}):
                try:
                    whole, rest = resumed(kind, kind.penstock, configuration, scratch, size)
                except Exception:
                    found.append(f"{kind.name}, resumed, {configuration}:\n{traceback.format_exc()}")
                    continue
                if rest != whole or not rest:
                    found.append(f"{kind.name}, resumed, {configuration}:\n   {rest}\nnot {whole}")
    return found


def setUpModule():
    data.name_programs()


@unittest.skipIf(MISSING, MISSING)
class AccelerateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="penstock-python-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_one_process(self):
        self.assertEqual("\n".join(problems(data.folder(), self.folder)), "")

    def test_two_processes(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        environ = {
            **os.environ,
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-W", "ignore", "-m", "tests.test_accelerate", data.folder(), self.folder]
        started = [
            subprocess.Popen(
                command, cwd=os.path.join(data.HERE, ".."), env={**environ, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True,
            )
            for rank in range(2)
        ]  # fmt: skip
        for rank, process in enumerate(started):
            said = process.communicate(timeout=300)[0]
            with self.subTest(rank):
                self.assertEqual((process.returncode, said), (0, ""), said)


if __name__ == "__main__":
    for line in problems(*sys.argv[1:]):
        print(line)
    torch.distributed.destroy_process_group()
