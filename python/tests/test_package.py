"""The modules of the package, as their source says it."""

from __future__ import annotations

import ast
import builtins
import copy
import dataclasses
import inspect
import io
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import h5py
import numpy as np

import penstock
import penstock._typing
from penstock import samplers, transforms
from penstock._base import limits
from penstock._base.dataclass import dataclass

from . import data

setUpModule = data.name_programs

PACKAGE = os.path.dirname(penstock.__file__)

#: Public names that are builtins too, as those of tarfile, gzip and multiprocessing.Pool, and flags of preprocess;
#: their modules do not use the builtin.
PUBLIC = {("__init__", "open"), ("__init__", "map"), ("_write.prepare", "filter"), ("_write.prepare", "format")}


#: Classes that penstock makes, and that nobody calls.
GIVEN = {
    "Batch", "CorruptError", "Dataset", "Error", "LoaderBatch", "NotFoundError", "Progress", "RaggedRecords", "Records", "Summary",
    "UnsupportedError", "View",
}  # fmt: skip

#: Classes that others extend.
BASES = {"ArrayTransform", "BatchTransform", "Sampler", "Transform", "Kinds"}


def trees():
    """Return the module trees by name: "order", "_read.dataset"."""
    found = {}
    for folder, _, names in os.walk(PACKAGE):
        inside = os.path.relpath(folder, PACKAGE).replace(os.sep, ".").removeprefix(".")
        for name in sorted(names):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    found[".".join(filter(None, (inside, name[:-3])))] = ast.parse(f.read())
    return found


def imports(name, tree, modules):
    """Return the modules of the package that one imports, also in its functions and for its types alone."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*name.split(".")[: -node.level], *filter(None, [node.module])]
            found |= {".".join(base), *(".".join([*base, alias.name]) for alias in node.names)}
    return found & modules


def circles(graph):
    """Return the sets of two or more modules that import each other, directly or not."""

    def reached(name):
        seen, left = set(), [name]
        while left:
            for other in graph[left.pop()] - seen:
                seen.add(other)
                left.append(other)
        return seen

    reach = {name: reached(name) for name in graph}
    return {frozenset(b for b in graph if b in reach[a] and a in reach[b]) for a in graph if a in reach[a]}


def bound(tree):
    """Yield the names that a module binds, in functions too; those of a class are reached through it, and hide nothing."""
    members = {id(n) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for n in node.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and id(node) not in members:
            yield node.name
        if isinstance(node, ast.arg):
            yield node.arg
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in node.names)


class TestPackage(unittest.TestCase):
    def test_checkers_know_the_arguments_of_a_dataloader(self):
        """Those that the overloads leave to penstock._typing."""
        spoken = {"dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "collate_fn", "output", "batch_type"}
        given = {name: p.annotation for name, p in inspect.signature(penstock.DataLoader).parameters.items() if name not in spoken}
        self.assertEqual({name: known.__forward_arg__ for name, known in penstock._typing.Options.__annotations__.items()}, given)

    def test_no_module_imports_one_that_imports_it(self):
        modules = trees()
        graph = {name: imports(name, tree, set(modules)) for name, tree in modules.items() if name != "__init__"}
        self.assertGreater(sum(map(len, graph.values())), 50)
        self.assertEqual(circles(graph), set())
        self.assertEqual(circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}), {frozenset("bc")})

    def test_no_name_hides_a_builtin(self):
        found = {
            (module, name)
            for module, tree in trees().items()
            for name in bound(fields_removed(tree))
            if hasattr(builtins, name) and not name.startswith("__")
        }
        self.assertEqual(found, PUBLIC)

    def test_limits_of_the_machine(self):
        new = {"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/cpu.max": "150000 100000\n", "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
               "/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/a/b/memory.max": "1048576\n"}  # fmt: skip
        old = {"/proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/y\n", "/sys/fs/cgroup/cpu,cpuacct/y/cpu.cfs_quota_us": "250000\n",
               "/sys/fs/cgroup/memory/memory.limit_in_bytes": "2097152\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n"}  # fmt: skip
        worker = types.SimpleNamespace(get_worker=lambda: types.SimpleNamespace(state=types.SimpleNamespace(nthreads=1)))
        for files, variables, modules, cores, memory in (
            (new, {}, {}, 2, 1 << 20), (old, {}, {}, 3, 2 << 20), (new, {"PYTHON_CPU_COUNT": "default"}, {}, 2, 1 << 20),
            (old, {"LOKY_MAX_CPU_COUNT": "1"}, {}, 1, 2 << 20), ({}, {"PYTHON_CPU_COUNT": "7"}, {}, 7, None),
            ({}, {}, {"distributed.worker": worker}, 1, None),
        ):  # fmt: skip
            with (
                self.subTest(cores=cores),
                mock.patch.dict(os.environ, variables),
                mock.patch.dict(sys.modules, modules),
                mock.patch.object(limits, "bound", lambda: 64),
                mock.patch.object(
                    limits, "open", lambda path, files=files: io.StringIO(files[path]) if path in files else open(os.devnull + "/"), create=True
                ),
            ):
                limits.memory.cache_clear()
                self.assertEqual((limits.cores(), limits.environment()), (cores, {"GOMAXPROCS": str(cores)}))
                self.assertEqual(limits.memory(), memory or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        limits.memory.cache_clear()

    def test_every_parameter_is_described(self):
        public = {name: getattr(penstock, name) for name in (*penstock.__all__, "open", "map") if callable(getattr(penstock, name))}
        for module in (transforms, samplers):
            found = {name: value for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__}
            public |= {name: value for name, value in found.items() if hasattr(value, "to_json") and name not in BASES}
        checked = 0
        for name in public.keys() - GIVEN - {"preprocess"}:
            described = inspect.getdoc(public[name]) + inspect.cleandoc(getattr(public[name].__init__, "__doc__", None) or "")
            named = re.findall(r"\w+", " ".join(re.findall(r"(?m)^ +([*\w, ]+): ", described[described.find("Args:") :])))
            parameters = [p for p in inspect.signature(public[name]).parameters if not p.startswith("_")]
            with self.subTest(name=name):
                self.assertEqual([p for p in parameters if p not in named], [])
            checked += len(parameters)
        self.assertGreater(checked, 250)

    def test_examples_of_transforms_and_samplers(self):
        checked = 0
        for module in (transforms, samplers):
            for name, value in list(vars(module).items()):
                example = re.search(r"Example:\n +``(.*)``", value.__doc__ or "") if isinstance(value, type) else None
                if example and value.__module__ == module.__name__:
                    with self.subTest(example=example[1]):
                        made = eval(example[1], vars(module))
                        self.assertIsInstance(made, value)
                        self.assertTrue(made.to_json(Kept()) if module is samplers else made.to_json())
                    checked += 1
        self.assertGreater(checked, 55)

    def test_names_are_imported_when_they_are_asked_for(self):
        code = (
            "import sys, penstock; assert 'numpy' not in sys.modules; "
            "assert all(getattr(penstock, name) is getattr(penstock, name) for name in penstock.__all__); "
            "assert penstock.open.__module__ == 'penstock._read.dataset' and not hasattr(penstock, 'nothing')"
        )
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE)})

    def test_errors_show_names_of_strangers(self):
        """Characters that a terminal obeys are escaped, and a line break begins an indented line."""
        shown = str(penstock.Error("x\x1b[31m\nFAKE\n  already\u202e"))
        self.assertEqual(shown, "x\\x1b[31m\n  FAKE\n  already\\u202e")
        long = str(penstock.Error("where: " + "x" * 10**6 + ": what to do"))
        self.assertRegex(long, r"\Awhere: x.* \(994019 characters are left out\) .*x: what to do\Z")
        self.assertLess(len(long), 8000)

    def test_names_of_strangers_stay_in_their_line(self):
        """What is printed of a dataset, view or batch has neither a line break nor what a terminal obeys."""
        name = "x\nFAKE\x1b[31m\u202e"
        with tempfile.TemporaryDirectory() as base:
            path = os.path.join(base, f"{name}.h5")
            with h5py.File(path, "w") as f:
                f[name] = np.zeros((4, 2), "f4")
            with penstock.open(path) as ds, penstock.DataLoader(path, 2, output="numpy") as loader:
                for shown in (ds, ds.select([0]), loader, next(iter(loader))):
                    self.assertTrue(repr(shown).isprintable(), repr(shown))
                    self.assertIn("records" if shown is loader else "FAKE", repr(shown))
        url = "http://user:SECRET@h/x.csv?sig=SECRET"
        for call in (
            lambda: penstock.loadbench(url),
            lambda: penstock.open(self.made()).concat(url),
            lambda: penstock.open(self.made()).select([0]).save(url),
        ):
            with self.assertRaises((ValueError, TypeError)) as caught:
                call()
            self.assertNotIn("SECRET", str(caught.exception))

    def made(self):
        return data.path("images")

    def test_a_star_import_replaces_no_builtin(self):
        before = {"open": open, "map": map}
        names = dict(before)
        exec("from penstock import *", names)
        self.assertEqual({name: names[name] for name in before}, before)
        self.assertEqual([name for name in penstock.__all__ if hasattr(builtins, name)], [])
        self.assertLessEqual({"open", "map", "DataLoader", "transforms", "torch"}, set(dir(penstock)))
        self.assertFalse({"Any", "importlib", "annotations"} & set(dir(penstock)))

    def test_dataclasses_are_those_of_the_standard_library(self):
        for options in ({}, {"frozen": True}):
            ours, theirs = (made(decorator, options) for decorator in (dataclass, dataclasses.dataclass))
            with self.subTest(options):
                seen = []
                for kind in (ours, theirs):
                    a, b = kind(1, hidden=2), kind(1, hidden=3)
                    seen.append([repr(a), a == b, a == kind(2), a == (1, 0), raised(hash, b), raised(kind)])
                    seen[-1] += [raised(setattr, a, "x", 5), raised(setattr, a, "y", 5), raised(delattr, a, "x")]
                    self.assertEqual((copy.copy(b), dataclasses.replace(b, x=7).hidden), (b, 3))
                self.assertEqual(seen[0], seen[1])


def made(decorator, options):
    """Return a class of two fields."""

    class Value:
        x: int
        hidden: int = dataclasses.field(default=0, repr=False, compare=False)

    return decorator(**options)(Value)


def raised(function, *arguments):
    """Return the name of the error that a function raises, and its text, or what it returns."""
    try:
        return function(*arguments)
    except (AttributeError, TypeError) as e:
        return type(e).__name__, str(e)


class Kept:
    """The arrays of a sampler, which go nowhere."""

    def add(self, values):
        return {"elements": len(values)}


def fields_removed(tree):
    """Return a module without the fields that its classes declare."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [n for n in node.body if not isinstance(n, (ast.AnnAssign, ast.Assign))]
    return tree


if __name__ == "__main__":
    unittest.main()
