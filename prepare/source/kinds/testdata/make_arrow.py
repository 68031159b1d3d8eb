"""Makes Arrow files, streams, Feather files and datasets of the hub in FOLDER with pyarrow and datasets, and what must come of them.
--small makes only small ones, without datasets."""
import io, json, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pyarrow as pa
import pyarrow.feather as feather
from expect import *
import expect as made

os.chdir(sys.argv[1])
small = "--small" in sys.argv


def put(name, table, codec=None, rows=None, options={}):
    table = table if isinstance(table, pa.Table) else pa.table(table)
    new = pa.ipc.new_stream if name.endswith("stream.arrow") else pa.ipc.new_file
    with pa.OSFile(name, "wb") as f, new(f, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec, **options)) as w:
        w.write_table(table, max_chunksize=rows)


# every type of numbers, at the ends of its range, in files and streams, compressed or not, in one batch or several
numbers = {}
for d in "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64":
    numbers[d] = np.array([np.iinfo(d).min, np.iinfo(d).max, 0, 7, 1], d)
for d in "float16", "float32", "float64":
    numbers[d] = np.array([np.finfo(d).max, -0.5, np.nan, np.inf, 0], d)
numbers["bool"] = np.array([True, False, False, True, True])
table = {k: pa.array(v) for k, v in numbers.items()}
fields = [f"{k} {k}()" for k in numbers]
for form in "file", "stream":
    for codec in None, "lz4", "zstd":
        for rows in None, 2:
            name = f"numbers-{codec or 'plain'}-{rows or 'all'}-{form}.arrow"
            put(name, table, codec, rows)
            expect(name, fields, [[v[i : i + 1] for v in numbers.values()] for i in range(5)])
            name = f"mixed-{codec or 'plain'}-{rows or 'all'}-{form}.arrow"
            put(name, {
                "text": pa.array(["a", "", "zwölf", "x" * 40]), "large": pa.array(["b", "日本", "", "c"], pa.large_string()), "raw": pa.array([b"\xff", b"", b"\x00\x01", b"z"]),
                "fixed": pa.array([b"abc", b"def", b"\x00\x01\xff", b"ghi"], pa.binary(3)), "list": pa.array([[1, 2], [], None, [3]], pa.list_(pa.int32())),
                "vector": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.float32(), 2)), "same": pa.array([[1, 2, 3]] * 4, pa.large_list(pa.int16())),
                "matrix": pa.array([[[1, 2], [3, 4]]] * 4, pa.list_(pa.list_(pa.int8()))), "rows": pa.array([[[1.0, 2.0]] * k for k in (2, 0, 1, 3)], pa.list_(pa.list_(pa.float64()))),
                "texts": pa.array([["a", "b"], [], ["c"], ['"']]), "view": pa.array(["short", "a text that is longer than twelve", "", "v"], pa.string_view()),
                "word": pa.array(["x", "y", "x", "x"]).dictionary_encode(), "flags": pa.array([[True, False]] * 4),
            }, codec, rows)
            doubles = lambda k: np.array([[1.0, 2.0]] * k, np.float64)
            i32 = lambda *v: np.array(v, np.int32)
            expect(name, ["text uint8()* utf-8", "large uint8()* utf-8", "raw uint8()*", "fixed uint8(3,)", "list int32()*", "vector float32(2,)", "same int16(3,)",
                          "matrix int8(2, 2)", "rows float64(2,)*", "texts uint8()* utf-8", "view uint8()* utf-8", "word uint8()* utf-8", "flags bool(2,)"],
                   [[t, l, r, f, n, floats(*v), np.array([1, 2, 3], np.int16), np.array([1, 2, 3, 4], np.int8), doubles(k), s, w, d, np.array([True, False])] for t, l, r, f, n, v, k, s, w, d in [
                       ("a", "b", b"\xff", b"abc", i32(1, 2), (1, 2), 2, '["a","b"]', "short", "x"), ("", "日本", b"", b"def", i32(), (3, 4), 0, "[]", "a text that is longer than twelve", "y"),
                       ("zwölf", "", b"\x00\x01", b"\x00\x01\xff", i32(), (5, 6), 1, '["c"]', "", "x"), ("x" * 40, "c", b"z", b"ghi", i32(3), (7, 8), 3, '["\\""]', "v", "x")]])

# times, decimals
import datetime, decimal
days = [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]
put("times.arrow", {"d32": pa.array(days, pa.date32()), "d64": pa.array(days, pa.date64()), "t32": pa.array([1, 2, 3], pa.time32("s")), "t64": pa.array([1, 2, 3], pa.time64("ns")),
                    "ts": pa.array([1, -2, 3], pa.timestamp("us")), "tz": pa.array([1, -2, 3], pa.timestamp("ms", "Europe/Berlin")), "du": pa.array([1, -2, 3], pa.duration("ns"))})
epoch = [1, -1, 19782]
expect("times.arrow", ["d32 int32()", "d64 int64()", "t32 int32()", "t64 int64()", "ts int64()", "tz int64()", "du int64()"],
       [[np.int32(e), ints(e * 86400000), np.int32(i), ints(i), ints(s), ints(s), ints(s)] for e, i, s in zip(epoch, (1, 2, 3), (1, -2, 3))])
money = [decimal.Decimal(x) for x in ("1.10", "-99999999.99", "0.01")]
put("decimals.arrow", {"d128": pa.array(money, pa.decimal128(12, 2)), "d256": pa.array(money, pa.decimal256(50, 2)), "d64": pa.array(money, pa.decimal64(12, 2))})
expect("decimals.arrow", [f"{k} float64()" for k in ("d128", "d256", "d64")], [[np.float64(m)] * 3 for m in money])

# nulls, structs, slices, dictionaries
put("nulls.arrow", {"x": pa.array([1, None, 3]), "t": pa.array(["a", "b", None]), "l": pa.array([[1], None, []])})
expect("nulls.arrow", ["x int64()", "t uint8()* utf-8", "l int64()*"], [[ints(1), "a", ints(1)], "x: it is missing", [ints(3), "", b""]])
put("null-in-list.arrow", {"l": pa.array([[1, 2], [1, None]])})
expect("null-in-list.arrow", ["l int64(2,)"], [[ints(1, 2)], "l: a null in a list"])
put("null-in-texts.arrow", {"t": pa.array([["a", ""], ["b", None], None])})
expect("null-in-texts.arrow", ["t uint8()* utf-8"], [['["a",""]'], "t: a null in a list", [""]])
put("only-nulls.arrow", {"n": pa.nulls(7)})
refuse("only-nulls.arrow", "column n: holds only nulls")
put("structs.arrow", {"s": pa.array([{"a": 1, "b": {"c": [1.5, 2.5]}}, {"a": 2, "b": {"c": [3.5, 4.5]}}, {"a": 3, "b": None}])})
expect("structs.arrow", ["s.a int64()", "s.b.c float64(2,)"], [[ints(1), np.array([1.5, 2.5])], [ints(2), np.array([3.5, 4.5])], "s.b.c: it is missing"])
big = pa.table({"x": pa.array(range(100)), "t": pa.array([f"t{i}" for i in range(100)]), "b": pa.array([i % 3 == 0 for i in range(100)])})
put("slice.arrow", big.slice(13, 50))
expect("slice.arrow", ["x int64()", "t uint8()* utf-8", "b bool()"], [[ints(i), f"t{i}", bytes([i % 3 == 0])] for i in range(13, 63)])
for form in "file", "stream":
    name = f"deltas-{form}.arrow" if form == "file" else "deltas-stream.arrow"
    batches = [pa.DictionaryArray.from_arrays(pa.array([0, len(w) - 1], pa.int8()), pa.array(w)) for w in (["a"], ["a", "b"], ["a", "b", "c"])]
    schema = pa.schema([("w", batches[0].type)])
    new = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
    with pa.OSFile(name, "wb") as f, new(f, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as w:
        for b in batches:
            w.write_batch(pa.record_batch([b], schema=schema))
    expect(name, ["w uint8()* utf-8"], [["a"], ["a"], ["a"], ["b"], ["a"], ["c"]])
batches = [pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(w)) for w in (["a", "b"], ["c", "d"])]
with pa.OSFile("replaced-stream.arrow", "wb") as f, pa.ipc.new_stream(f, pa.schema([("w", batches[0].type)])) as w:
    for b in batches:
        w.write_batch(pa.record_batch([b], names=["w"]))
expect("replaced-stream.arrow", ["w uint8()* utf-8"], [["a"], ["b"], ["c"], ["d"]])
put("labels.arrow", {"label": pa.array(["dog", "cat", "dog"]).dictionary_encode(), "x": pa.array([1, 2, 3])})
expect("labels.arrow", ["labels int64()", "x int64()"], [[ints(1), ints(1)], [ints(0), ints(2)], [ints(1), ints(3)]], classes=["cat", "dog"])
for version in "V4", "V5":
    put(f"{version}.arrow", {"x": pa.array([1, 2]), "t": pa.array(["a", "b"])}, options={"metadata_version": getattr(pa.ipc.MetadataVersion, version)})
    expect(f"{version}.arrow", ["x int64()", "t uint8()* utf-8"], [[ints(1), "a"], [ints(2), "b"]])
put("legacy-stream.arrow", {"x": pa.array([1, 2])}, options={"use_legacy_format": True, "metadata_version": pa.ipc.MetadataVersion.V4})
expect("legacy-stream.arrow", ["x int64()"], [[ints(1)], [ints(2)]])
for codec in "uncompressed", "lz4", "zstd":
    feather.write_feather(pa.table({"x": pa.array([1.5, 2.5]), "t": pa.array(["a", "b"])}), f"{codec}.feather", compression=codec)
    expect(f"{codec}.feather", ["x float64()", "t uint8()* utf-8"], [[np.float64(1.5), "a"], [np.float64(2.5), "b"]])
feather.write_feather(pa.table({"x": pa.array([1.5])}), "one.feather", version=1)
refuse("one.feather", "is a Feather file of version 1; rewrite it")

# selections, shapes, what cannot become a field
put("selected.arrow", {"x": pa.array([1, 2]), "m": pa.array([[1, 2, 3, 4]] * 2), "u": pa.array([{"k": 1}, None], pa.map_(pa.string(), pa.int64())), "n": pa.nulls(2)})
expect("selected.arrow", ["shape int64(2, 2)", "x int64()"], [[ints(1, 2, 3, 4), ints(i)] for i in (1, 2)], flag="m=shape:int64[2,2],x")
put("map.arrow", {"x": pa.array([1]), "u": pa.array([{"k": 1}], pa.map_(pa.string(), pa.int64())), "n": pa.nulls(1), "ls": pa.array([[{"a": 1}]])})
refuse("map.arrow", "leave them out: --fields x")
put("no-column.arrow", {"alpha": pa.array([1])})
refuse("no-column.arrow", 'there is no column "alpa"; did you mean "alpha"?', flag="alpa")
put("union.arrow", {"u": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]), "x": pa.array([1, 2])})
expect("union.arrow", ["x int64()"], [[ints(1)], [ints(2)]], flag="x")
put("dense.arrow", {"u": pa.UnionArray.from_dense(pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]), "x": pa.array([1, 2])})
expect("dense.arrow", ["x int64()"], [[ints(1)], [ints(2)]], flag="x")
put("runs.arrow", {"r": pa.RunEndEncodedArray.from_arrays([2], pa.array([5])), "x": pa.array([1, 2])})
expect("runs.arrow", ["x int64()"], [[ints(1)], [ints(2)]], flag="x")
put("empty.arrow", pa.table({"x": pa.array([], pa.int64())}))
refuse("empty.arrow", "holds no rows")
with open("cut.arrow", "wb") as f:
    f.write(open("slice.arrow", "rb").read()[:-20])
refuse("cut.arrow", "is cut short, or was not written to its end: an Arrow file ends with ARROW1")
with open("cut-stream.arrow", "wb") as f:
    f.write(open("numbers-plain-2-stream.arrow", "rb").read()[:-60])
refuse("cut-stream.arrow", "the file is cut short")

# images as the hub stores them, without its library
png = lambda i: b"\x89PNG\r\n\x1a\n" + bytes([i]) * 40
image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
hub = pa.table({"image": pa.array([{"bytes": png(i), "path": None} for i in range(4)], image), "label": pa.array([0, 1, 1, 0])}).replace_schema_metadata(
    {"huggingface": json.dumps({"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["ant", "bee"], "_type": "ClassLabel"}}}})})
for rows in None, 1:
    put(f"hub-{rows or 'all'}-stream.arrow", hub, rows=rows)
    expect(f"hub-{rows or 'all'}-stream.arrow", ["images uint8()* image", "labels int64()"], [[png(i), ints(k)] for i, k in enumerate([0, 1, 1, 0])], classes=["ant", "bee"])

if not small:
    import datasets
    from datasets import Array2D, ClassLabel, Dataset, DatasetDict, Features, Image, Sequence, Value
    from PIL import Image as Pillow
    pictures = [Pillow.fromarray(np.full((4, 5, 3), 9 * i, np.uint8)) for i in range(6)]
    features = Features({"image": Image(), "label": ClassLabel(names=["ant", "bee", "cat"]), "grid": Array2D((2, 3), "float32"), "tokens": Sequence(Value("int32")), "text": Value("string"),
                         "box": Sequence(Value("float32"), length=4), "objects": Sequence({"id": Value("int64"), "name": Value("string")})})
    data = {"image": pictures, "label": [0, 1, 2, 0, 1, 2], "grid": [[[i, 1, 2], [3, 4, 5]] for i in range(6)], "tokens": [list(range(i)) for i in range(6)], "text": [f"text {i}" for i in range(6)],
            "box": [[i, 1, 2, 3] for i in range(6)], "objects": [{"id": list(range(i)), "name": [str(k) for k in range(i)]} for i in range(6)]}
    ds = Dataset.from_dict(data, features=features)
    want = ["images uint8()* image", "labels int64()", "grid float32(2, 3)", "tokens int32()*", "text uint8()* utf-8", "box float32(4,)", "objects.id int64()*", "objects.name uint8()* utf-8"]
    raw = ds.with_format("arrow")[:]["image"].to_pylist()

    def row(i):
        return [raw[i]["bytes"], ints(data["label"][i]), floats(i, 1, 2, 3, 4, 5), np.arange(i, dtype=np.int32), f"text {i}", floats(i, 1, 2, 3), np.arange(i), json.dumps([str(k) for k in range(i)], separators=(",", ":"))]

    for shards in 1, 3:
        ds.save_to_disk(f"saved{shards}", num_shards=shards)
        expect(f"saved{shards}", want, [row(i) for i in range(6)], classes=["ant", "bee", "cat"])
    ds.select([4, 1]).save_to_disk("some")
    expect("some", want, [row(i) for i in (4, 1)])
    with open("saved3/cache-0123.arrow", "wb") as f:  # as map leaves beside it
        f.write(b"not part of the dataset")
    DatasetDict({"test": ds.select([0]), "train": ds.select([1, 2, 3])}).save_to_disk("dict")
    expect("dict", want, [row(i) for i in (1, 2, 3, 0)])
print(made.count)
