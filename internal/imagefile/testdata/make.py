#!/usr/bin/env python3
"""Writes kinds/, small images of every kind that Pillow can write, and goldens.json, what
Pillow reads them as. Run it in this folder; it needs Pillow with WebP (9.4 made the
committed files) and NumPy, and cjpeg and jpegtran of
libjpeg-turbo."""
import hashlib, io, json, os, shutil, struct, subprocess, zlib
import numpy as np
from PIL import Image, ImageOps

shutil.rmtree("kinds", ignore_errors=True)
os.mkdir("kinds")
os.chdir("kinds")
rng = np.random.default_rng(5)


def picture(w, h, c=3):
    """A smooth picture with edges and noise, so that no filter goes unnoticed."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    planes = []
    for i in range(c):
        p = 128 + 100 * np.sin(x / (3 + 2 * i) + i) * np.cos(y / (4 + i))
        p[(x + (i + 1) * y) % 17 < 5] = 230 - 60 * i
        planes.append(np.clip(p + rng.normal(0, 12, (h, w)), 0, 255))
    return np.stack(planes, -1).astype(np.uint8).squeeze()


def rgb(w=45, h=37):
    return Image.fromarray(picture(w, h))


def without_adobe(data):
    i = data.index(b"\xff\xee")
    n = struct.unpack(">H", data[i + 2:i + 4])[0]
    return data[:i] + data[i + 2 + n:]


def jpeg(im, **kw):
    b = io.BytesIO()
    im.save(b, "JPEG", **kw)
    return b.getvalue()


def put(name, data):
    with open(name, "wb") as f:
        f.write(data)


for name, s in ("444", 0), ("422", 1), ("420", 2):
    put(f"{name}.jpg", jpeg(rgb(), quality=85, subsampling=s))
    put(f"{name}-progressive.jpg", jpeg(rgb(), quality=75, subsampling=s, progressive=True))
for w, h in (1, 1), (2, 2), (3, 5), (5, 3), (8, 8), (16, 17), (17, 16), (4, 40), (6, 40), (33, 1), (1, 33):
    put(f"420-{w}x{h}.jpg", jpeg(Image.fromarray(picture(w, h).reshape(h, w, 3)), quality=90, subsampling=2))
    put(f"422-{w}x{h}.jpg", jpeg(Image.fromarray(picture(w, h).reshape(h, w, 3)), quality=90, subsampling=1))
put("gray.jpg", jpeg(rgb().convert("L")))
put("gray-progressive.jpg", jpeg(rgb().convert("L"), progressive=True))
put("quality100.jpg", jpeg(rgb(), quality=100, subsampling=0))
put("quality1.jpg", jpeg(rgb(), quality=1))
put("optimized.jpg", jpeg(rgb(), quality=60, optimize=True))
cmyk = Image.fromarray(picture(45, 37, 4), "CMYK")
put("cmyk.jpg", jpeg(cmyk))
put("cmyk-progressive.jpg", jpeg(cmyk, progressive=True))
put("cmyk-no-adobe.jpg", without_adobe(jpeg(cmyk)))
ycck = jpeg(cmyk)
put("ycck.jpg", ycck[:ycck.index(b"Adobe") + 11] + b"\x02" + ycck[ycck.index(b"Adobe") + 12:])
# An RGB JPEG: three components that an Adobe segment says are not converted.
flat = jpeg(rgb(), subsampling=0)
adobe = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
app0 = 2 + 2 + struct.unpack(">H", flat[4:6])[0]
put("rgb-adobe.jpg", flat[:2] + adobe + flat[app0:])
# Component names of 'R', 'G', 'B' say the same.
named = bytearray(flat[:2] + flat[app0:])
sof, sos = named.index(b"\xff\xc0"), named.index(b"\xff\xda")
for i, name in enumerate(b"RGB"):
    named[sof + 10 + 3 * i] = name
    named[sos + 5 + 2 * i] = name
put("rgb-names.jpg", bytes(named))


def jpegtran(name, source, *args):
    put(name, subprocess.run(["jpegtran", "-copy", "all", *args], input=source, stdout=subprocess.PIPE, check=True).stdout)


base = jpeg(rgb(48, 32), quality=85, subsampling=2)
jpegtran("restart.jpg", base, "-restart", "2B")
jpegtran("restart-rows.jpg", base, "-restart", "1")
jpegtran("restart-progressive.jpg", base, "-restart", "2B", "-progressive")
jpegtran("440.jpg", jpeg(rgb(48, 32), quality=85, subsampling=1), "-transpose")
jpegtran("440-odd.jpg", jpeg(rgb(37, 45), quality=85, subsampling=1), "-transpose")
scans = "0;1;2;"
put("scans.txt", scans.encode())
jpegtran("three-scans.jpg", base, "-scans", "scans.txt")
os.remove("scans.txt")
for o in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = o
    put(f"orientation{o}.jpg", jpeg(rgb(24, 17), exif=exif))
exif = Image.Exif()
exif[0x0112] = 6
rgb(24, 17).save("orientation6.png", exif=exif)
rgb(24, 17).save("orientation6.webp", exif=exif, lossless=True)
rgb(24, 17).save("orientation6.tiff", tiffinfo={274: 6})
# Large enough that a part of it leaves most of it out.
for name, s, kw in ("444", 0, {}), ("422", 1, {}), ("420", 2, {}), ("420-progressive", 2, {"progressive": True}):
    put(f"large-{name}.jpg", jpeg(rgb(203, 151), quality=40, subsampling=s, **kw))
jpegtran("large-440.jpg", jpeg(rgb(151, 203), quality=40, subsampling=1), "-transpose")
jpegtran("large-restart.jpg", jpeg(rgb(203, 151), quality=40, subsampling=2), "-restart", "1")
# Sampling factors that are not the usual, down to luma coarser than chroma.
for factors in "4x1", "4x2", "1x4", "3x1", "2x2,1x2,2x1", "2x2,2x1,1x1", "1x1,2x2,2x2", "2x1,1x1,2x1":
    for w, h in (48, 32), (37, 29):
        ppm = io.BytesIO()
        rgb(w, h).save(ppm, "PPM")
        args = ["cjpeg", "-quality", "85", "-sample", factors]
        put(f"sample-{factors.replace(',', '-')}-{w}.jpg", subprocess.run(args, input=ppm.getvalue(), stdout=subprocess.PIPE, check=True).stdout)
put("trailing.jpg", base + b"\x00\x01garbage\xff\xd8\xff")
put("fill-bytes.jpg", base[:2] + b"\xff\xff\xff" + base[2:])

rgba = Image.fromarray(picture(45, 37, 4), "RGBA")
palette = rgb().quantize(37)
for ext, modes in {
    "png": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "tiff": ("1", "L", "P", "RGB", "RGBA", "CMYK"),
    "bmp": ("1", "L", "P", "RGB", "RGBA"),
    "gif": ("1", "L", "P"),
}.items():
    for mode in modes:
        if mode == "I;16":
            im = Image.fromarray((picture(45, 37)[..., 0].astype(np.uint16) << 8) + 77)
        elif mode in ("LA", "RGBA"):
            im = rgba.convert(mode)
        elif mode == "CMYK":
            im = cmyk
        elif mode == "P":
            im = palette
        else:
            im = rgb().convert(mode)
        im.save(f"{mode.replace(';', '')}.{ext}")
palette.save("transparent.png", transparency=3)
palette.save("two-bits.png", bits=2)
rgb().convert("L").save("gray-transparent.png", transparency=100)
rgb().quantize(14).save("transparent.gif", transparency=3)
rgb().save("lzw.tiff", compression="tiff_lzw")
rgb().save("deflate.tiff", compression="tiff_adobe_deflate")
frames = [rgb(20, 16), rgb(20, 16)]
frames[0].save("animated.gif", save_all=True, append_images=frames[1:])
frames[0].save("animated.png", save_all=True, append_images=frames[1:])


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png16(name, channels, color_type):
    p = (picture(20, 16, channels).astype(">u2") << 8) + 200
    raw = b"".join(b"\0" + row.tobytes() for row in p)
    ihdr = struct.pack(">IIBBBBB", 20, 16, 16, color_type, 0, 0, 0)
    put(name, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", ihdr) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


png16("RGB16.png", 3, 2)
png16("RGBA16.png", 4, 6)
png16("LA16.png", 2, 4)
# A GIF whose first frame covers part of the screen, once with a transparent color.
for name, control in ("partial.gif", b""), ("partial-transparent.gif", b"\x21\xf9\x04\x01\x00\x00\x05\x00"):
    b = io.BytesIO()
    rgb(10, 8).quantize(16).save(b, "GIF")
    g = b.getvalue()
    i = g.index(b",", 13 + 3 * 2 ** ((g[10] & 7) + 1))
    image = g[i:i + 1] + struct.pack("<HH", 3, 2) + g[i + 5:]
    put(name, g[:6] + struct.pack("<HH", 20, 16) + g[10:i] + control + image)
for w, h in (45, 37), (44, 36), (1, 1), (2, 3), (17, 2):
    Image.fromarray(picture(w, h).reshape(h, w, 3)).save(f"lossy-{w}x{h}.webp", quality=80)
rgba.save("lossy-alpha.webp", quality=70)
rgb().save("lossless.webp", lossless=True)
rgba.save("lossless-alpha.webp", lossless=True, exact=True)

frames[0].save("animated.webp", save_all=True, append_images=frames[1:], lossless=True)
small = [Image.fromarray(picture(20, 16, 4), "RGBA") for _ in range(2)]
small[0].save("animated-alpha.webp", save_all=True, append_images=small[1:], quality=80)
# The same with the first frame on a part of a larger canvas.
for name in "animated", "animated-alpha":
    w = bytearray(open(name + ".webp", "rb").read())
    at = w.index(b"VP8X") + 12
    w[at:at + 6] = (29).to_bytes(3, "little") + (24).to_bytes(3, "little")
    at = w.index(b"ANMF") + 8
    w[at:at + 6] = (2).to_bytes(3, "little") + (3).to_bytes(3, "little")
    put(name + "-partial.webp", bytes(w))
# Fax codes, where white is zero and where black is.
for name in "group3", "group4":
    for photometric in 0, 1:
        rgb().convert("1").save(f"{name}-{photometric}.tiff", compression=name, tiffinfo={262: photometric})


def first_scans(data, n):
    """A progressive file that ends after n scans: libjpeg guesses what they leave out, for chroma
    in 4:2:0 otherwise in version 2.1 of libjpeg-turbo than in 3."""
    at = 0
    for _ in range(n):
        at = data.index(b"\xff\xda", at + 2)
    while data[at + 1] == 0 or data[at + 1] in b"\xda\xff" or 0xD0 <= data[at + 1] <= 0xD7:
        at = data.index(b"\xff", at + 2)
    return data[:at] + b"\xff\xd9"


for n in 1, 3, 6:
    put(f"scans{n}-444.jpg", first_scans(jpeg(rgb(75, 83), quality=60, subsampling=0, progressive=True), n))
    put(f"scans{n}-gray.jpg", first_scans(jpeg(rgb(75, 83).convert("L"), quality=60, progressive=True), n))


def bmp(bits, pixels, size=40, compression=0, masks=(), colors=0, height=-9, entry=4):
    """A BMP of 11 columns; a negative height means that the first row is the uppermost."""
    palette = picture(16, 16, entry).reshape(-1)[:entry * colors].tobytes()
    head = struct.pack("<IHHHH", size, 11, abs(height), 1, bits)
    if size > 12:
        head = struct.pack("<IiiHHIIiiII", size, 11, height, 1, bits, compression, len(pixels), 0, 0, colors, 0)
    head += b"".join(struct.pack("<I", m) for m in masks)
    head += bytes(max(0, size - len(head)))
    at = 14 + len(head) + len(palette)
    return b"BM" + struct.pack("<IHHI", at + len(pixels), 1, 2, at) + head + palette + pixels


noise = rng.integers(0, 256, 4096, dtype=np.uint8).tobytes()
put("bits16.bmp", bmp(16, noise[:24 * 9]))
put("bits16-565.bmp", bmp(16, noise[:24 * 9], compression=3, masks=(0xF800, 0x7E0, 0x1F)))
put("bits32-masks.bmp", bmp(32, noise[:44 * 9], size=108, compression=3, masks=(0xFF000000, 0xFF0000, 0xFF00, 0xFF)))
put("os2.bmp", bmp(24, noise[:36 * 9], size=12, height=9, entry=3))
put("os2-palette.bmp", bmp(4, noise[:8 * 9], size=12, height=9, colors=16, entry=3))


def turned(im):
    """TIFF is turned as it is loaded; Pillow before 10 would do it twice."""
    return im if im.format == "TIFF" else ImageOps.exif_transpose(im)


goldens = {}
for name in sorted(os.listdir(".")):
    im = Image.open(name)
    digests = {}
    for key, image, mode in (("rgb", im, "RGB"), ("gray", im, "L"), ("turned", turned(im), "RGB")):
        image = image.convert(mode)
        digests[key] = hashlib.sha256(struct.pack("<II", *image.size) + image.tobytes()).hexdigest()[:32]
    goldens[name] = digests
os.chdir("..")
with open("goldens.json", "w") as f:
    json.dump(goldens, f, indent=1, sort_keys=True)
    f.write("\n")
