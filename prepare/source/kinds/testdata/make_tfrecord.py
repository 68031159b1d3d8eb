"""Makes TFRecord files in FOLDER with TensorFlow, and what must come of them. --small makes only small ones."""
import io, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np
import tensorflow as tf
from expect import *
import expect as made

os.chdir(sys.argv[1])
small = "--small" in sys.argv
rng = np.random.default_rng(5)
train = tf.train


def feature(v):
    v = list(v) if isinstance(v, (list, tuple, np.ndarray)) else [v]
    if v and isinstance(v[0], (bytes, str)):
        return train.Feature(bytes_list=train.BytesList(value=[x.encode() if isinstance(x, str) else x for x in v]))
    if v and isinstance(v[0], (float, np.floating)):
        return train.Feature(float_list=train.FloatList(value=v))
    return train.Feature(int64_list=train.Int64List(value=v))


def example(**values):
    return train.Example(features=train.Features(feature={k.replace("__", "/"): v if isinstance(v, train.Feature) else feature(v) for k, v in values.items()}))


def put(name, examples, compression=""):
    with tf.io.TFRecordWriter(name, tf.io.TFRecordOptions(compression_type=compression)) as w:
        for e in examples:
            w.write(e if isinstance(e, bytes) else e.SerializeToString(deterministic=True))


def image(i, form):
    a = tf.constant(np.random.default_rng(i).integers(0, 256, (6 + i % 3, 5, 3), dtype=np.uint8))
    return bytes((tf.io.encode_png if form == "png" else tf.io.encode_jpeg)(a).numpy())


# numbers: every kind of list, packed as TensorFlow does it, at the ends of their ranges
N = 5
edges = [0, 1, -1, 2**63 - 1, -2**63]
special = [0.0, -0.0, float("inf"), float("-inf"), 1e-45]
put("ints.tfrecord", [example(x=v) for v in edges])
expect("ints.tfrecord", ["x int64()"], [[ints(v)] for v in edges])
put("floats.tfrecord", [example(x=v) for v in special])
expect("floats.tfrecord", ["x float32()"], [[floats(v)] for v in special])
put("nan.tfrecord", [example(x=[float("nan"), 1.0])])
expect("nan.tfrecord", ["x float32(2,)"], [[floats(float("nan"), 1)]])
for n in 2, 3, 130:
    put(f"vector{n}.tfrecord", [example(v=[int(x) for x in rng.integers(-9, 9, n)], w=[float(i + k) for k in range(n)]) for i in range(N)])
rng = np.random.default_rng(5)
for n in 2, 3, 130:
    expect(f"vector{n}.tfrecord", [f"v int64({n},)", f"w float32({n},)"], [[rng.integers(-9, 9, n), floats(*[i + k for k in range(n)])] for i in range(N)])
put("ragged.tfrecord", [example(t=train.Feature(int64_list=train.Int64List(value=range(i)))) for i in (3, 0, 1, 7)])
expect("ragged.tfrecord", ["t int64()*"], [[np.arange(i)] for i in (3, 0, 1, 7)])
put("ragged-floats.tfrecord", [example(t=train.Feature(float_list=train.FloatList(value=range(i)))) for i in (0, 2, 1)])
expect("ragged-floats.tfrecord", ["t float32()*"], [[np.arange(i, dtype=np.float32)] for i in (0, 2, 1)])
put("no-lists.tfrecord", [example(t=train.Feature(int64_list=train.Int64List())), example(t=train.Feature(int64_list=train.Int64List()))])
expect("no-lists.tfrecord", ["t int64()*"], [[b""], [b""]])

# bytes
put("text.tfrecord", [example(s=s) for s in ("one", "zwölf", "日本")])
expect("text.tfrecord", ["s uint8()* utf-8"], [["one"], ["zwölf"], ["日本"]])
put("empty-text.tfrecord", [example(s=s) for s in ("", "x")])
expect("empty-text.tfrecord", ["s uint8()* utf-8"], [[""], ["x"]])
put("binary.tfrecord", [example(s=b"\xff\x00\x01"), example(s=b"")])
expect("binary.tfrecord", ["s uint8()*"], [[b"\xff\x00\x01"], [b""]])
put("texts.tfrecord", [example(s=["a", 'q"'], t="x"), example(s=["b"], t="y"), example(s=train.Feature(bytes_list=train.BytesList()), t="z")])
expect("texts.tfrecord", ["s uint8()* utf-8", "t uint8()* utf-8"], [['["a","q\\""]', "x"], ['["b"]', "y"], ["[]", "z"]])
put("lists-of-bytes.tfrecord", [example(s=[b"\xff", b"\xfe"], n=1)])
refuse("lists-of-bytes.tfrecord", "holds lists of bytes, which cannot become a field, unless each is a row of numbers, such as uint8[*,1024]; leave them out: --fields n")
raw = [np.arange(i, i + 6, dtype=np.int16) for i in range(3)]
put("raw.tfrecord", [example(a=r.tobytes(), b=r.tobytes()) for r in raw])
expect("raw.tfrecord", ["a int16(2, 3)", "rows int16(3,)*"], [[r, r] for r in raw], flag="a:int16[2,3],b=rows:int16[*,3]")
put("raw-odd.tfrecord", [example(a=r.tobytes()) for r in raw] + [example(a=b"12345")])
expect("raw-odd.tfrecord", ["a int16(6,)"], [[r] for r in raw] + ["a: 5 bytes where int16[6] is expected"], flag="a:int16[6]")

# labels and images
for form in "png", "jpeg":
    pictures = [image(i, form) for i in range(4)]
    put(f"images-{form}.tfrecord", [example(image__encoded=p, image__class__label=i, image__class__text=f"class {i}") for i, p in enumerate(pictures)])
    expect(f"images-{form}.tfrecord", ["images uint8()* image", "labels int64()", "image/class/text uint8()* utf-8"],
           [[p, ints(i), f"class {i}"] for i, p in enumerate(pictures)])
put("image.tfrecord", [example(image=image(1, "png"), label=7)])
expect("image.tfrecord", ["images uint8()* image", "labels int64()"], [[image(1, "png"), ints(7)]])
put("as-bytes.tfrecord", [example(image=image(1, "png"), label=7)])
expect("as-bytes.tfrecord", ["image uint8()*"], [[image(1, "png")]], flag="image:uint8[*]")
put("words.tfrecord", [example(label=w, x=i) for i, w in enumerate(["dog", "cat", "dog"])])
expect("words.tfrecord", ["labels int64()", "x int64()"], [[ints(1), ints(0)], [ints(0), ints(1)], [ints(1), ints(2)]], classes=["cat", "dog"])
put("words-as-text.tfrecord", [example(label=w) for w in ["dog", "cat"]])
expect("words-as-text.tfrecord", ["label uint8()* utf-8"], [["dog"], ["cat"]], flag="label=label:text")
put("text-as-label.tfrecord", [example(s=w) for w in ["dog", "cat"]])
expect("text-as-label.tfrecord", ["s int64()"], [[ints(1)], [ints(0)]], flag="s:label", classes=["cat", "dog"])
put("objects.tfrecord", [example(image__object__bbox__xmin=[0.5] * n or train.Feature(float_list=train.FloatList()), image__object__class__label=list(range(n))) for n in (2, 0, 3)])
expect("objects.tfrecord", ["image/object/bbox/xmin float32()*", "image/object/class/label int64()*"], [[floats(*[0.5] * n), np.arange(n)] for n in (2, 0, 3)])

# what is missing, of another type, or selected
put("missing.tfrecord", [example(x=1, t="a", r=[1, 2]), example(t="b", r=[1]), example(x=3)])
expect("missing.tfrecord", ["r int64()*", "t uint8()* utf-8", "x int64()"], [[ints(1, 2), "a", ints(1)], "x: it is missing", [b"", "", ints(3)]])
put("no-kind.tfrecord", [example(x=1), example(x=train.Feature())])
expect("no-kind.tfrecord", ["x int64()"], [[ints(1)], "x: it is missing"])
put("mixed.tfrecord", [example(x=1), example(x=2.5), example(x=3)])
expect("mixed.tfrecord", ["x int64()"], [[ints(1)], "x: it is of another type than int64", [ints(3)]])
put("selected.tfrecord", [example(x=1, y=2.0, z="no")])
expect("selected.tfrecord", ["y float32()", "first int64(1,)"], [[floats(2), ints(1)]], flag="y,x=first:int64[1]")
put("cast.tfrecord", [example(x=1)])
refuse("cast.tfrecord", "holds int64, which :int8 cannot convert; leave :int8 out, and convert it with the transform Cast", flag="x:int8")
put("no-column.tfrecord", [example(alpha=1)])
refuse("no-column.tfrecord", 'there is no column "alpa"; did you mean "alpha"?', flag="alpa")
put("shape.tfrecord", [example(x=list(range(6)))])
expect("shape.tfrecord", ["x int64(2, 3)"], [[np.arange(6)]], flag="x:int64[2,3]")

# compression, sizes, numbers of records
for compression in "GZIP", "ZLIB":
    put(f"{compression.lower()}.tfrecord", [example(x=i, s="y" * i) for i in range(40)], compression)
    expect(f"{compression.lower()}.tfrecord", ["s uint8()* utf-8", "x int64()"], [["y" * i, ints(i)] for i in range(40)])
put("train.tfrecord-00000-of-00001", [example(x=1)])
expect("train.tfrecord-00000-of-00001", ["x int64()"], [[ints(1)]])
put("no-extension", [example(x=1)])
expect("no-extension", ["x int64()"], [[ints(1)]])
put("empty.tfrecord", [])
refuse("empty.tfrecord", "holds no records")
put("empty-example.tfrecord", [b""])
refuse("empty-example.tfrecord", "the records have no features")
put("not-example.tfrecord", [b"\xff\xff", example(x=1)])
expect("not-example.tfrecord", ["x int64()"], ["not a tf.train.Example, or corrupt", [ints(1)]])
if not small:
    put("large.tfrecord", [example(x=list(range(200_000)), s=b"\x80" * 3_000_000)])
    expect("large.tfrecord", ["s uint8()*", "x int64(200000,)"], [[b"\x80" * 3_000_000, np.arange(200_000)]])

# folders of shards, whose names may have splits
for folder, names in {"shards": ["a-00000-of-00002", "a-00001-of-00002"], "tfds": ["mnist-test.tfrecord-00000-of-00001", "mnist-train.tfrecord-00000-of-00001"], "tfrec": ["x.tfrec", "y.tfrec"]}.items():
    os.makedirs(folder, exist_ok=True)
    for i, n in enumerate(names):
        put(f"{folder}/{n}", [example(x=i), example(x=i + 10)])
    open(f"{folder}/dataset_info.json", "w").write("{}")
    expect(folder, ["x int64()"], [[ints(0)], [ints(10)], [ints(1)], [ints(11)]])

# SequenceExample: lists of features are rows
def sequence(n):
    return train.SequenceExample(
        context=train.Features(feature={"id": feature(f"v{n}"), "labels": feature(list(range(n)) or [0])}),
        feature_lists=train.FeatureLists(feature_list={
            "rgb": train.FeatureList(feature=[feature(bytes([k, 200, 255, 7])) for k in range(n)]),
            "boxes": train.FeatureList(feature=[feature([float(k), k + 0.5, 1.0]) for k in range(n)]),
            "steps": train.FeatureList(feature=[feature(k) for k in range(n)])}))


put("sequence.tfrecord", [sequence(n) for n in (2, 3)])
expect("sequence.tfrecord", ["boxes float32(3,)*", "id uint8()* utf-8", "labels int64()*", "rgb uint8(4,)*", "steps int64()*"],
       [[floats(*[v for k in range(n) for v in (k, k + 0.5, 1)]), f"v{n}", np.arange(n), b"".join(bytes([k, 200, 255, 7]) for k in range(n)), np.arange(n)] for n in (2, 3)],
       flag="boxes,id,labels,rgb:uint8[*,4],steps")
put("uneven.tfrecord", [train.SequenceExample(feature_lists=train.FeatureLists(feature_list={"x": train.FeatureList(feature=[feature([1, 2]), feature([1])])}))])
refuse("uneven.tfrecord", "its lists differ in more than the length of the first axis")
print(made.count)
