"""Makes HDF5 files of 300 images of 70 x 70 and their labels in a folder, one for each way of storing them in chunks."""
import sys
import h5py
import numpy as np

N, SHAPE = 300, (300, 70, 70)
rng = np.random.default_rng(5)
images = rng.integers(0, 200, SHAPE, dtype=np.uint8)
labels = np.arange(N, dtype=np.int64) * 7 - 3


def make(name, libver="earliest", data=images, dtype=None, early=False, written=N, userblock=0, **how):
    with h5py.File(f"{sys.argv[1]}/{name}.h5", "w", libver=libver, userblock_size=userblock) as f:
        dtype = np.dtype(dtype or data.dtype)
        if early:
            space, create = h5py.h5s.create_simple(SHAPE), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            create.set_chunk(how["chunks"])
            create.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            d = h5py.Dataset(h5py.h5d.create(f.id, b"images", h5py.h5t.py_create(dtype), space, create))
        else:
            d = f.create_dataset("images", SHAPE, dtype, **how)
        l = f.create_dataset("labels", (N,), np.int64, chunks=(16,), maxshape=(None,), compression="gzip")
        for i in range(0, written, 50):  # labels lie between images
            d[i:i + 50] = data[i:i + 50]
            l[i:i + 50] = labels[i:i + 50]
            f.flush()


floats = (images.astype(np.float32) - 100) / 7
make("btree1-record", chunks=(1, 70, 70), compression="gzip")
make("btree1-several-shuffle", data=floats, chunks=(8, 70, 70), compression="gzip", shuffle=True)
make("btree1-parts", chunks=(3, 35, 70), compression="gzip", maxshape=(None, 70, 70))
make("btree1-lzf", chunks=(4, 70, 70), compression="lzf")
make("btree1-fletcher32", chunks=(2, 70, 70), fletcher32=True)
make("btree1-plain-parts", chunks=(4, 70, 35))
make("btree1-small", chunks=(1, 10, 70), compression="gzip")
make("btree1-auto", chunks=True, compression="gzip")
make("btree1-big-endian", data=floats, dtype=">f4", chunks=(2, 70, 70), compression="gzip")
make("btree1-missing", chunks=(2, 70, 70), compression="gzip", fillvalue=9, written=250)
make("userblock", chunks=(2, 70, 70), compression="gzip", userblock=1024)
make("contiguous-big-endian", data=floats, dtype=">f4")
make("single", "latest", chunks=SHAPE, compression="gzip")
make("implicit", "latest", chunks=(4, 70, 70), early=True)
make("fixed-array", "latest", chunks=(2, 70, 70), compression="gzip", fletcher32=True)
make("fixed-array-paged", "latest", chunks=(1, 7, 35), compression="gzip")
make("extensible-array", "latest", chunks=(1, 70, 70), compression="gzip", maxshape=(None, 70, 70))
make("btree2", "latest", chunks=(2, 35, 70), compression="gzip", shuffle=True, maxshape=(None, None, 70))
