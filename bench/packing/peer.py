"""The h5py side of the comparison.

usage: peer.py FOLDER RECORDS.npy    one measure.Request a line in, one measure.Answer a line out

The way "gzip" writes records [from, to) into FOLDER/h5py.h5, one a chunk, at the level that the set
names; with "shuffle" after the level, shuffled.
"""
import json
import os
import sys
import time

import h5py
import numpy as np


def write(path, a, kind):
    level, _, shuffle = kind.partition(" ")
    with h5py.File(path, "w") as f:
        f.create_dataset("images", data=a, chunks=(1, *a.shape[1:]), compression="gzip", compression_opts=int(level), shuffle=shuffle != "")


def main():
    path = os.path.join(sys.argv[1], "h5py.h5")
    a = np.load(sys.argv[2])
    for line in sys.stdin:
        q = json.loads(line)
        if not q["do"]:
            answer = {"text": f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}"}
        else:
            wall, cpu = time.perf_counter(), time.process_time()
            write(path, a[q["from"]:q["to"]], q["set"])
            answer = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "sum": os.path.getsize(path)}
        print(json.dumps(answer), flush=True)


main()
