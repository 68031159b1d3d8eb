"""Makes FOLDER/parquet.parquet with pyarrow, and what must come of it."""
import sys
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

lengths = [0, 1, 2, 3]
boxes = [[[float(i + k), 1.0, 2.0, 3.0] for k in range(n)] for i, n in enumerate(lengths)]
table = pa.table({
    "label": pa.array([0, 1, 2, 3], pa.int64()),
    "score": pa.array([0.5, -1, 2, 3], pa.float32()),
    "boxes": pa.array(boxes, pa.list_(pa.list_(pa.float32()))),
    "ids": pa.array([list(range(n)) for n in lengths], pa.list_(pa.int32())),
})
pq.write_table(table, sys.argv[1] + "/parquet.parquet", row_group_size=2)
np.savez(sys.argv[1] + "/parquet.expected.npz", **{
    "label": np.arange(4), "score": np.array([0.5, -1, 2, 3], np.float32),
    "boxes.values": np.array([b for r in boxes for b in r], np.float32), "boxes.offsets": np.cumsum([0] + lengths),
    "ids.values": np.concatenate([np.arange(n) for n in lengths]).astype(np.int32), "ids.offsets": np.cumsum([0] + lengths),
})
