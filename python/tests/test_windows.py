"""Windows of HDF5 and Zarr files that other programs wrote: names of axes, coordinates, xarray."""

import json
import os
import pickle
import shutil
import tempfile
import unittest

import numpy as np

import penstock

from . import data

setUpModule = data.name_programs

try:
    import h5py
except ImportError:
    h5py = None
try:
    import xarray
except ImportError:
    xarray = None

SHAPE = (30, 9, 12)
T2M = np.random.default_rng(0).normal(size=SHAPE).astype("f4")
COORDS = {"time": np.arange(30) * 6, "lat": np.linspace(90, -90, 9), "lon": np.arange(12) * 30.0}
SIZES = {"time": 4, "lat": 3, "lon": 5}


def write_hdf5(path, **options):
    """Write what netCDF-4 does for t2m(time, lat, lon) and its coordinates."""
    with h5py.File(path, "w") as f:
        for name, values in COORDS.items():
            f[name] = values
            f[name].make_scale(name)
        f["level"] = np.zeros(2, ">f4")
        f["level"].make_scale("This is a netCDF dimension but not a netCDF variable.         2")
        d = f.create_dataset("t2m", data=T2M, **options)
        for axis, name in zip(d.dims, COORDS):
            axis.attach_scale(f[name])


def write_zarr(path, version):
    """Write the same in the plainest Zarr: one chunk an array, and no codec."""
    os.makedirs(path)
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}} if version == 3 else {"zarr_format": 2}
    with open(os.path.join(path, "zarr.json" if version == 3 else ".zgroup"), "w") as f:
        json.dump(group, f)
    for name, values in {"t2m": T2M, **COORDS}.items():
        dims = list(COORDS) if name == "t2m" else [name]
        folder = os.path.join(path, name)
        files = {}
        if version == 3:
            chunk = os.path.join("c", *["0"] * values.ndim)
            files["zarr.json"] = {
                "zarr_format": 3, "node_type": "array", "shape": values.shape, "data_type": values.dtype.name, "fill_value": 0, "attributes": {},
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": values.shape}}, "dimension_names": dims,
                "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            }  # fmt: skip
        else:
            chunk = ".".join(["0"] * values.ndim)
            files[".zarray"] = {
                "zarr_format": 2, "shape": values.shape, "chunks": values.shape, "dtype": values.dtype.str,
                "compressor": None, "filters": None, "fill_value": 0, "order": "C",
            }  # fmt: skip
            files[".zattrs"] = {"_ARRAY_DIMENSIONS": dims}
        os.makedirs(os.path.dirname(os.path.join(folder, chunk)))
        for file, value in files.items():
            with open(os.path.join(folder, file), "w") as f:
                json.dump(value, f)
        values.tofile(os.path.join(folder, chunk))


def _number(dtype, value):
    """Return a number as an element of a type."""
    if dtype != "bfloat16":
        return np.dtype(dtype).type(value)
    return float(value) if isinstance(value, (int, float)) else penstock.bfloat16.to_float32(value).item()


class AxesTest(unittest.TestCase):
    def setUp(self):
        self.base = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.base)

    def files(self):
        """Yield the paths of files with the same values."""
        if h5py is not None:
            for name, options in (("mapped.nc", {}), ("chunked.nc", {"chunks": (3, 4, 5), "compression": "gzip"})):
                write_hdf5(os.path.join(self.base, name), **options)
                yield os.path.join(self.base, name)
        for version in (2, 3):
            path = os.path.join(self.base, f"v{version}.zarr")
            write_zarr(path, version)
            yield path

    def check(self, view, records, batch):
        for i, (time, lat, lon) in enumerate(view.origins(records).tolist()):
            np.testing.assert_array_equal(batch["t2m"][i], T2M[time : time + 4, lat : lat + 3, lon : lon + 5])
            for axis, at in (("time", time), ("lat", lat), ("lon", lon)):
                np.testing.assert_array_equal(batch[axis][i], COORDS[axis][at : at + SIZES[axis]])

    def test_names_of_files(self):
        for path in self.files():
            with self.subTest(path), penstock.open(path) as ds:
                self.assertEqual(list(ds.fields), ["t2m", "time"])  # latitudes and longitudes are not of the records
                self.assertEqual(ds.fields["t2m"].dims, ("time", "lat", "lon"))
                with ds.windows(SIZES, coords=True) as view:
                    self.assertEqual((len(view), view.axes), (27 * 7 * 8, ["time", "lat", "lon"]))
                    records = np.random.default_rng(1).integers(0, len(view), 6)
                    self.check(view, records, view[records])
                    self.check(view, records, pickle.loads(pickle.dumps(view))[records])
                    with penstock.DataLoader(view, 64, shuffle=True, output="numpy") as loader:
                        batch = next(iter(loader))
                        self.check(view, batch.indices, batch)
                with ds.windows({"0": 4, "1": 3, "lon": 5}, outputs={"t2m": {}}) as view:
                    self.assertEqual((len(view), view.axes), (27 * 7 * 8, ["0", "1", "lon"]))
                for sizes in ({"time": 4, "level": 2}, {"level": 2}):
                    with self.assertRaisesRegex(penstock.Error, "level.*time, lat, lon of t2m; time of time"):
                        ds.windows(sizes)
                with self.assertRaisesRegex(penstock.Error, "axis 'level' is not one of sizes with coordinates in the file; there are: .*lat"):
                    ds.windows(SIZES, coords=["level"])

    def test_names_of_datasets(self):
        path = os.path.join(self.base, "own")
        with penstock.Writer(path, [penstock.Field("t2m", "float32", SHAPE[1:], dims=("time", "lat", "lon"))]) as w:
            w.extend({"t2m": x} for x in T2M)
        with penstock.open(path) as ds:
            self.assertEqual(ds.fields["t2m"].dims, ("time", "lat", "lon"))
            view = ds.windows({"lat": 3, "lon": 5})
            self.assertEqual(view.fields["t2m"].dims, ("", "time", "lat", "lon"))
            again = view.windows({"lat": 2})  # of windows
            self.assertEqual(again["t2m"].shape[1:], (len(view), 30, 2, 5))
            with penstock.DataLoader(view, 8, output="numpy") as loader:
                np.testing.assert_array_equal(next(iter(loader))["t2m"][1], T2M[:, :3, 1:6])

    def test_coordinates(self):
        path = next(iter(self.files()))
        outputs = {"past": {"of": "t2m"}, "future": {"of": "t2m", "sizes": {"time": 2}, "lead": {"time": 4}}}
        with penstock.open(path) as ds, ds.windows({"time": 4, "lon": 5}, stride={"time": 3}, pad={"lon": "wrap"}, outputs=outputs) as view:
            for record in (0, len(view) - 1):
                time, lon = view.origins([record])[0]
                past, future = view.coords([record]), view.coords([record], "future")
                np.testing.assert_array_equal(past["time"][0], COORDS["time"][time : time + 4])
                np.testing.assert_array_equal(future["time"][0], COORDS["time"][time + 4 : time + 6])
                np.testing.assert_array_equal(past["lon"][0], np.take(COORDS["lon"], range(lon, lon + 5), mode="wrap"))
            if xarray is None:
                self.skipTest("no xarray")
            whole = xarray.DataArray(T2M, COORDS, list(COORDS))
            one = view.to_xarray(7)
            self.assertEqual(one["past"].dims, ("time", "lat", "lon"))
            want = whole.sel(time=one["time"], lon=one["lon"])
            np.testing.assert_array_equal(one["past"], want)
            np.testing.assert_array_equal(one["future"], whole.sel(time=one["future_time"].values, lon=one["lon"]))
            with penstock.DataLoader(view, 4, shuffle=True, output="numpy") as loader:
                batch = next(iter(loader))
                several = view.to_xarray(batch)
                np.testing.assert_array_equal(several["record"], batch.indices)
            for k in range(4):
                want = whole.sel(time=several["time"][k].values, lon=several["lon"][k].values)
                np.testing.assert_array_equal(several["past"][k], want)

    def test_rechunk(self):
        for path in self.files():
            dest = path + ".new.zarr"
            with self.subTest(path):
                done = penstock.rechunk(path, dest, {"time": 8, "lat": 4, "2": 5}, fields=["t2m"], memory="4MiB", progress=False)
                array = done["arrays"][0]
                self.assertEqual((array["name"], array["chunk"], array["bytes"]), ("t2m", [8, 4, 5], T2M.nbytes))
                with penstock.open(dest) as ds:
                    self.assertEqual(
                        (list(ds.fields), ds.fields["t2m"].dims, ds.fields["t2m"].shape), (["t2m", "time"], ("time", "lat", "lon"), (9, 12))
                    )
                    view = ds.windows(SIZES, coords=True)
                    with penstock.DataLoader(view, 64, shuffle=True, output="numpy") as loader:
                        batch = next(iter(loader))
                        self.check(view, batch.indices, batch)
                with self.assertRaisesRegex(penstock.Error, "exists; use overwrite=True"):
                    penstock.rechunk(path, dest, {"time": 8})
                penstock.rechunk(path, dest, {0: 8}, overwrite=True)

    def test_assemble(self):
        """Windows that are put back are the array; where they overlap, results have their weighted mean."""
        path = os.path.join(self.base, "own")
        with penstock.Writer(path, [penstock.Field("x", "float32", SHAPE[1:], dims=("time", "lat", "lon"))]) as w:
            w.extend({"x": x} for x in T2M)
        rng = np.random.default_rng(3)
        with penstock.open(path) as ds:
            for options in (
                {},
                {"stride": 2},
                {"pad": "wrap"},
                {"pad": "constant", "stride": {"lon": 3}},
                {"pad": "reflect", "dilation": {"lat": 2}},
            ):
                view = ds.windows({"lat": 4, "lon": 5}, **options)
                weights = rng.random((30, 4, 5)) + 0.1
                same, mean = view.assemble(), view.assemble("x", weights=weights)
                want, seen = np.zeros((*SHAPE, 2)), np.zeros(SHAPE)
                results = rng.normal(size=(len(view), 30, 4, 5, 2))
                for first in range(0, len(view), 7):
                    numbers = np.arange(first, min(first + 7, len(view)))
                    same.add(numbers, view[numbers]["x"])
                    mean.add(numbers, results[numbers])
                outputs = view._windows.outputs
                for i in range(len(view)):
                    places = [view._windows.elements(outputs[0], k, view.origins([i]))[0] for k in range(3)]
                    for b, y in enumerate(places[1]):
                        for c, x in enumerate(places[2]):
                            if y >= 0 and x >= 0:
                                want[:, y, x] += results[i, :, b, c] * weights[:, b, c, None]
                                seen[:, y, x] += weights[:, b, c]
                with self.subTest(options):
                    covered = seen > 0
                    np.testing.assert_allclose(same.numpy()[covered], T2M[covered], rtol=1e-6)
                    self.assertEqual(same.missing, int((~covered).sum()))
                    np.testing.assert_allclose(mean.numpy(np.float64)[covered], want[covered] / seen[covered][:, None], rtol=1e-12)
                    self.assertTrue(np.isnan(mean.numpy()[~covered]).all())
            view = ds.windows({"lat": 4, "lon": 5})
            by_axis = view.assemble(weights={"lat": [1, 2, 2, 1]})
            by_axis.add([0], view[[0]]["x"])
            np.testing.assert_allclose(by_axis.numpy()[:, :4, :5], T2M[:, :4, :5], rtol=1e-6)
            for call, text in (
                (lambda: view.assemble("y"), "no field 'y'"),
                (lambda: view.assemble(weights={"time": [1]}), "which windows do not cut"),
                (lambda: view.assemble(weights=np.ones((2, 3))), "and a window has|broadcast"),
                (lambda: view.assemble(weights={"lat": [1, 2, 3, -4]}), "not negative"),
                (lambda: view.assemble().add([0, 1], view[[0]]["x"]), "2 results for windows"),
                (lambda: view.assemble().numpy(), "no results"),
            ):
                with self.assertRaisesRegex((ValueError, KeyError), text):
                    call()
            some = view.assemble()
            some.add([0], view[[0]]["x"])
            for call, text in (
                (lambda: view.assemble(weights=[1, 2]), "and a window has"),
                (lambda: some.add(0, view[0]["x"]), "by one list of numbers, not by 0"),
                (lambda: some.add([0], view[[0]]["x"] * 1j), "complex64; they must be real"),
                (lambda: some.numpy(int), "has no nan for them; give a fill"),
            ):
                with self.assertRaisesRegex((ValueError, TypeError, IndexError), text):
                    call()
            self.assertEqual(view.assemble(fill=-1)._fill, -1)

    def test_assemble_by_the_number_of_an_axis(self):
        path = os.path.join(self.base, "numbered.npy")
        np.save(path, np.arange(4, dtype=np.float32))
        with penstock.open(path) as ds:
            view = ds.windows({0: 3})
            with self.assertRaisesRegex(penstock.Error, 'origin 0 is -1 on axis "0", which has 4 elements; origins must be inside the axis'):
                ds.windows({0: 3}, origins=[[-1]], pad={0: "wrap"})
            results = view.assemble(weights={0: [1, 2, 1]})
            results.add([0, 1], [[0, 0, 0], [3, 3, 3]])
            np.testing.assert_allclose(results.numpy(), [0, 1, 2, 3])

    def test_fill(self):
        """NaN and infinities fill, in the program and from a file too."""
        path = os.path.join(self.base, "own")
        with penstock.Writer(path, [penstock.Field("x", "float32", (4,), dims=("time", "lat"))]) as w:
            w.extend({"x": np.arange(4, dtype="f4") + i} for i in range(5))
        with penstock.open(path) as ds:
            for fill in (np.nan, float("inf"), np.float32("-inf"), -1.5, np.int64(7)):
                view = ds.windows({"time": 3}, pad="constant", fill=fill)
                view.save(os.path.join(self.base, f"{fill}.view.json"))
                with penstock.open(os.path.join(self.base, f"{fill}.view.json")) as again, penstock.DataLoader(again, 5, output="numpy") as loader:
                    want = np.concatenate([ds["x"][4:], np.full((2, 4), fill, "f4")])
                    np.testing.assert_array_equal(view["x"][4], want)
                    np.testing.assert_array_equal(again["x"][4], want)
                    np.testing.assert_array_equal(next(iter(loader))["x"][4], want)

    def test_fill_of_a_type(self):
        """A number that a type does not have is refused, and others are in the program as from a file."""
        path = os.path.join(self.base, "types")
        types = ("bool", "uint8", "int16", "int64", "uint64", "float16", "bfloat16", "float32")
        with penstock.Writer(path, [penstock.Field(t, t) for t in types]) as w:
            w.extend({t: np.zeros((), penstock.Field(t, t).numpy) for t in types} for _ in range(4))
        with penstock.open(path) as ds:
            for dtype, fill in (
                ("uint8", 300),
                ("uint8", -1),
                ("bool", 2),
                ("int16", 0.5),
                ("int64", np.nan),
                ("uint64", 2**64),
                ("float16", 1e6),
                ("bfloat16", 3.4e38),
                ("float32", -1e300),
            ):
                with self.subTest(dtype=dtype, fill=fill):
                    with self.assertRaisesRegex(penstock.Error, f'fill is .*, and "{dtype}" has {dtype}; choose one'):
                        ds.windows({0: 2}, pad="constant", fill=fill, outputs={dtype: {}})
                    file = os.path.join(self.base, "wrong.view.json")
                    by = {"sizes": {"0": 2}, "pad": {"0": "constant"}, "fill": "NaN" if fill != fill else fill, "outputs": [{"name": dtype}]}
                    with open(file, "w") as f:
                        json.dump({"penstock": "view", "version": 1, "window": {"dataset": path}, "by": by}, f)
                    with self.assertRaisesRegex(penstock.Error, "fill is .*; choose one that it can have"):
                        penstock.open(file)
            for dtype, fill in (
                ("bool", 1),
                ("uint8", 255),
                ("int16", -5),
                ("int64", -(2**63)),
                ("uint64", 2**63),
                ("float16", 65504),
                ("bfloat16", 1.5),
                ("bfloat16", np.inf),
                ("float32", 0.1),
            ):
                view = ds.windows({0: 2}, pad="constant", fill=fill, outputs={dtype: {}})
                with self.subTest(dtype=dtype, fill=fill):
                    self.assertEqual(_number(dtype, view[dtype][3][1]), _number(dtype, fill))
                    if fill in (1, 1.5, -(2**63), 2**63):
                        with penstock.DataLoader(view, 4, output="numpy") as loader:
                            self.assertEqual(_number(dtype, next(iter(loader))[dtype][3, 1]), _number(dtype, fill))

    def test_groups_without_a_value(self):
        """A record whose value of a group is missing is named, by Python and by the program; 0 and -0 are one value."""
        path = os.path.join(self.base, "groups")
        stations = np.array([1, 1, 1, np.nan, np.nan, 2, 2, 2])
        with penstock.Writer(
            path,
            [penstock.Field("x", "int64"), penstock.Field("station", "float64"), penstock.Field("zero", "float32"), penstock.Field("b", "bfloat16")],
        ) as w:
            w.extend({"x": i, "station": s, "zero": 0.0 if i % 2 else -0.0, "b": penstock.bfloat16.from_float32(s)} for i, s in enumerate(stations))
        with penstock.open(path) as ds:
            for name in ("station", "b"):
                with self.assertRaisesRegex(penstock.Error, f'record 3 of "{name}" is NaN'):
                    ds.windows({0: 2}, group=name, outputs={"x": {}})
                with self.assertRaisesRegex(penstock.Error, f'record 3 of "{name}" is NaN.*; give it a value, or select the other records first'):
                    ds.windows({0: 2}, outputs={"x": {}}).partition({"a": 0.5, "b": 0.5}, group=name)
                file = os.path.join(self.base, "groups.view.json")
                with open(file, "w") as f:
                    by = {"sizes": {"0": 2}, "group": name, "outputs": [{"name": "x"}]}
                    json.dump({"penstock": "view", "version": 1, "window": {"dataset": path}, "by": by}, f)
                with self.assertRaisesRegex(penstock.Error, f'record 3 of "{name}" is NaN'):
                    penstock.DataLoader(file, output="numpy").close()
            days = np.arange(8).astype("datetime64[D]")
            days[5] = "NaT"
            texts = ["a", "a", None, "a", "a", "a", "a", "a"]
            for values, record in ((stations, 3), (stations.tolist(), 3), (days, 5), (texts, 2), (np.ma.array(np.arange(8), mask=[0] * 7 + [1]), 7)):
                with self.assertRaisesRegex(penstock.Error, f"group: record {record} has the value"):
                    ds.windows({0: 2}, group=values, outputs={"x": {}})
            self.assertEqual(len(ds.windows({0: 2}, group=np.array(["nan"] * 8), outputs={"x": {}})), 7)  # a text like another
            view = ds.windows({0: 2}, group="zero", outputs={"x": {}})
            with penstock.DataLoader(view, 4, output="numpy") as loader:
                self.assertEqual((len(view), sum(len(b["x"]) for b in loader)), (7, 7))
            parts = ds.windows({0: 2}, outputs={"x": {}}).partition({"a": 1}, group="zero")
            self.assertEqual(len(parts["a"]), 7)
            self.assertEqual(len(ds.select(np.isfinite(stations)).windows({0: 2}, group="station", outputs={"x": {}})), 4)

    def test_images(self):
        """A window of image files has several images, of which transforms make rows; other records of variable length are not left out silently."""
        path = os.path.join(self.base, "cameras")
        fields = [penstock.Field("action", "float32", (2,)), penstock.Field("camera", "uint8", ragged=True, content="image")]
        files = [b"P6 %d 5 255\n" % (6 + i) + bytes([i]) * (15 * (6 + i)) for i in range(7)]
        with penstock.Writer(path, [*fields, penstock.Field("task", "uint8", ragged=True, content="utf-8")], keep_encoded=True) as w:
            w.extend({"action": np.full(2, i, "f4"), "camera": file, "task": "pour"} for i, file in enumerate(files))
        with penstock.open(path) as ds:
            with self.assertRaisesRegex(penstock.Error, r'"task" have variable length.*outputs=\{"action": \{\}, "camera": \{\}\}'):
                ds.windows({0: 3})
            with self.assertRaisesRegex(penstock.Error, "there is no image to fill with"):
                ds.windows({0: 3}, pad="constant", outputs={"camera": {}})
            images = ds["camera"]
            chunks = ds.windows({0: 3}, pad="constant", outputs={"action": {}, "camera": {"sizes": {0: 1}}})
            history = ds.windows({0: 3}, pad="reflect", outputs={"camera": {"lead": {0: -2}}})
            history.save(os.path.join(self.base, "history.view.json"))
            for view, steps in ((chunks, [[i] for i in range(7)]), (history, [[abs(k) for k in (i - 2, i - 1, i)] for i in range(7)])):
                self.assertEqual(view.fields["camera"].content, "images")
                np.testing.assert_array_equal(view["camera"].lengths, [sum(4 + len(images[k]) for k in of) for of in steps])
                for records in (view["camera"][:], [view[i]["camera"] for i in range(7)], pickle.loads(pickle.dumps(view))["camera"][list(range(7))]):
                    for record, of in zip(records, steps):
                        np.testing.assert_array_equal(np.concatenate(record), np.concatenate([images[k] for k in of]))
            for view, n in ((chunks, 1), (os.path.join(self.base, "history.view.json"), 3)):
                with penstock.DataLoader(view, 7, output="numpy", transforms=[penstock.transforms.Resize((4, 4))]) as loader:
                    camera = next(iter(loader))["camera"]
                self.assertEqual((camera.lengths.tolist(), camera.values.shape), ([n] * 7, (7 * n, 4, 4, 3)))

    def test_many_origins(self):
        """Origins that are in a file between the processes are those given: in a view, of a view, and in a saved one."""
        x = np.random.default_rng(5).normal(size=(500, 4)).astype(np.float32)
        np.save(os.path.join(self.base, "x.npy"), x)
        for dtype, n in ((np.int64, 40_000), (np.uint16, 70_000), (np.int32, 70_000)):
            origins = np.stack([np.random.default_rng(n).integers(0, k, n) for k in (498, 3)], 1).astype(dtype)
            some = np.random.default_rng(n).permutation(n)[:200]
            want = np.stack([x[a : a + 3, b : b + 2] for a, b in origins[some].tolist()])
            with penstock.open(os.path.join(self.base, "x.npy")) as ds:
                view = ds.windows({0: 3, 1: 2}, origins=origins)
                origins[:] = 0  # the view has its own
                views = [view, pickle.loads(pickle.dumps(view))]
                view.save(os.path.join(self.base, "many.view.json"))
                with penstock.open(os.path.join(self.base, "many.view.json")) as again:
                    self.assertEqual(view.select(range(9)).derive(y="x * 2")[:]["x"].tolist(), again[:9]["x"].tolist())
                    for of in (*views, again):
                        self.assertEqual(len(of), n)
                        np.testing.assert_array_equal(of[some]["x"], want)
                        with penstock.DataLoader(of, 50, sampler=some.tolist(), output="numpy") as loader:
                            np.testing.assert_array_equal(np.concatenate([b["x"] for b in loader]), want)

    def test_parameters(self):
        """Numbers of NumPy are numbers, an array of origins is an array, and what is not whole or not known is refused."""
        path = os.path.join(self.base, "own")
        fields = [penstock.Field("x", "int64", (8,), dims=("time", "lat")), penstock.Field("station", "int64")]
        with penstock.Writer(path, fields) as w:
            w.extend({"x": np.arange(8) + 8 * i, "station": i // 3} for i in range(6))
        sizes = {"time": np.int64(2), "lat": 3}
        with penstock.open(path) as ds:
            for options in ({"stride": np.int64(2)}, {"offset": {"lat": np.uint8(1)}}, {"origins": np.array([[0, 4], [3, 1]])}):
                view = ds.windows(sizes, **options)
                view.save(os.path.join(self.base, f"w{len(view)}.view.json"))
                with (
                    penstock.open(os.path.join(self.base, f"w{len(view)}.view.json")) as again,
                    penstock.DataLoader(view, 4, output="numpy") as loader,
                ):
                    np.testing.assert_array_equal(again.origins(range(len(view))), view.origins(range(len(view))))
                    np.testing.assert_array_equal(np.concatenate([b["x"].copy() for b in loader]), view[:]["x"])
            self.assertEqual(len(ds.windows({"time": 2}, origins=[0, 3], outputs={"x": {}})), 2)
            self.assertEqual(len(ds.windows({"time": 2}, group=np.arange(12).reshape(6, 2) // 6, outputs={"x": {}})), 4)
            for size, options, text in (
                ({"time": 2.7}, {}, "sizes of axis 'time' is 2.7; it must be a whole number"),
                (3, {}, "sizes is 3; it is a dict"),
                ({"time": 2}, {"stride": 2.5}, "stride of axis 'time' is 2.5"),
                ({"time": 2}, {"origins": [[1.5]]}, "origins have shape .* are float64"),
                ({"time": 2}, {"origins": []}, "origins have shape"),
                ({"time": 2}, {"outputs": {"y": "x"}}, "write what it is of: {'of': 'x'}"),
                ({"time": 2}, {"outputs": {"x": {"lead": 2}}}, "outputs: lead is 2; it is a dict"),
                ({"time": 2}, {"dims": {"y": ["time", "lat"]}}, 'dims has the field "y", which there is not'),
                ({"time": 2}, {"offset": 9}, "the first window is 9 after the first possible"),
                ({"time": 4}, {"group": "station"}, "in groups and ranges of at most 3"),
            ):
                with self.assertRaisesRegex((ValueError, TypeError), text):
                    ds.windows(size, **options)
            for options, text in (
                ({"fill": 2}, "no axis has pad='constant'"),
                ({"fill": 2, "pad": "wrap"}, "no axis has pad='constant'"),
                ({"fill": "x", "pad": "constant"}, "fill is 'x'; it must be a number"),
                ({"fill": np.nan, "pad": "constant"}, 'fill is NaN, and "x" has int64'),
                ({"fill": 2.5, "pad": "constant"}, 'fill is 2.5, and "x" has int64'),
                ({"fill": 2**53 + 1, "pad": "constant"}, "fill is 9007199254740993, which float64 rounds to 9007199254740992; choose one"),
                ({"fill": 10**400, "pad": "constant"}, "fill is 10*, which is not a number of float64"),
                ({"fill": 2**63, "pad": "constant"}, 'fill is 9.*e.18, and "x" has int64'),
            ):
                with self.assertRaisesRegex((ValueError, TypeError), text):
                    ds.windows({"time": 2}, **options)
            view = ds.windows(sizes, outputs={"x": {}})
            self.assertEqual(len(view.partition({"a": np.float32(0.5)})["a"]), len(view.partition({"a": 0.5})["a"]))
            for shares, options, text in (
                ({"a": 0.5, "b": 0.5}, {"along": "lat", "group": "station"}, "groups are of the records, and 'lat' is not their axis"),
                ({"a": 0.5}, {"gap": 1.5}, "gap is 1.5; it must be a whole"),
                ({"a": float("nan")}, {}, "a share is nan"),
                ({"a": 0}, {}, "must be above 0"),
                ([0.5, 0.5], {}, "a dict with a share"),
            ):
                with self.assertRaisesRegex((ValueError, TypeError), text):
                    view.partition(shares, **options)
            for options, text in (({"ranges": []}, "no records in ranges"), ({"workers": 0}, "workers is 0")):
                with self.assertRaisesRegex(ValueError, text):
                    ds.statistics("x", **options)

    def test_splits(self):
        """Parts have no element in common, and the windows that the program finds are those of Python."""
        rng = np.random.default_rng(int(os.environ.get("PENSTOCK_TEST_SEED", "0")))
        station = np.repeat(np.array([3, 1, 4, 1, 5, 9, 2, 6]), 5)
        path = os.path.join(self.base, "own")
        fields = [penstock.Field("x", "int64", (8,), dims=("time", "lat")), penstock.Field("station", "int64")]
        with penstock.Writer(path, fields) as w:
            w.extend({"x": np.arange(8) + 8 * i, "station": s} for i, s in enumerate(station))
        outputs = {"past": {"of": "x"}, "future": {"of": "x", "sizes": {"time": 1}, "lead": {"time": 2}}}
        cases = [{}, {"gap": 3}, {"block": 5}, {"block": 7, "gap": 1}, {"group": "station"}, {"along": "lat"}, {"along": "lat", "block": 2}]
        with penstock.open(path) as ds:
            for options in cases:
                sizes = {"time": 2, "lat": 2}
                grouped = "group" in options
                windows = ds.windows(sizes, outputs=outputs, group="station" if grouped else None)
                seed = int(rng.integers(1 << 31))
                with self.subTest(options, seed=seed):
                    drawn = {"seed": seed} if "block" in options or "group" in options else {}
                    parts = windows.partition({"train": 0.5, "val": 0.25, "test": 0.25}, **drawn, **options)
                    seen = []
                    for part in parts.values():
                        seen.append({int(v) for name in outputs for v in np.unique(part[:][name])})
                        with penstock.DataLoader(part, 16, output="numpy") as loader:
                            got = {name: np.concatenate([b[name].copy() for b in loader]) for name in ("past", "future")}
                        for name in got:
                            np.testing.assert_array_equal(got[name], part[:][name])
                        if grouped:
                            at = part.origins(range(len(part)))[:, 0]
                            np.testing.assert_array_equal(station[at], station[at + 2])
                    self.assertFalse(seen[0] & seen[1] or seen[1] & seen[2] or seen[0] & seen[2])
                    self.assertGreater(min(map(len, seen)), 0)
            windows = ds.windows({"time": 2}, outputs={"x": {}})
            parts = windows.partition({"a": [(0, 10)], "b": [(10, 20), (30, 40)]})
            self.assertEqual([len(p) for p in parts.values()], [9, 18])
            for shares, options, text in (
                ({"a": 0.7, "b": 0.7}, {}, "at most 1 in all"),
                ({"a": [(0, 10)], "b": [(9, 20)]}, {}, "would be in two parts"),
                ({"a": 0.5, "b": [(9, 20)]}, {}, "all numbers or all ranges"),
                ({"a": 0.5}, {"along": "lon"}, "no axis 'lon'"),
                ({"a": 0.5}, {"group": "station", "gap": 2}, "not for groups"),
                ({"a": 0.5}, {"group": "x y"}, 'no field "x y"'),
                ({"a": 0.5}, {"seed": 1}, "give block or group, or leave seed out"),
                ({"a": [(0, 10)]}, {"seed": 1}, "give block or group, or leave seed out"),
                ({"a": 0.5}, {"seed": -1, "block": 5}, "seed is -1"),
                ({"a": 0.9, "b": 0.01}, {}, r"'b' has the ranges \[\]: .*no window fits"),
            ):
                with self.assertRaisesRegex((ValueError, TypeError), text):
                    windows.partition(shares, **options)
            with self.assertRaisesRegex(penstock.Error, "ranges already"):
                parts["a"].partition({"c": 1.0})

    def test_npy_replaced(self):
        """Views and states of a .npy file refuse another one in its place, and take a copy of it."""
        path, view_path = os.path.join(self.base, "x.npy"), os.path.join(self.base, "w.view.json")
        for rows in (40, 40_000):  # all of its bytes are looked at, or samples
            values = np.arange(rows * 4, dtype="i8").reshape(rows, 4)
            np.save(path, values)
            with penstock.open(path) as ds:
                ds.windows({0: 8}).save(view_path)
                self.assertRegex(ds.state_id, r"\A[0-9a-f]{32}\Z")
            for source in (path, view_path):
                with penstock.DataLoader(source, 4, shuffle=True, seed=3, output="numpy") as loader:
                    batches = iter(loader)
                    next(batches)
                    state = loader.state_dict()
                    want = next(batches)["x"].copy()
                os.rename(path, path + ".old")
                shutil.copyfile(path + ".old", path)
                with penstock.DataLoader(source, 4, shuffle=True, seed=3, output="numpy") as loader:
                    loader.load_state_dict(state)
                    np.testing.assert_array_equal(next(iter(loader))["x"], want)
                np.save(path, values + 1)
                with self.assertRaisesRegex(penstock.Error, "another dataset|was replaced or changed after the view was made; make the view again"):
                    with penstock.DataLoader(source, 4, shuffle=True, seed=3, output="numpy") as loader:
                        loader.load_state_dict(state)
                        next(iter(loader))
                if source == view_path:
                    with self.assertRaisesRegex(penstock.Error, "x.npy was replaced or changed after the view was made; make the view again"):
                        penstock.open(view_path)
                os.replace(path + ".old", path)

    def test_npy(self):
        """A .npy file is a dataset of one field, in Python and in the program."""
        path = os.path.join(self.base, "a vol-ume.npy")
        for dtype in ("<f4", "|u1", "<i8", "|b1", "<f2"):
            values = np.random.default_rng(0).integers(0, 2, (30, 6)).astype(dtype)
            np.save(path, values)
            with penstock.open(path) as ds:
                self.assertEqual((ds.format, list(ds.fields)), ("npy", ["a vol-ume"]))
                np.testing.assert_array_equal(ds["a vol-ume"][:], values)
                windows = ds.windows({0: 4, 1: 3})
                windows.save(path + ".view.json")
                for source in (windows, path + ".view.json"):
                    with penstock.DataLoader(source, 7, output="numpy") as loader:
                        got = np.concatenate([b["a vol-ume"].copy() for b in loader])
                    want = np.lib.stride_tricks.sliding_window_view(values, (4, 3)).reshape(-1, 4, 3)
                    np.testing.assert_array_equal(got, want)
            os.remove(path)
        for values in np.asfortranarray(np.arange(6.0).reshape(3, 2)), np.arange(3, dtype=">f4"):  # which cannot be mapped
            np.save(path, values)
            with penstock.open(path) as ds:
                np.testing.assert_array_equal(ds["a vol-ume"][:], values)
        for values, text in (
            (np.float32(1), "a single number"),
            (np.ones(3, "c8"), 'elements of type "<c8"'),
            (np.ones((0, 3)), "no elements"),
            (np.ones(3, [("a", "<f4")]), "records with named fields"),
        ):
            np.save(path, values)
            with self.assertRaisesRegex(penstock.Error, text):
                penstock.open(path)
        np.save(path, np.ones((30, 6)))
        with open(path, "rb+") as f:
            f.truncate(1000)
        with self.assertRaisesRegex(penstock.CorruptError, "fewer than 30 records of 48 bytes need"):
            penstock.open(path)
        with open(path, "rb+") as f:
            f.truncate(20)
        with self.assertRaisesRegex(penstock.CorruptError, "header: unexpected EOF"):
            penstock.open(path)


if __name__ == "__main__":
    unittest.main()
