"""penstock.map on engines that run here, where they are installed: the same dataset as without."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import unittest
from typing import Any

import numpy as np

import penstock
from penstock._code import engines


def double(x: int) -> dict[str, Any]:
    return {"x": np.full(3, x, np.int32), "label": np.int64(x % 2)}


def needs(module: str) -> Any:
    return unittest.skipUnless(importlib.util.find_spec(module), f"no {module}: pip install {module}")


class TestEngines(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def check(self, engine: str) -> None:
        # By value: the workers do not have this file.
        def function(x: int) -> dict[str, Any]:
            import numpy

            return {"x": numpy.full(3, x, numpy.int32), "label": numpy.int64(x % 2)}

        one, many = os.path.join(self.folder, "one"), os.path.join(self.folder, "many")
        penstock.map(double, range(50), one, workers=0)
        summary = penstock.map(function, range(50), many, engine=engine, world_size=5)
        self.assertEqual(summary["records"], 50)
        for name in os.listdir(one):
            with open(os.path.join(one, name), "rb") as a, open(os.path.join(many, name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)
        self.assertFalse(os.path.exists(many + ".parts"))

    @needs("ray")
    def test_ray(self) -> None:
        import ray

        ray.init(num_cpus=2, include_dashboard=False)
        self.addCleanup(ray.shutdown)
        self.check("ray")

    @needs("distributed")
    def test_dask(self) -> None:
        from distributed import Client

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            self.check("dask")

    @needs("pyspark")
    @unittest.skipUnless(shutil.which("java"), "no java")
    def test_spark(self) -> None:
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        self.addCleanup(session.stop)
        self.check("spark")

    @unittest.skipUnless(shutil.which("sbatch"), "no sbatch: apt-get install slurm-wlm")
    @unittest.skipUnless(os.environ.get("SLURM_CONF"), "no cluster: SLURM_CONF is not set")
    def test_slurm(self) -> None:
        self.check("slurm")

    def test_refused(self) -> None:
        path = os.path.join(self.folder, "ds")
        with self.assertRaisesRegex(penstock.Error, "one of ray, dask, spark, slurm"):
            penstock.map(double, range(3), path, engine="hadoop", world_size=2)
        with self.assertRaisesRegex(ValueError, "give world_size"):
            penstock.map(double, range(3), path, engine="ray")
        with self.assertRaisesRegex(penstock.Error, "is not installed: pip install nothing"):
            engines._import("nothing_of_that_name", "nothing")


if __name__ == "__main__":
    unittest.main()
