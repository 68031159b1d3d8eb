"""Another process that reads the batches of a test: receive of process_test.go, in Python."""

import base64
import ctypes
import gc
import json
import os
import sys

import numpy as np

fake = None
if "PENSTOCK_FAKECUDA" in os.environ:
    fake = ctypes.CDLL(os.environ["PENSTOCK_FAKECUDA"], ctypes.RTLD_GLOBAL)  # which libcuda.so.1 then is
else:
    import torch

import penstock.cuda


def read(x: penstock.cuda.DeviceArray) -> bytes:
    """Return the bytes of an array, as a library that knows the interface would find them."""
    i = x.__cuda_array_interface__
    address, read_only = i["data"]
    assert (i["version"], i["strides"], i["stream"], read_only) == (3, None, None, False), i
    if fake is None:
        return torch.as_tensor(x, device="cuda:0").cpu().numpy().tobytes()
    return ctypes.string_at(address, np.dtype(i["typestr"]).itemsize * int(np.prod(i["shape"])))


def refused(imports: penstock.cuda.Imports, given: dict, want: str) -> None:
    try:
        imports.open(given)
    except (penstock.Error, ValueError) as e:
        assert want in str(e), e
    else:
        raise AssertionError(want)


given: dict = {}
with penstock.cuda.Imports(0) as imports:
    for line in sys.stdin:
        given = json.loads(line)
        data = {name: base64.b64encode(read(imports.open(field))).decode() for name, field in given.items()}
        print(json.dumps({"data": data, "error": ""}), flush=True)
    if fake is None:
        sys.exit()
    one = given["images"]
    refused(imports, {**one, "uuid": "another"}, "give Imports the ordinal")
    refused(imports, {**one, "handle": [1, 2]}, "not what Batch.IPC returned")
    refused(imports, {**one, "handle": [0] * 64}, "cuIpcOpenMemHandle_v2: CUDA_ERROR_INVALID_HANDLE (400); has the giving")
    assert "int16" in repr(np.dtype(imports.open({**one, "dtype": "bfloat16"}).__cuda_array_interface__["typestr"]))
    kept = imports.open(one)
refused(imports, one, "closed")
stats = (ctypes.c_long * 13)()
fake.fakecuda_stats(stats)
assert stats[4] == 1, list(stats)  # the memory behind kept
read(kept)
del kept, imports
gc.collect()
fake.fakecuda_stats(stats)
assert stats[0] == stats[4] == stats[9] == 0, list(stats)  # contexts, mappings, faults
