"""Compares datasets with what is expected of them: check_datasets.py DATASET EXPECTED.npz ..."""
import json, os, sys
import numpy as np
import h5py


def read(dataset):
    if os.path.isdir(dataset):
        files = json.load(open(dataset + "/manifest.json"))["shards"][0]["files"]
        parts = {part: part + "-00000.npy" for part in (".values", ".offsets")}
        names = {f["field"].replace("/", ".") + next((p for p, end in parts.items() if f["name"].endswith(end)), ""): f["name"] for f in files if not f["name"].endswith(".crc.npy")}
        return {n: np.load(f"{dataset}/{file}", mmap_mode="r") for n, file in names.items()}
    found = {}
    with h5py.File(dataset, "r") as f:
        def visit(name, item):
            if isinstance(item, h5py.Dataset) and not name.startswith("penstock/"):
                found[name.replace("/", ".")] = item[...]
        f.visititems(visit)
    return found


for dataset, path in zip(sys.argv[1::2], sys.argv[2::2]):
    got, want = read(dataset), np.load(path)
    got = {name: values for name, values in got.items() if not name.startswith("source_name.")}
    assert sorted(got) == sorted(want.files), f"{dataset}: fields {sorted(got)}, want {sorted(want.files)}"
    for name in want.files:
        a, b = got[name], want[name]
        assert a.shape == b.shape and a.dtype.newbyteorder("=") == b.dtype or b.size == 0, f"{dataset}: {name} is {a.dtype} {a.shape}, want {b.dtype} {b.shape}"
        assert np.array_equal(a, b, equal_nan=b.dtype.kind == "f"), f"{dataset}: {name} differs"
    print(dataset, "ok")
