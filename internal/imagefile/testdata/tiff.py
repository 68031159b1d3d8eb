#!/usr/bin/env python3
"""Writes TIFF files of all variants that tifffile and Pillow write to the folder given, and tiff.json, what both read
them as: "samples" is the digest of tifffile's array, and "rgb" that of Pillow's pixels; "refused" is part of the error
that is expected. It needs tifffile, imagecodecs, Pillow and NumPy."""
import hashlib, io, json, os, struct, sys, zlib
import numpy as np
import tifffile
from PIL import Image

os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
rng = np.random.default_rng(7)
W, H = 37, 29
want = {}


def array(dtype, channels=1, w=W, h=H):
    y, x = np.mgrid[0:h, 0:w].astype(float)
    planes = [np.sin(x / (3 + i)) * np.cos(y / (4 + i)) + rng.normal(0, 0.05, (h, w)) for i in range(channels)]
    a = np.clip((np.stack(planes, -1) + 1.3) / 2.6, 0, 1)
    if np.dtype(dtype).kind == "u":
        return (a * np.iinfo(dtype).max).astype(dtype)
    if np.dtype(dtype).kind == "i":
        return ((a - 0.5) * 2 * np.iinfo(dtype).max).astype(dtype)
    return (a * 1000 - 300).astype(dtype)


def digest(b, *shape):
    return hashlib.sha256(np.array(shape, "<i8").tobytes() + b).hexdigest()[:32]


def samples(a):
    """The array as height, width, channels."""
    if a.ndim == 2:
        a = a[:, :, None]
    return {"samples": digest(np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes(), *a.shape), "dtype": a.dtype.name, "shape": a.shape}


def expect(name, a=None, rgb=True, refused=None):
    if refused:
        want[name] = {"refused": refused}
        return
    want[name] = {} if a is None else samples(a)
    if rgb:
        im = Image.open(name).convert("RGB")
        want[name]["rgb"] = digest(im.tobytes(), im.height, im.width, 3)


def tiff(name, a, read=None, rgb=False, refused=None, **kw):
    name += ".tif"
    kw.setdefault("photometric", "minisblack")
    tifffile.imwrite(name, a, **kw)
    if refused is None:
        got = tifffile.imread(name, key=0)
        read = got if read is None else read
    expect(name, read, rgb, refused)


def last(a):
    return np.moveaxis(a, 0, -1)


for dtype in "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "int8":
    tiff(f"gray-{dtype}", array(dtype)[:, :, 0])
for codec in "lzw", "zlib", "packbits", "zstd":
    tiff(f"gray16-{codec}", array("uint16")[:, :, 0], compression=codec)
    tiff(f"gray16-{codec}-predictor", array("uint16")[:, :, 0], compression=codec, predictor=True) if codec != "packbits" else None
    tiff(f"rgb8-{codec}", array("uint8", 3), photometric="rgb", rgb=True, compression=codec)
for dtype in "float16", "float32", "float64":
    tiff(f"predictor3-{dtype}", array(dtype)[:, :, 0], compression="zlib", predictor=3)
    tiff(f"predictor3-{dtype}-rgb-big", array(dtype, 3), compression="zlib", predictor=3, byteorder=">", photometric="rgb")
for dtype in "uint8", "uint16", "uint32":
    tiff(f"predictor2-{dtype}-big-tiles", array(dtype, 3, 70, 50), compression="lzw", predictor=2, byteorder=">", tile=(32, 16), photometric="rgb", rgb=dtype == "uint8")
for c in 2, 5, 13:
    a = array("uint8", c)
    tiff(f"channels{c}", a, planarconfig="contig")
    tiff(f"channels{c}-planar", np.moveaxis(a, -1, 0), read=a, planarconfig="separate")
    a = array("uint16", c, 70, 50)
    tiff(f"channels{c}-uint16-planar-tiles", np.moveaxis(a, -1, 0), read=a, planarconfig="separate", tile=(16, 32), compression="zlib", predictor=True)
tiff("channels4", array("uint8", 4), planarconfig="contig")
tiff("channels5-float32", array("float32", 5), planarconfig="contig", compression="zstd")
tiff("rgb16", array("uint16", 3), photometric="rgb")
tiff("rgb16-big-endian", array("uint16", 3), photometric="rgb", byteorder=">")
tiff("rgba16", array("uint16", 4), read=None, photometric="rgb", extrasamples=["unassalpha"])
tiff("bigtiff-rgb", array("uint8", 3), photometric="rgb", rgb=True, bigtiff=True)
tiff("bigtiff-gray16-big-endian", array("uint16")[:, :, 0], bigtiff=True, byteorder=">", compression="lzw", rowsperstrip=5)
tiff("rgb-tiles", array("uint8", 3, 70, 50), photometric="rgb", rgb=True, tile=(16, 48))
tiff("rgb-planar", np.moveaxis(array("uint8", 3), -1, 0), read=None, photometric="rgb", planarconfig="separate")
want["rgb-planar.tif"] = {}
expect("rgb-planar.tif", np.moveaxis(tifffile.imread("rgb-planar.tif"), 0, -1), True)
tiff("strips", array("uint8", 3), photometric="rgb", rgb=True, rowsperstrip=4)
tiff("miniswhite", array("uint8")[:, :, 0], photometric="miniswhite", rgb=True)
tiff("miniswhite16", array("uint16")[:, :, 0], photometric="miniswhite")
tiff("bits1", array("uint8")[:, :, 0] > 100, rgb=True, read=(array("uint8")[:, :, 0] > 300).astype(np.uint8))
want["bits1.tif"].pop("samples")
for bits in 10, 12, 14:
    tiff(f"bits{bits}", array("uint16")[:, :, 0] >> (16 - bits), bitspersample=bits, compression=None)
colors = (np.mgrid[0:256, 0:3][0].T * np.array([[257], [100], [31]])).astype(np.uint16)
tiff("palette", array("uint8")[:, :, 0], photometric="palette", colormap=colors, rgb=True)
tiff("cmyk", array("uint8", 4), photometric="separated", rgb=True)
tiff("cmyk-planar", np.moveaxis(array("uint8", 4), -1, 0), read=None, photometric="separated", planarconfig="separate")
expect("cmyk-planar.tif", None, True)
for sub in (1, 1), (2, 1), (2, 2):
    a = array("uint8", 3, 80, 64)
    tiff(f"jpeg-ycbcr-{sub[0]}{sub[1]}", a, photometric="ycbcr" if sub != (1, 1) else "rgb", subsampling=sub, compression="jpeg", compressionargs={"level": 80}, rowsperstrip=16)
    expect(f"jpeg-ycbcr-{sub[0]}{sub[1]}.tif")
    tiff(f"jpeg-tiles-{sub[0]}{sub[1]}", a, photometric="ycbcr", subsampling=sub, compression="jpeg", tile=(32, 32))
    expect(f"jpeg-tiles-{sub[0]}{sub[1]}.tif")
tiff("jpeg-gray", array("uint8")[:, :, 0], compression="jpeg")
expect("jpeg-gray.tif")
pages = np.moveaxis(array("uint16", 3), -1, 0)
tiff("pages", pages, read=np.moveaxis(pages, 0, -1))
with tifffile.TiffWriter("pages-differ.tif") as f:
    f.write(array("uint16")[:, :, 0], photometric="minisblack")
    f.write(array("uint16", w=20)[:, :, 0], photometric="minisblack")
expect("pages-differ.tif", refused="2 pages")
with tifffile.TiffWriter("pyramid.tif") as f:
    a = array("uint16")[:, :, 0]
    f.write(a, photometric="minisblack")
    f.write(a[::2, ::2], photometric="minisblack", subfiletype=1)
expect("pyramid.tif", a, False)
tiff("lab", array("uint8", 3), photometric="cielab", refused="CIE L*a*b*")
tiff("complex", (array("float32")[:, :, 0] + 1j).astype(np.complex64), refused="64 bits of format 6")
for codec, name in ("lzma", "LZMA"), ("jpeg2000", "JPEG 2000"), ("webp", "WebP"), ("png", "PNG"), ("lerc", "LERC"), ("jpegxl", "JPEG XL"):
    tiff(f"refused-{codec}", array("uint8", 3), photometric="rgb", compression=codec, refused=name)


def pil(name, im, rgb=True, refused=None, a=None, **kw):
    name = f"pillow-{name}.tif"
    im.save(name, **kw)
    expect(name, a, rgb, refused)


color = Image.fromarray(array("uint8", 3))
for codec in "tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "jpeg", "zstd", None:
    pil(f"rgb-{codec}", color, compression=codec)
    pil(f"l-{codec}", color.convert("L"), compression=codec)
    pil(f"cmyk-{codec}", color.convert("CMYK"), compression=codec, refused="JPEG" if codec == "jpeg" else None)
for codec in "group3", "group4":
    pil(f"1-{codec}", color.convert("1"), compression=codec)
pil("1-rle", color.convert("1"), compression="tiff_ccitt", refused="CCITT RLE")
pil("rgb-lzma", color, compression="lzma", refused="LZMA")
pil("p", color.quantize(64))
pil("rgba", Image.fromarray(array("uint8", 4)))
pil("la", color.convert("LA"))
pil("i16", Image.fromarray(array("uint16")[:, :, 0]), False, a=None)
expect("pillow-i16.tif", np.asarray(Image.open("pillow-i16.tif")), False)
pil("i", Image.fromarray(array("int32")[:, :, 0]), False)
expect("pillow-i.tif", np.asarray(Image.open("pillow-i.tif")), False)
pil("f", Image.fromarray(array("float32")[:, :, 0]), False, compression="tiff_lzw")
expect("pillow-f.tif", np.asarray(Image.open("pillow-f.tif")), False)
for codec in None, "tiff_lzw", "tiff_deflate":
    pil(f"ycbcr-{codec}", color.convert("YCbCr"), compression=codec)
want["pillow-ycbcr-None.tif"] = want["pillow-ycbcr-tiff_lzw.tif"]  # of one that is not compressed Pillow rounds differently
pil("lab", Image.frombytes("LAB", color.size, color.tobytes()), rgb=False, refused="CIE L*a*b*")
for o in range(2, 9):
    im = color.copy()
    pil(f"orientation{o}", im, tiffinfo={274: o})
b = io.BytesIO()
color.save(b, "TIFF", save_all=True, append_images=[color.convert("L")])
open("pillow-pages.tif", "wb").write(b.getvalue())
expect("pillow-pages.tif")


def subsampled(name, sx, sy):
    """YCbCr in units of several pixels, which no library writes: by hand."""
    y, cb, cr = np.moveaxis(np.asarray(color.convert("YCbCr")), -1, 0)
    units = b""
    for y0 in range(0, H, sy):
        for x0 in range(0, W, sx):
            for j in range(sy):
                for i in range(sx):
                    units += bytes([y[min(y0 + j, H - 1), min(x0 + i, W - 1)]])
            units += bytes([cb[y0, x0], cr[y0, x0]])
    units = zlib.compress(units)
    tags = [(256, 3, 1, W), (257, 3, 1, H), (258, 3, 3, None), (259, 3, 1, 8), (262, 3, 1, 6), (273, 4, 1, None), (277, 3, 1, 3), (278, 3, 1, H), (279, 4, 1, len(units)), (530, 3, 2, sx | sy << 16)]
    end = 8 + 2 + 12 * len(tags) + 4
    out = struct.pack("<2sHIH", b"II", 42, 8, len(tags))
    for tag, typ, n, v in tags:
        out += struct.pack("<HHII", tag, typ, n, v if v is not None else end if tag == 258 else end + 6)
    open(name, "wb").write(out + struct.pack("<I3H", 0, 8, 8, 8) + units)
    expect(name)


for sx, sy in (2, 1), (2, 2), (4, 4):
    subsampled(f"ycbcr-{sx}{sy}.tif", sx, sy)
json.dump(want, open("tiff.json", "w"), indent=1, sort_keys=True)
print(len(want))
