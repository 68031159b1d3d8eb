"""Makes zip archives in FOLDER with Python's zipfile, and what must come of them. --small makes only small ones."""
import io, os, stat, sys, zipfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from expect import *
import expect as made

os.chdir(sys.argv[1])
small = "--small" in sys.argv
methods = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2}
photos = {f"photos/{c}/{i}.jpg": f"pixels of {c} {i} " * (i + 1) for c in ("cat", "ant") for i in (2, 10, 1)}
pairs = {f"set/{i}.{e}": v for i in range(4) for e, v in (("jpg", f"P{i}" * 9), ("cls", str(i % 2)), ("txt", f"text {i}"), ("json", f'{{"n": {i}}}'))}


class Pipe(io.RawIOBase):  # cannot seek, so that sizes and checksums are behind the data
    def __init__(self, f):
        self.f = f

    def writable(self):
        return True

    def write(self, b):
        return self.f.write(b)


def put(name, files, method=zipfile.ZIP_DEFLATED, pipe=False, force64=False, comment=b"", level=None):
    with open(name, "wb") as f:
        with zipfile.ZipFile(Pipe(f) if pipe else f, "w", method, compresslevel=level) as z:
            for n, data in files.items():
                info = n if isinstance(n, zipfile.ZipInfo) else zipfile.ZipInfo(n)
                info.compress_type = method
                with z.open(info, "w", force_zip64=force64) as m:
                    m.write(data.encode() if isinstance(data, str) else data)
            z.comment = comment


def classes(name, files=photos, **kw):
    names = sorted(files)
    words = sorted({n.split("/")[-2] for n in names})
    expect(name, ["images uint8()* image", "labels int64()"], [[files[n], ints(words.index(n.split("/")[-2]))] for n in names], classes=words, **kw)


def samples(name, files=pairs):
    expect(name, ["images uint8()* image", "labels int64()", "json uint8()* utf-8", "text uint8()* utf-8"],
           [[files[f"set/{i}.jpg"], ints(int(files[f"set/{i}.cls"])), files[f"set/{i}.json"], files[f"set/{i}.txt"]] for i in range(4)])


for m, method in methods.items():
    for way, kw in {"plain": {}, "pipe": dict(pipe=True), "zip64": dict(force64=True), "comment": dict(comment=b"made by hand")}.items():
        put(f"photos-{m}-{way}.zip", photos, method, **kw)
        classes(f"photos-{m}-{way}.zip")
        put(f"pairs-{m}-{way}.zip", pairs, method, **kw)
        samples(f"pairs-{m}-{way}.zip")
for level in 1, 9:
    put(f"level{level}.zip", photos, level=level)
    classes(f"level{level}.zip")
put("backwards.zip", dict(reversed(pairs.items())))
samples("backwards.zip")
put("no-extension", photos)
classes("no-extension")
folders = {zipfile.ZipInfo("photos/"): b"", zipfile.ZipInfo("photos/cat/"): b"", **photos}
put("folders.zip", folders)
classes("folders.zip")
put("mac.zip", {**photos, "__MACOSX/photos/cat/._2.jpg": "no photo", "photos/.DS_Store": "no photo"})
classes("mac.zip")
put("others.zip", {**photos, "photos/README": "words"})
classes("others.zip")
utf = {f"фото/кот/{i}.png": f"p{i}" for i in range(2)} | {"фото/ёж/1.png": "q"}
put("unicode.zip", utf)
classes("unicode.zip", utf)
back = {n.replace("/", "\\"): v for n, v in photos.items()}
put("backslashes.zip", back)
expect("backslashes.zip", ["images uint8()* image", "labels int64()"], [[back[n], ints(["ant", "cat"].index(n.split("\\")[1]))] for n in sorted(back)], classes=["ant", "cat"])
splits = {f"{s}/{c}/{i}.png": f"{s}{c}{i}" for s in ("train", "val") for c in ("a", "b") for i in range(2)}
put("splits.zip", splits)
classes("splits.zip", splits)
flat = {f"{i}.jpg": f"p{i}" for i in range(3)}
put("flat.zip", flat)
expect("flat.zip", ["images uint8()* image"], [[flat[n]] for n in sorted(flat)])
put("one.zip", {"a.jpg": "p"})
expect("one.zip", ["images uint8()* image"], [["p"]])
put("fields.zip", pairs)
expect("fields.zip", ["n int8()", "photo uint8()* image"], [[bytes([i]), pairs[f"set/{i}.jpg"]] for i in range(4)], flag="json.n:int8,jpg=photo")
npy = io.BytesIO()
np.save(npy, np.arange(6, dtype=np.int16).reshape(2, 3))
put("arrays.zip", {f"{i}.{e}": v for i in range(2) for e, v in (("x.npy", npy.getvalue()), ("jpg", "p"))})
expect("arrays.zip", ["images uint8()* image", "x int16(2, 3)"], [["p", np.arange(6, dtype=np.int16)]] * 2)
link = zipfile.ZipInfo("photos/cat/link.jpg")
link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
put("link.zip", {**photos, link: "2.jpg"})
classes("link.zip")
os.makedirs("shards", exist_ok=True)
for i in range(2):
    put(f"shards/{i}.zip", {f"{k}.{e}": v for k in range(2) for e, v in (("jpg", f"P{i}{k}"), ("cls", str(i)))})
expect("shards", ["images uint8()* image", "labels int64()"], [[f"P{i}{k}", ints(i)] for i in range(2) for k in range(2)])

# what is refused, or makes a bad sample
put("lzma.zip", {"a/1.jpg": "p"}, zipfile.ZIP_LZMA)
expect("lzma.zip", ["images uint8()* image"], ["is compressed by method 14 of zip, which is not read; unzip the archive first"])
put("encrypted.zip", {"a/1.jpg": "p"})
data = bytearray(open("encrypted.zip", "rb").read())
data[6] |= 1
data[data.index(b"PK\x01\x02") + 8] |= 1
open("encrypted.zip", "wb").write(data)
expect("encrypted.zip", ["images uint8()* image"], ["is encrypted; unzip the archive first"])
put("changed.zip", {"a/1.jpg": "pixels", "a/2.jpg": "others"}, zipfile.ZIP_STORED)
data = open("changed.zip", "rb").read().replace(b"pixels", b"pixelz")
open("changed.zip", "wb").write(data)
expect("changed.zip", ["images uint8()* image"], ["zip: checksum error", ["others"]])
with open("cut.zip", "wb") as f:
    f.write(open("one.zip", "rb").read()[:-9])
refuse("cut.zip", "no zip archive, or cut short: it has no directory at its end")
put("outside.zip", {"../x.jpg": "p"})
refuse("outside.zip", "leads outside of the archive; such archives are refused")
put("absolute.zip", {"/etc/x.jpg": "p"})
refuse("absolute.zip", "leads outside of the archive")
put("nothing.zip", {})
refuse("nothing.zip", "holds no files")
if not small:
    zeros = b"\0" * (200 << 20)
    put("bomb.zip", {"a/1.jpg": zeros, "a/2.jpg": "p"})
    expect("bomb.zip", ["images uint8()* image"], ["decompresses without end: each byte expands to more than 1000; this looks like a decompression bomb", ["p"]])
print(made.count)
