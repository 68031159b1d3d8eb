"""Writes the folder units, whose sources the tests corrupt: records in groups, cells, arrays, folders of files.

usage: make_units.py (in this folder; it needs h5py, pyarrow, safetensors and zarr)
"""
import io
import json
import os
import shutil

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
import zarr
from safetensors.numpy import save_file

shutil.rmtree("units", ignore_errors=True)
os.mkdir("units")
os.chdir("units")


def jpeg(seed):
    b = io.BytesIO()
    Image.fromarray(np.full((6, 5, 3), seed, "u1")).save(b, "JPEG")
    return np.frombuffer(b.getvalue(), "u1")


with h5py.File("demos.h5", "w") as f:  # as robomimic writes it
    for i, n in enumerate((3, 5, 4)):
        g = f.create_group(f"data/demo_{i}")
        g.attrs["n"], g.attrs["task"] = n, f"task {i}"
        g["actions"] = np.arange(2.0 * n).reshape(n, 2)
        g.create_dataset("obs/x", data=np.arange(n, dtype="f4"), chunks=(2,), compression="gzip")
    f["mask/train"] = np.array([b"demo_0", b"demo_2"])
with h5py.File("samples.h5", "w") as f:
    for i in range(3):
        f[f"s{i}/jpeg"], f[f"s{i}/label"], f[f"s{i}/text"] = jpeg(i), i, f"é{i}"
        f[f"s{i}/points"] = np.zeros((i + 1, 3), "f4")
with h5py.File("dense.h5", "w", libver="v110", track_order=True) as f:
    for i in range(20):  # groups with an index
        f.create_dataset(f"all/r{i}/x", data=np.arange(i + 2, dtype=">i2"), chunks=(3,), maxshape=(None,))
        f[f"all/r{i}/y"] = np.arange(i + 2, dtype="u1")


def kind(item, text, **attrs):
    item.attrs["encoding-type"], item.attrs["encoding-version"] = text, "0.2.0"
    for name, value in attrs.items():
        item.attrs[name] = value
    return item


N = 8
ends = np.concatenate([[0], np.cumsum(np.arange(N) % 3)]).astype("i4")


def matrix(parent, name, **options):
    g = kind(parent.create_group(name), "csr_matrix", shape=np.array([N, 5]))
    g.create_dataset("data", data=np.arange(1, ends[-1] + 1, dtype="f4"), **options)
    g.create_dataset("indices", data=np.arange(ends[-1], dtype="i4") % 5, **options)
    g["indptr"] = ends


with h5py.File("cells.h5ad", "w") as f:
    kind(f, "anndata")
    matrix(f, "X", chunks=(3,), compression="gzip")
    matrix(f.create_group("layers"), "counts")
    obs, var = (kind(f.create_group(name), "dataframe", _index="_index") for name in ("obs", "var"))
    obs["_index"], var["_index"] = [f"cell{i}" for i in range(N)], [f"g{i}" for i in range(5)]
    g = kind(obs.create_group("type"), "categorical", ordered=False)
    g["codes"], g["categories"] = (np.arange(N) % 3).astype("i1"), ["B", "T", "NK"]
    g = kind(obs.create_group("n"), "nullable-integer")
    g["values"], g["mask"] = np.arange(N), np.zeros(N, bool)
    obs["share"] = np.arange(N) / 7
    f["obsm/pca"] = np.zeros((N, 2), "f4")
with h5py.File("tenx.h5", "w") as f:
    g = f.create_group("matrix")
    g["data"], g["indices"], g["indptr"] = np.arange(1, ends[-1] + 1), np.arange(ends[-1]) % 5, ends.astype("i8")
    g["barcodes"], g["shape"] = np.array([b"cell%d" % i for i in range(N)]), np.array([5, N], "i4")
    g["features/name"] = np.array([b"g%d" % i for i in range(5)])

turns = [{"id": i, "meta": {"source": "a"}, "conversations": [{"from": "human", "value": "x" * i}]} for i in range(9)]
with open("turns.json", "w") as f:
    json.dump(turns, f, indent=2)
with open("flat.json", "w") as f:
    json.dump(turns, f)

for name in "npz", "npy", "safetensors", "h5", "hive", "hive-csv", "lerobot":
    os.mkdir(name)
for i in range(3):
    arrays = {"x": np.arange(i + 2.0), "y": np.zeros((i + 2, 2), "i2")}
    (np.savez_compressed if i == 1 else np.savez)(f"npz/e{i}.npz", **arrays)
    np.save(f"npy/e{i}.npy", arrays["x"])
    save_file(arrays, f"safetensors/e{i}.safetensors")
    with h5py.File(f"h5/e{i}.h5", "w") as f:
        for array, x in arrays.items():
            f[array] = x
for i, key in enumerate("ab"):
    table = pa.table({"x": [1.5, 2.5], "text": [key, "é"]})
    os.makedirs(f"hive/kind={key}/year=202{i}")
    pq.write_table(table, f"hive/kind={key}/year=202{i}/0.parquet", compression="none")
    os.makedirs(f"hive-csv/kind={key}")
    with open(f"hive-csv/kind={key}/0.csv", "w") as f:
        f.write("x,text\n1.5,a\n2.5,b\n")
os.makedirs("lerobot/meta")
os.makedirs("lerobot/data/chunk-000")
features = {"action": {"dtype": "float32"}, "observation.image": {"dtype": "video"}}
with open("lerobot/meta/info.json", "w") as f:
    json.dump({"codebase_version": "v2.1", "video_path": "videos/{video_key}/{episode_index}.mp4", "features": features}, f)
for i in range(2):
    action = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype="f4")), 2)
    columns = {"action": action, "timestamp": pa.array([0, 0.1, 0.2], "f4"), "episode_index": pa.array([i] * 3)}
    pq.write_table(pa.table(columns), f"lerobot/data/chunk-000/episode_{i:06d}.parquet")

g = zarr.open_group("groups.zarr", mode="w")
for i in range(2):
    d = g.create_group(f"data/d{i}", attributes={"n": i})
    d.create_array("x", data=np.arange(i + 3.0), chunks=(2,))
    d.create_array("label", data=np.array(i))

# Shapes without bounds: each is a few kilobytes that promise petabytes.
os.mkdir("absurd")
for name, member in ("rows", (1 << 50,)), ("overflow", (1 << 62,)), ("wide", (4, 1 << 50)), ("none", (0,)):
    with h5py.File(f"absurd/{name}.h5", "w") as f:
        for i in range(3):
            f.create_dataset(f"e{i}/x", shape=member, dtype="f8", chunks=tuple(min(n or 1, 1024) for n in member), maxshape=(None,) * len(member))
with h5py.File("absurd/lengths.h5", "w") as f:
    for i in range(3):
        f.create_dataset(f"e{i}/x", (1 << 40 + i,), "f8", chunks=(1024,))
with h5py.File("absurd/circle.h5", "w") as f:
    for i in range(3):
        f[f"e{i}/x"] = np.arange(4.0)
        f[f"e{i}/up"], f[f"e{i}/soft"] = f["/"], h5py.SoftLink("/")
        f[f"e{i}/none"], f[f"e{i}/self"] = h5py.SoftLink("/nowhere"), h5py.SoftLink(f"/e{i}/self")
with h5py.File("absurd/leaves.h5", "w") as f:
    for i in range(3):
        f[f"e{i}/x"] = np.arange(4.0)
        f[f"e{i}/y"] = h5py.ExternalLink("../../demos.h5", "/data/demo_0/actions")
with h5py.File("absurd/external.h5", "w") as f:
    for i in range(3):
        f.create_dataset(f"e{i}/x", (4,), "f8", external=[("../../../../../../etc/passwd", 0, 32)])
for what in "indptr", "codes", "mask", "index", "categories", "names":
    shutil.copy("cells.h5ad", f"absurd/{what}.h5ad")
    with h5py.File(f"absurd/{what}.h5ad", "a") as f:
        path = {"indptr": "X/indptr", "codes": "obs/type/codes", "mask": "obs/n/mask", "index": "obs/_index", "categories": "obs/type/categories", "names": "var/_index"}[what]
        dtype = f[path].dtype if what not in ("index", "categories", "names") else "S4"
        del f[path]
        f.create_dataset(path, (1 << 48,), dtype, chunks=(1024,))
        if what == "mask":
            del f["obs/n/values"]
            f.create_dataset("obs/n/values", (1 << 48,), "i8", chunks=(1024,))
shutil.copy("tenx.h5", "absurd/shape.h5")
with h5py.File("absurd/shape.h5", "a") as f:
    del f["matrix/shape"]
    f.create_dataset("matrix/shape", (1 << 48,), "i8", chunks=(1024,))
shutil.copy("tenx.h5", "absurd/barcodes.h5")
with h5py.File("absurd/barcodes.h5", "a") as f:
    del f["matrix/barcodes"]
    f.create_dataset("matrix/barcodes", (1 << 48,), "S4", chunks=(1024,))
