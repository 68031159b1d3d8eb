"""Makes FOLDER/NAME.parquet (or a folder NAME of such files) with pyarrow, and beside each
NAME.expected.npz, what must come of it."""
import io, json, os, sys
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

os.chdir(sys.argv[1])
rng = np.random.default_rng(1)


def expect(name, **fields):
    np.savez(name + ".expected.npz", **{k.replace("__", "."): v for k, v in fields.items()})


def put(name, columns, want, **kw):
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), name + ".parquet", **kw)
    expect(name, **want)


lengths = [0, 1, 2, 3]
boxes = [[[float(i + k), 1.0, 2.0, 3.0] for k in range(n)] for i, n in enumerate(lengths)]
offsets = np.cumsum([0] + lengths)
put("lists", {
    "label": pa.array([0, 1, 2, 3], pa.int64()),
    "score": pa.array([0.5, -1, 2, 3], pa.float32()),
    "boxes": pa.array(boxes, pa.list_(pa.list_(pa.float32()))),
    "ids": pa.array([list(range(n)) for n in lengths], pa.list_(pa.int32())),
    "large": pa.array([list(range(n)) for n in lengths], pa.large_list(pa.int8())),
    "missing": pa.array([None, [], [1], None], pa.list_(pa.int64())),
}, dict(
    label=np.arange(4), score=np.array([0.5, -1, 2, 3], np.float32),
    boxes__values=np.array([b for r in boxes for b in r], np.float32), boxes__offsets=offsets,
    ids__values=np.concatenate([np.arange(n) for n in lengths]).astype(np.int32), ids__offsets=offsets,
    large__values=np.concatenate([np.arange(n) for n in lengths]).astype(np.int8), large__offsets=offsets,
    missing__values=np.array([1]), missing__offsets=np.array([0, 0, 0, 1, 1]),
), row_group_size=2)

vectors, matrices = rng.random((1000, 3)).astype(np.float32), rng.integers(0, 99, (1000, 2, 3))
put("fixed", {
    "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 3),
    "plain": pa.array(vectors.tolist(), pa.list_(pa.float32())),
    "matrix": pa.array(matrices.tolist(), pa.list_(pa.list_(pa.int64()))),
    "bytes": pa.array([bytes([i % 256, 1, 2]) for i in range(1000)], pa.binary(3)),
}, dict(
    vector=vectors, plain=vectors, matrix=matrices,
    bytes=np.array([[i % 256, 1, 2] for i in range(1000)], np.uint8),
), row_group_size=300, data_page_size=1000)

numbers = {}
for dtype in "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64":
    info = np.iinfo(dtype)
    numbers[dtype] = np.array([info.min, info.max, 0, 7], dtype)
for dtype in "float16", "float32", "float64":
    numbers[dtype] = np.array([np.finfo(dtype).max, -0.5, np.nan, np.inf], dtype)
numbers["bool"] = np.array([True, False, False, True])
for name, kw in {
    "numbers": {}, "version1": {"version": "1.0"}, "pages2": {"data_page_version": "2.0"}, "checksums": {"write_page_checksum": True},
    "plain": {"use_dictionary": False},
}.items():
    known = {k: v for k, v in numbers.items() if (name, k) not in {("version1", "uint32"), ("pages2", "bool")}}  # which that version has not, or is refused
    put(name, {k: pa.array(v) for k, v in known.items()}, known, **kw)
put("split", {"x": pa.array(numbers["float32"])}, {"x": numbers["float32"]}, use_byte_stream_split=["x"], use_dictionary=False)
put("delta", {"x": pa.array(numbers["int64"])}, {"x": numbers["int64"]}, column_encoding={"x": "DELTA_BINARY_PACKED"}, use_dictionary=False)
times = np.array([1, -1, 19782])
put("times", {
    "day": pa.array(times, pa.int32()).cast(pa.date32()), "second": pa.array(times * 1000, pa.timestamp("ms", "UTC")), "micro": pa.array(times, pa.timestamp("us")),
    "nano": pa.array(times, pa.timestamp("ns")), "clock": pa.array([1, 2, 3], pa.time32("ms")), "long": pa.array([1, 2, 3], pa.time64("us")),
}, dict(day=times.astype(np.int32), second=times * 1000, micro=times, nano=times, clock=np.array([1, 2, 3], np.int32), long=np.array([1, 2, 3])))
big = np.arange(200_000)
put("large-group", {"x": pa.array(big)}, {"x": big}, row_group_size=len(big))


def png(a):
    b = io.BytesIO()
    Image.fromarray(a).save(b, "PNG")
    return b.getvalue()


pixels = rng.integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
hub = pa.table({
    "image": pa.array([{"bytes": png(p), "path": f"{i}.png"} for i, p in enumerate(pixels)], image),
    "label": pa.array([0, 2, 1, 0, 1, 2], pa.int64()),
}).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {
    "image": {"_type": "Image"}, "label": {"names": ["ant", "bee", "cat"], "_type": "ClassLabel"},
}}})})
images = {"images": pixels.transpose(0, 3, 1, 2), "labels": np.array([0, 2, 1, 0, 1, 2])}
for codec in "none", "snappy", "gzip", "zstd", "brotli":
    put("hub-" + codec, hub, images, compression=codec)
os.mkdir("hub-files")
for i in range(3):
    pq.write_table(hub.slice(2 * i, 2), f"hub-files/train-{i:05}-of-00003.parquet")
expect("hub-files", **images)

words = ["bee", "ant", "bee", "cat"]
text = "".join(words).encode()
put("words", {
    "label": pa.array(words).dictionary_encode(),
    "name": pa.array(words, pa.large_string()).dictionary_encode(),
}, dict(
    labels=np.array([1, 0, 1, 2]), name__values=np.frombuffer(text, np.uint8), name__offsets=np.cumsum([0] + [len(w) for w in words]),
))
