"""Prints what h5py sees in the file named by the argument, as JSON."""

import hashlib
import json
import sys

import h5py
import numpy as np


def plain(value):
    """Values of attributes as JSON has them."""
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.decode("utf-8") if isinstance(value, bytes) else value


def attributes(obj):
    return {name: plain(value) for name, value in obj.attrs.items()}


found = {}


def visit(name, obj):
    if not isinstance(obj, h5py.Dataset):
        return
    data = np.asarray(obj[()])
    found[name] = {
        "dtype": str(obj.dtype),
        "shape": list(obj.shape),
        "offset": obj.id.get_offset(),
        "chunked": obj.chunks is not None,
        "sha256": hashlib.sha256(data.tobytes()).hexdigest(),
        "attrs": attributes(obj),
    }


with h5py.File(sys.argv[1], "r") as f:
    f.visititems(visit)
    json.dump({"root": sorted(f), "attrs": attributes(f), "datasets": found}, sys.stdout)
