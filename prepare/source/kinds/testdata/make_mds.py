"""Makes datasets of MosaicML Streaming in FOLDER with its library, and what must come of them. --small makes only small ones."""
import io, json, os, shutil, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from decimal import Decimal
from PIL import Image
from streaming.base.compression import decompress
from streaming.base.format.mds.writer import MDSWriter
from expect import *
import expect as made

os.chdir(sys.argv[1])


def put(name, columns, samples, **kw):
    shutil.rmtree(name, ignore_errors=True)
    with MDSWriter(out=name, columns=columns, **kw) as w:
        for s in samples:
            w.write(s)


# every scalar, at the ends of its range
scalars = {}
for d in "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64":
    scalars[d] = [np.iinfo(d).min, np.iinfo(d).max, 7]
for d in "float16", "float32", "float64":
    scalars[d] = [float(np.finfo(d).max), -0.5, float("inf")]
for d, values in scalars.items():
    put(d, {"x": d}, [{"x": np.dtype(d).type(v)} for v in values])
    expect(d, [f"x {d}()"], [[np.array([v], d)] for v in values])
put("int", {"x": "int"}, [{"x": v} for v in (0, -1, 2**63 - 1)])
expect("int", ["x int64()"], [[ints(v)] for v in (0, -1, 2**63 - 1)])
put("text-numbers", {"i": "str_int", "f": "str_float", "d": "str_decimal"}, [{"i": i, "f": f, "d": Decimal(d)} for i, f, d in ((5, 0.1, "1.10"), (-5, 1e300, "-7"))])
expect("text-numbers", ["d float64()", "f float64()", "i int64()"], [[np.float64(d), np.float64(f), ints(i)] for i, f, d in ((5, 0.1, 1.1), (-5, 1e300, -7))])
put("str-large", {"i": "str_int"}, [{"i": 1}, {"i": 10**30}])
expect("str-large", ["i int64()"], [[ints(1)], 'i: strconv.ParseInt: parsing "1000000000000000000000000000000": value out of range'])

# texts, bytes, JSON
put("texts", {"s": "str", "j": "json"}, [{"s": s, "j": {"k": s}} for s in ("a", "", "zwölf")])
expect("texts", ["j uint8()* utf-8", "s uint8()* utf-8"], [[json.dumps({"k": s}), s] for s in ("a", "", "zwölf")])
put("bytes", {"b": "bytes"}, [{"b": b} for b in (b"\xff", b"", b"\x00\x01")])
expect("bytes", ["b uint8()*"], [[b"\xff"], [b""], [b"\x00\x01"]])
tokens = [np.arange(i, i + 8, dtype=np.uint16) for i in range(3)]
put("tokens", {"tokens": "bytes"}, [{"tokens": t.tobytes()} for t in tokens])
expect("tokens", ["tokens uint16(8,)"], [[t] for t in tokens], flag="tokens:uint16[8]")
put("words", {"label": "str", "x": "int"}, [{"label": w, "x": i} for i, w in enumerate(("dog", "cat", "dog"))])
expect("words", ["labels int64()", "x int64()"], [[ints(1), ints(0)], [ints(0), ints(1)], [ints(1), ints(2)]], classes=["cat", "dog"])

# arrays: the type and the shape are in the name, or in each value
for d in "uint8", "int16", "float16", "float32", "int64", "float64":
    arrays = [np.arange(6).reshape(2, 3).astype(d) + i for i in range(3)]
    for form in "ndarray", f"ndarray:{d}", f"ndarray:{d}:2,3":
        name = form.replace(":", "-").replace(",", "x") + ("" if d in form else f"-any-{d}")
        put(name, {"x": form}, [{"x": a.astype(d)} for a in arrays])
        expect(name, [f"x {d}(2, 3)"], [[a.astype(d)] for a in arrays])
ragged = [np.arange(n, dtype=np.int32) for n in (3, 1, 7)]
for form in "ndarray", "ndarray:int32":
    put("ragged-" + form.replace(":", "-"), {"x": form}, [{"x": a} for a in ragged])
    expect("ragged-" + form.replace(":", "-"), ["x int32()*"], [[a] for a in ragged])
boxes = [np.full((n, 4), n, np.float32) for n in (2, 300)]
put("boxes", {"x": "ndarray:float32"}, [{"x": b} for b in boxes])
expect("boxes", ["x float32(4,)*"], [[b] for b in boxes])
put("differ", {"x": "ndarray:float32"}, [{"x": np.zeros((2, 3), np.float32)}, {"x": np.zeros((2, 4), np.float32)}])
refuse("differ", "its lists differ in more than the length of the first axis")

# images
pixels = [np.random.default_rng(i).integers(0, 256, (4, 5, 3), dtype=np.uint8) for i in range(3)]


def encoded(a, form):
    b = io.BytesIO()
    Image.fromarray(a).save(b, form)
    return b.getvalue()


for form in "png", "jpeg":
    put(form, {"image": form, "label": "int"}, [{"image": Image.open(io.BytesIO(encoded(p, form))), "label": i} for i, p in enumerate(pixels)])
    again = []
    for p in pixels:
        b = io.BytesIO()
        Image.open(io.BytesIO(encoded(p, form))).save(b, form.upper())
        again.append(b.getvalue())
    expect(form, ["images uint8()* image", "labels int64()"], [[a, ints(i)] for i, a in enumerate(again)])
put("as-bytes", {"image": "bytes", "class": "int"}, [{"image": encoded(p, "PNG"), "class": i} for i, p in enumerate(pixels)])
expect("as-bytes", ["images uint8()* image", "class int64()"], [[encoded(p, "PNG"), ints(i)] for i, p in enumerate(pixels)])
put("pil", {"x": "pil"}, [{"x": Image.fromarray(p)} for p in pixels])
expect("pil", ["x uint8(4, 5, 3)"], [[p] for p in pixels])
put("gray", {"x": "pil"}, [{"x": Image.fromarray(p[..., 0])} for p in pixels])
expect("gray", ["x uint8(4, 5)"], [[p[..., 0]] for p in pixels])

# compression, shards, folders
many = [{"i": i, "s": f"text {i}" * (i % 5)} for i in range(60)]
want = ["i int64()", "s uint8()* utf-8"], [[ints(m["i"]), m["s"]] for m in many]
for c in "zstd", "zstd:7", "gz", "gz:3", "bz2", None:
    name = "packed-" + (c or "none").replace(":", "-")
    put(name, {"i": "int", "s": "str"}, many, compression=c, size_limit=900, hashes=["sha1"])
    expect(name, *want)
for c in "br", "snappy":
    put(c, {"i": "int", "s": "str"}, many[:2], compression=c)
    refuse(c, f"is compressed with {c}, which is not read; keep its raw file")
put("both", {"i": "int", "s": "str"}, many[:3], compression="zstd")
with open("both/shard.00000.mds", "wb") as f:
    f.write(decompress("zstd", open("both/shard.00000.mds.zstd", "rb").read()))
expect("both", want[0], want[1][:3])
for s, part in ("val", many[:2]), ("train", many[2:5]):
    put(f"splits/{s}", {"i": "int", "s": "str"}, part)
expect("splits", want[0], want[1][2:5] + want[1][:2])
put("selected", {"i": "int", "p": "pkl"}, [{"i": 1, "p": [1]}, {"i": 2, "p": [2]}])
refuse("selected", "is a Python pickle, which may run any program; leave them out: --fields i")
put("chosen", {"i": "int", "p": "pkl"}, [{"i": 1, "p": [1]}, {"i": 2, "p": [2]}])
expect("chosen", ["n int64()"], [[ints(1)], [ints(2)]], flag="i=n")
put("cut", {"i": "int", "s": "str"}, many[:3])
with open("cut/shard.00000.mds", "r+b") as f:
    f.truncate(200)
refuse("cut", "has 200 bytes, and by the index")
print(made.count)
