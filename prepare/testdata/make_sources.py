"""Makes a source of every kind, and beside it as NAME.expected.npz what must come of it.

usage: make_sources.py FOLDER

Every source holds the same 7 records where its kind can hold them: images of 8x6 pixels,
labels, a number, boxes, tokens, a caption. Of a field with records of several lengths the
expected arrays are FIELD.values and FIELD.offsets.
"""
import base64, gzip, io, json, os, struct, sys, tarfile, zipfile, zlib
import numpy as np
import h5py

N = 7
CLASSES = ["ant", "bee", "cat"]
rng = np.random.default_rng(1)
images = rng.integers(0, 256, (N, 6, 8, 3), dtype=np.uint8)
labels = np.array([0, 1, 2, 0, 1, 2, 0])
number = rng.normal(size=N).astype(np.float32)
boxes = [rng.normal(size=(i % 3, 4)).astype(np.float32) for i in range(N)]
tokens = [rng.integers(-5, 30000, i * 2).astype(np.int64) for i in range(N)]
captions = ["", "word", "two words", "smörgåsbord", "a, b", 'quoted "x"', "last"]
vector = rng.integers(-9, 9, (N, 3))
chw = images.transpose(0, 3, 1, 2)


def png(a):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + row.tobytes() for row in a)
    head = struct.pack(">IIBBBBB", a.shape[1], a.shape[0], 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def ragged(name, rows, shape=()):
    values = np.concatenate(rows) if sum(map(len, rows)) else np.zeros((0,) + shape)
    return {name + ".values": values, name + ".offsets": np.cumsum([0] + [len(r) for r in rows])}


def text(name, strings):
    return ragged(name, [np.frombuffer(s.encode(), np.uint8) for s in strings])


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def expect(name, **fields):
    np.savez(name + ".expected.npz", **fields)


def imagefolder():
    for i, k in enumerate(labels):
        put(f"imagefolder/{CLASSES[k]}/{i}.png", png(images[i]))
    order = np.argsort(labels, kind="stable")
    expect("imagefolder", images=chw[order], labels=labels[order])


def csv():
    import csv as writer
    with open("csv.csv", "w", newline="", encoding="utf-8") as f:
        w = writer.writer(f)
        w.writerow(["photo", "label", "number", "vector", "boxes", "tokens", "caption"])
        for i in range(N):
            put(f"pictures/{i}.png", png(images[i]))
            w.writerow([f"pictures/{i}.png", CLASSES[labels[i]], number[i], vector[i].tolist(),
                        boxes[i].tolist(), tokens[i].tolist(), captions[i]])
    expect("csv", photo=chw, **columns("label"))


def columns(label):
    return {label: labels, "number": number, "vector": vector, **ragged("boxes", boxes, (4,)),
            **ragged("tokens", tokens), **text("caption", captions)}


def jsonl():
    with open("jsonl.jsonl", "w", encoding="utf-8") as f:
        for i in range(N):
            row = {"meta": {"inline": base64.b64encode(png(images[i])).decode()}, "label": CLASSES[labels[i]],
                   "number": float(number[i]), "vector": vector[i].tolist(), "boxes": boxes[i].tolist(),
                   "tokens": tokens[i].tolist(), "caption": captions[i]}
            f.write(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n\n"[:1 + i % 2])
    expect("jsonl", pixels=chw, **columns("label"))


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        def add(name, data):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
        for i in range(N):
            add(f"set/{i:04}.png", png(images[i]))
            add(f"set/{i:04}.cls", str(labels[i]).encode())
            add(f"set/{i:04}.txt", captions[i].encode())
            npy = io.BytesIO()
            np.save(npy, vector[i])
            add(f"set/{i:04}.vector.npy", npy.getvalue())
            npy = io.BytesIO()
            np.save(npy, boxes[i])
            add(f"set/{i:04}.boxes.npy", npy.getvalue())
    put("./tar.tar", out.getvalue())
    put("./targz.tar.gz", gzip.compress(out.getvalue()))
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as t, zipfile.ZipFile("zip.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for m in t:
            z.writestr(m.name, t.extractfile(m).read())
    for name in ["tar", "targz", "tarzst", "zip"]:
        expect(name, images=chw, labels=labels, vector=vector, **text("text", captions), **ragged("boxes", boxes, (4,)))


def arrays():
    np.save("npy.npy", number.astype(">f8"))
    expect("npy", npy=number.astype(np.float64))
    np.save("npyf.npy", np.asfortranarray(chw))
    expect("npyf", npyf=chw)
    named = dict(images=images, labels=labels.astype(np.int16), half=number.astype(np.float16), flag=labels > 0)
    np.savez("npz.npz", **named)
    np.savez_compressed("npzc.npz", **named)
    expect("npz", **named)
    expect("npzc", **named)
    gray = images[..., 0]
    head = struct.pack(">BBBBIII", 0, 0, 8, 3, N, 6, 8)
    put("./idx/train-images-idx3-ubyte", head + gray.tobytes())
    put("./idx/train-labels-idx1-ubyte", struct.pack(">BBBBI", 0, 0, 8, 1, N) + labels.astype(np.uint8).tobytes())
    put("./idxgz/t10k-images-idx3-ubyte.gz", gzip.compress(head + gray.tobytes()))
    for name in ["idx", "idxgz"]:
        expect(name, images=gray[:, None], **({"labels": labels} if name == "idx" else {}))
    put("./idxf.idx", struct.pack(">BBBBII", 0, 0, 13, 2, N, 3) + vector.astype(">f4").tobytes())
    expect("idxf", **{"idxf.idx": vector.astype(np.float32)})


def cifar():
    big = rng.integers(0, 256, (N, 3, 32, 32), dtype=np.uint8)
    rows = [bytes([k]) + big[i].tobytes() for i, k in enumerate(labels)]
    put("./cifar/data_batch_1.bin", b"".join(rows[:4]))
    put("./cifar/data_batch_2.bin", b"".join(rows[4:]))
    put("./cifar/batches.meta.txt", "\n".join(CLASSES).encode() + b"\n\n")
    expect("cifar", images=big, labels=labels)


def hdf5():
    with h5py.File("hdf5.h5", "w") as f:
        f["group/images"] = images
        f.create_dataset("labels", data=labels.astype(">i4"))
        f.create_dataset("number", data=number, chunks=(2,), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("vector", data=vector, chunks=(3, 2), compression="lzf")
        f["note"] = "not a field"
    expect("hdf5", **{"group.images": images}, labels=labels.astype(np.int32), number=number, vector=vector)


def tfrecord():
    def varint(n):
        n, out = n & (2**64 - 1), b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def message(number, data):
        return varint(number << 3 | 2) + varint(len(data)) + data

    def feature(kind, values):
        if kind == 1:
            return message(kind, b"".join(message(1, v) for v in values))
        return message(kind, message(1, np.array(values, "<f4").tobytes() if kind == 2 else b"".join(varint(int(v)) for v in values)))

    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)

    def checksum(data):
        crc = 0xFFFFFFFF
        for b in data:
            crc = crc >> 8 ^ table[(crc ^ b) & 255]
        crc ^= 0xFFFFFFFF
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    out = b""
    for i in range(N):
        values = {"image": (1, [png(images[i])]), "label": (3, [labels[i]]), "number": (2, [number[i]]), "vector": (3, vector[i]),
                  "tokens": (3, tokens[i]), "caption": (1, [captions[i].encode()])}
        example = message(1, b"".join(message(1, message(1, k.encode()) + message(2, feature(*v))) for k, v in values.items()))
        head = struct.pack("<Q", len(example))
        out += head + checksum(head) + example + checksum(example)
    put("./tfrecord.tfrecord", out)
    put("./tfrecordgz.gz", gzip.compress(out))
    for name in ["tfrecord", "tfrecordgz"]:
        expect(name, images=chw, labels=labels, number=number, vector=vector, **ragged("tokens", tokens), **text("caption", captions))


os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
for make in [imagefolder, csv, jsonl, tar, arrays, cifar, hdf5, tfrecord]:
    make()
