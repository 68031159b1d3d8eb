package imagefile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// declareScript writes images that are transparent, opaque or nearly so, in every format,
// into a folder, and prints which of them Pillow takes for transparent.
const declareScript = `
import io, os, struct, sys, zlib
import numpy as np
from PIL import Image

os.chdir(sys.argv[1])
rng = np.random.default_rng(3)
pixels = rng.integers(0, 256, (6, 5, 4), dtype=np.uint8)
rgba = Image.fromarray(pixels, "RGBA")
solid = rgba.copy()
solid.putalpha(255)
rgb, gray, la = rgba.convert("RGB"), rgba.convert("L"), rgba.convert("LA")
palette = rgb.quantize(7)

def put(name, data):
    with open(name, "wb") as f:
        f.write(data)

def saved(im, format, **kw):
    b = io.BytesIO()
    im.save(b, format, **kw)
    return b.getvalue()

for name, im in ("rgba", rgba), ("solid", solid), ("la", la), ("rgb", rgb), ("gray", gray), ("palette", palette):
    put(name + ".png", saved(im, "PNG"))
for name, im, key in ("palette", palette, 3), ("last", palette, 6), ("gray", gray, 9), ("rgb", rgb, (1, 2, 3)), ("partly", palette, bytes([9, 255, 80])), ("all-opaque", palette, bytes([255] * 7)):
    put(name + "-trns.png", saved(im, "PNG", transparency=key))

for name, kw in ("opaque", {}), ("transparent", {"transparency": 2}), ("zero", {"transparency": 0}):
    put(name + ".gif", saved(palette, "GIF", **kw))
frames = [palette.copy(), palette.copy()]
g = saved(palette, "GIF")
at = g.index(b",", 13 + 3 * 2 ** ((g[10] & 7) + 1))
start = 13 + 3 * 2 ** ((g[10] & 7) + 1)
image = g[at:-1]
flagged, plain = b"\x21\xf9\x04\x01\x00\x00\x05\x00", b"\x21\xf9\x04\x00\x00\x00\x05\x00"
comment = b"\x21\xfe\x05\xf9\x04\x01\x00\x00\x00"
for name, first, second in ("first-frame", flagged, plain), ("second-frame", plain, flagged), ("comment", comment, b""):
    put(name + ".gif", g[:start] + first + image + second + image + b";")

def bmp(size, compression, masks=(), bits=32, alpha=None):
    p = pixels.copy()
    if alpha is not None:
        p[..., 3] = alpha
    rows = p[::-1, :, [2, 1, 0, 3]].tobytes()
    if bits == 24:
        rows = b"".join(r.tobytes() + b"\0" for r in p[::-1, :, [2, 1, 0]])
    info = struct.pack("<IiiHHIIiiII", size, 5, 6, 1, bits, compression, 0, 2835, 2835, 0, 0)
    info += b"".join(struct.pack("<I", m) for m in masks)
    info += b"\0" * (size - len(info))
    return b"BM" + struct.pack("<IHHI", 14 + size + len(rows), 0, 0, 14 + size) + info + rows

rgbmask, alphamask = (0xFF0000, 0xFF00, 0xFF), 0xFF000000
put("v3.bmp", bmp(40, 0))
put("v3-24.bmp", bmp(40, 0, bits=24))
for size in 108, 124:
    put(f"{size}-raw.bmp", bmp(size, 0))
    put(f"{size}-raw-masks.bmp", bmp(size, 0, rgbmask + (alphamask,)))
    put(f"{size}-alpha.bmp", bmp(size, 3, rgbmask + (alphamask,)))
    put(f"{size}-alpha-255.bmp", bmp(size, 3, rgbmask + (alphamask,), alpha=255))
    put(f"{size}-no-alpha.bmp", bmp(size, 3, rgbmask + (0,)))
    put(f"{size}-24.bmp", bmp(size, 0, rgbmask + (alphamask,), bits=24))

for name, im in ("rgba", rgba), ("solid", solid), ("rgb", rgb), ("gray", gray), ("palette", palette), ("la", la):
    put(name + ".tiff", saved(im, "TIFF"))

def tiff(extra):
    tags = [(256, 5), (257, 6), (259, 1), (262, 2), (273, None), (277, 4), (278, 6), (279, pixels.nbytes)]
    n = len(tags) + 1 + (extra is not None)
    head = 8 + 2 + 12 * n + 4
    out = [struct.pack("<HHII", 258, 3, 4, head)] + [
        struct.pack("<HHIHH", t, 3, 1, head + 8 if v is None else v, 0) for t, v in tags]
    if extra is not None:
        out.append(struct.pack("<HHIHH", 338, 3, 1, extra, 0))
    out.sort(key=lambda e: struct.unpack("<H", e[:2])[0])
    return b"II*\0" + struct.pack("<IH", 8, n) + b"".join(out) + b"\0" * 4 + struct.pack("<4H", 8, 8, 8, 8) + pixels.tobytes()

for extra in 0, 1, 2:
    put(f"extra{extra}.tiff", tiff(extra))

for name, im in ("rgba", rgba), ("solid", solid), ("rgb", rgb):
    for lossless in True, False:
        kw = {"lossless": lossless, "exact": lossless}
        put(f"{name}-{lossless}.webp", saved(im, "WEBP", **kw))
        put(f"{name}-{lossless}-animated.webp", saved(im, "WEBP", save_all=True, append_images=[im.transpose(0)], **kw))
# A lossless image with the hint of its header the other way round, bare and in VP8X.
def hint(data):
    at = data.index(b"VP8L") + 8
    return data[:at + 4] + bytes([data[at + 4] ^ 16]) + data[at + 5:]

def extended(data, flags):
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes([flags, 0, 0, 0, 4, 0, 0, 5, 0, 0]) + data[12:]
    return b"RIFF" + struct.pack("<I", len(body)) + body

for name, im in ("rgba", rgba), ("rgb", rgb):
    w = saved(im, "WEBP", lossless=True, exact=True)
    w = b"RIFF" + struct.pack("<I", 4 + len(w[w.index(b"VP8L"):])) + b"WEBP" + w[w.index(b"VP8L"):]
    put(name + "-hint.webp", hint(w))
    for flags in 0, 16:
        put(f"{name}-x{flags}.webp", extended(w, flags))
put("opaque.jpg", saved(rgb, "JPEG"))

for name in sorted(os.listdir(".")):
    try:
        im = Image.open(name)
        print(name, im.mode in ("LA", "PA", "La", "RGBA", "RGBa") or "transparency" in im.info)
    except Exception:
        print(name, None)
`

// A file is transparent if Pillow says so.
func TestTransparentAgainstPillow(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command(pillowPython(t), "-c", declareScript, dir).Output()
	require.NoError(t, err)
	seen := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, pillow, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		c, err := ReadConfig(data)
		if err != nil || pillow == "None" {
			t.Logf("%s: Pillow says %s, here: %v", name, pillow, err)
			continue
		}
		seen[filepath.Ext(name)+pillow]++
		if got := c.Transparent; got != (pillow == "True") {
			t.Errorf("%s: transparent %v, Pillow %s", name, got, pillow)
		}
	}
	for _, ext := range []string{".png", ".gif", ".bmp", ".tiff", ".webp"} {
		if seen[ext+"True"] == 0 || seen[ext+"False"] == 0 {
			t.Errorf("%s: %d transparent and %d opaque files; the test needs both", ext, seen[ext+"True"], seen[ext+"False"])
		}
	}
}

// In a file that declares no transparency, the bytes in the place of alpha are ignored.
func TestOpaqueIsNotBlended(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, exec.Command(pillowPython(t), "-c", declareScript, dir).Run())
	plain, white := New(Options{}), New(Options{Alpha: OnWhite})
	for _, name := range []string{"v3.bmp", "108-raw.bmp", "124-raw-masks.bmp", "rgba-hint.webp", "palette.png",
		"opaque.gif"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		want, err := openAll(t, plain, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := openAll(t, white, data); err != nil || string(got.pix) != string(want.pix) {
			t.Errorf("%s: is blended (%v)", name, err)
		}
	}
}
