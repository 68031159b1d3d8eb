package preprocess

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/preprocess/field"
)

const imageFiles = "../../../internal/imagefile/testdata/kinds/"

// raw reads a file of the repository.
func raw(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// scanOf returns where the bytes of a JPEG's last scan begin.
func scanOf(t *testing.T, data []byte) int {
	t.Helper()
	at := bytes.LastIndex(data, []byte{0xff, 0xda})
	if at < 0 {
		t.Fatal("no scan")
	}
	return at + 2 + int(binary.BigEndian.Uint16(data[at+2:]))
}

// flipped returns data with the bits of n bytes of its scan inverted.
func flipped(t *testing.T, data []byte, n int) []byte {
	data = slices.Clone(data)
	at := scanOf(t, data)
	step := (len(data) - at - 2) / (n + 1)
	for i := range n {
		if p := at + (i+1)*step; data[p] != 0xff && data[p-1] != 0xff && data[p] != 0 {
			data[p] ^= 0x55
		}
	}
	return data
}

// oriented returns a JPEG that says it is to be turned by a quarter.
func oriented(data []byte) []byte {
	exif := []byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")
	return slices.Concat(data[:2], exif, data[2:])
}

// profiled returns a JPEG with a color profile that nobody can use.
func profiled(data []byte) []byte {
	icc := []byte("\xff\xe2\x00\x18ICC_PROFILE\x00\x01\x01nonsense")
	binary.BigEndian.PutUint16(icc[2:], uint16(len(icc)-2))
	return slices.Concat(data[:2], icc, data[2:])
}

// pngOfSize returns a PNG whose header claims that size.
func pngOfSize(data []byte, w, h uint32) []byte {
	data = slices.Clone(data)
	binary.BigEndian.PutUint32(data[16:], w)
	binary.BigEndian.PutUint32(data[20:], h)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

// Every odd kind of image: what becomes of it without a flag, and with the flag that there
// is for it. An empty want says that it is taken, as it is by Pillow: corruption inside of the
// entropy-coded data that leads back to valid codes looks like a picture.
func TestOddImages(t *testing.T) {
	baseline, progressive := raw(t, imageFiles+"large-420.jpg"), raw(t, imageFiles+"large-420-progressive.jpg")
	restart, png := raw(t, imageFiles+"large-restart.jpg"), raw(t, imageFiles+"RGB.png")
	cut := func(data []byte, percent int) []byte { return data[:len(data)*percent/100] }
	middle := func(data []byte) int { return (scanOf(t, data) + len(data)) / 2 }
	replace := func(data []byte, at int, with ...byte) []byte {
		return slices.Concat(data[:at], with, data[at+len(with):])
	}
	sof := bytes.Index(baseline, []byte{0xff, 0xc0})
	cases := []struct {
		name string
		data []byte
		want string // part of the reason, with the flags' defaults
	}{
		{"cut in the middle.jpg", cut(baseline, 50), "truncated"},
		{"cut at 90.jpg", cut(baseline, 90), "truncated"},
		{"no end mark.jpg", baseline[:len(baseline)-2], "truncated"},
		{"end mark too early.jpg", replace(baseline, middle(baseline), 0xff, 0xd9), "corrupt image"},
		{"zero bytes.jpg", replace(baseline, middle(baseline), make([]byte, 64)...), ""},
		{"flipped bits.jpg", flipped(t, baseline, 5), ""},
		{"progressive, cut.jpg", cut(progressive, 60), "truncated"},
		{"restart markers, flipped bits.jpg", flipped(t, restart, 5), "corrupt near row"},
		{"garbage behind.jpg", slices.Concat(baseline, []byte("garbage")), ""},
		{"lossless coding.jpg", replace(baseline, sof, 0xff, 0xc3), "unsupported image"},
		{"cmyk.jpg", raw(t, imageFiles+"cmyk.jpg"), ""},
		{"turned.jpg", oriented(baseline), ""},
		{"profile.jpg", profiled(baseline), ""},
		{"bomb.jpg", raw(t, "../../../testdata/corrupt/bomb.jpg"), "image is too large"},
		{"bomb.png", pngOfSize(png, 20000, 20000), "image is too large"},
		{"bad checksum.png", replace(png, len(png)-14, 0, 0), "corrupt image"},
		{"cut.png", cut(png, 60), "corrupt image"},
		{"color of 16 bits.png", raw(t, imageFiles+"RGB16.png"), "has 3 channels of uint16, and the first sample, a.png, has 8-bit pixels; --sixteen-bit high-byte makes 8 bits of 16"},
		{"gray of 16 bits.png", raw(t, imageFiles+"I16.png"), "has 1 channel of uint16, and the first sample"},
		{"alpha.png", raw(t, imageFiles+"RGBA.png"), ""},
		{"gray with alpha.png", raw(t, imageFiles+"LA.png"), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := reasonOf(t, c.name, c.data, func(*Config) {})
			if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
				t.Errorf("reason %q, want %q in it", got, c.want)
			}
		})
	}
}

// reasonOf returns kind and reason for which an image is left out, "" if it is not.
func reasonOf(t *testing.T, name string, data []byte, change func(*Config)) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "photos")
	put(t, source, "a.png", picture(t, ".png", 40, 30, 1))
	put(t, source, name, data)
	c := config(t, source)
	c.Skip = true
	change(&c)
	s := mustRun(t, c)
	if len(s.Skipped) == 0 {
		return ""
	}
	return s.kinds[0] + ": " + s.Skipped[0].Reason
}

// Each flag on odd images does what it says.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		file   string
		change func(*Config)
		want   string
	}{
		{"RGBA.png", func(c *Config) { c.RefuseAlpha = true }, "is transparent, which is refused; --alpha dropped takes such images"},
		{"LA.png", func(c *Config) { c.RefuseAlpha = true }, "is transparent"},
		{"transparent.png", func(c *Config) { c.RefuseAlpha = true }, "is transparent"},
		{"transparent.gif", func(c *Config) { c.RefuseAlpha = true }, "is transparent"},
		{"lossy-alpha.webp", func(c *Config) { c.RefuseAlpha = true }, "is transparent"},
		{"lossless.webp", func(c *Config) { c.RefuseAlpha = true }, ""},
		{"RGBA.bmp", func(c *Config) { c.RefuseAlpha = true }, ""},
		{"RGB.tiff", func(c *Config) { c.RefuseAlpha = true }, ""},
		{"RGB.png", func(c *Config) { c.RefuseAlpha = true }, ""},
		{"RGB16.png", func(c *Config) { c.Deep = field.RefuseDeep }, "has 16 bits a sample, which is refused; --sixteen-bit kept or high-byte takes such images"},
		{"I16.png", func(c *Config) { c.Deep = field.RefuseDeep }, "has 16 bits a sample"},
		{"RGB.png", func(c *Config) { c.Deep = field.RefuseDeep }, ""},
		{"cmyk.jpg", func(c *Config) { c.RefuseCMYK = true }, "is CMYK, which is refused; --cmyk converted takes such images"},
		{"cmyk-no-adobe.jpg", func(c *Config) { c.RefuseCMYK = true }, "is CMYK"},
		{"RGB16.png", func(c *Config) { c.Deep = field.HighByte }, ""},
		{"../tiff/channels5.tif", func(c *Config) { c.Deep = field.RefuseDeep }, "has 5 channels of uint8, which is refused; --sixteen-bit kept takes such images"},
		{"../tiff/gray-float32.tif", func(c *Config) { c.Deep = field.HighByte }, "it has 1 channels of float32"},
		{"CMYK.tiff", func(*Config) {}, ""},
		{"CMYK.tiff", func(c *Config) { c.RefuseCMYK = true }, "is CMYK"},
		{"420.jpg", func(c *Config) { c.RefuseCMYK = true }, ""},
	} {
		got := reasonOf(t, "x"+filepath.Ext(c.file), raw(t, imageFiles+c.file), c.change)
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: reason %q, want %q in it", c.file, got, c.want)
		}
	}
}

// EXIF's orientation is applied on request alone, and the manifest says which it was.
func TestOrientation(t *testing.T) {
	source := filepath.Join(t.TempDir(), "photos")
	put(t, source, "a.jpg", oriented(picture(t, ".jpg", 40, 30, 1)))
	for want, orient := range map[string]bool{"(3, 30, 40) ignored": false, "(3, 40, 30) applied": true} {
		c := config(t, source)
		c.Resize, c.Crop, c.Orient = nil, nil, orient
		mustRun(t, c)
		m := manifest(t, c.Dest)
		if got := m.Fields[0].Shape.String() + " " + m.Recipe.Options["exif-orientation"]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Transparency is put on white or black on request, and the manifest says on which.
func TestAlpha(t *testing.T) {
	source := filepath.Join(t.TempDir(), "photos")
	m := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	m.SetNRGBA(0, 0, color.NRGBA{100, 200, 0, 51})
	m.SetNRGBA(1, 0, color.NRGBA{100, 200, 0, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	put(t, source, "a.png", b.Bytes())
	for flag, want := range map[string][]byte{
		"dropped": {100, 200, 0, 100, 200, 0}, "white": {224, 244, 204, 100, 200, 0}, "black": {20, 40, 0, 100, 200, 0},
	} {
		dest := filepath.Join(t.TempDir(), "ds")
		c, err := parseFlags(t, source+" "+dest+" --layout hwc --alpha "+flag)
		if err != nil {
			t.Fatal(err)
		}
		mustRun(t, c)
		if got := payload(t, dest, "images"); !bytes.Equal(got, want) {
			t.Errorf("--alpha %s: pixels %v, want %v", flag, got, want)
		}
		if got := manifest(t, dest).Recipe.Options["alpha"]; got != flag {
			t.Errorf("--alpha %s: the recipe says %s", flag, got)
		}
	}
}

// deepFile returns a 16-bit PNG of w x h pixels whose values are 257*(x+10*y)+add, or a NumPy array of those values.
func deepFile(t *testing.T, ext string, w, h, add int) []byte {
	t.Helper()
	var values []byte
	m := image.NewGray16(image.Rect(0, 0, w, h))
	for i := range w * h {
		v := uint16(257*(i%w+10*(i/w)) + add)
		m.SetGray16(i%w, i/w, color.Gray16{Y: v})
		values = binary.LittleEndian.AppendUint16(values, v)
	}
	if ext == ".npy" {
		header := fmt.Sprintf("{'descr': '<u2', 'fortran_order': False, 'shape': (%d, %d), }\n", h, w)
		return slices.Concat([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(header))), []byte(header), values)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Images of more than 8 bits, of floats and of other channels, and folders of NumPy arrays, keep type, channels and values.
func TestDeepImages(t *testing.T) {
	tiff := func(name string) []byte { return raw(t, imageFiles+"../tiff/"+name+".tif") }
	for _, c := range []struct {
		name, flags string
		files       map[string][]byte
		want        string // the field, or part of the error
		first       []byte // of the payload
	}{
		{"png", "", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5), "b/1.png": deepFile(t, ".png", 4, 3, 6)},
			"uint16 (1, 3, 4) CHW", []byte{5, 0, 6, 1, 7, 2, 8, 3, 15, 10}},
		{"npy", "", map[string][]byte{"a/1.npy": deepFile(t, ".npy", 4, 3, 5), "b/1.npy": deepFile(t, ".npy", 4, 3, 6), "b/README": nil},
			"uint16 (3, 4) ", []byte{5, 0, 6, 1, 7, 2, 8, 3, 15, 10}},
		{"crop", "--crop 2x1 --layout hwc --dtype uint16", map[string][]byte{"a/1.png": deepFile(t, ".png", 3, 4, 5)}, "uint16 (2, 1, 1) HWC", []byte{5 + 11, 11, 5 + 21, 21}},
		{"sizes", "--resize 16x20", map[string][]byte{"a/1.png": deepFile(t, ".png", 30, 40, 5), "b/1.png": deepFile(t, ".png", 80, 70, 5)}, "uint16 (1, 16, 20) CHW", nil},
		{"floats", "--resize 16 --dtype float32 --normalize 0.5/0.25", map[string][]byte{"a/1.png": deepFile(t, ".png", 16, 16, 0)}, "float32 (1, 16, 16) CHW", []byte{0, 0, 0, 0xc0}},
		{"channels", "", map[string][]byte{"a/1.tif": tiff("channels5"), "b/1.tif": tiff("channels5-planar")}, "uint8 (5, 29, 37) CHW", nil},
		{"float TIFF", "", map[string][]byte{"a/1.tif": tiff("gray-float32"), "b/1.tif": tiff("pillow-f")}, "float32 (1, 29, 37) CHW", nil},
		{"pages", "", map[string][]byte{"a/1.tif": tiff("pages")}, "uint16 (3, 29, 37) CHW", nil},
		{"zstd", "", map[string][]byte{"a/1.tif": tiff("gray16-zstd-predictor")}, "uint16 (1, 29, 37) CHW", nil},
		{"8 bits", "--dtype uint8", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5)}, "uint8 (3, 3, 4) CHW", []byte{0, 1, 2, 3, 10}},
		{"high bytes", "--sixteen-bit high-byte --color gray", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5)}, "uint8 (1, 3, 4) CHW", []byte{0, 1, 2, 3, 10}},

		{"not of one size", "", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5), "a/2.png": deepFile(t, ".png", 3, 4, 5)}, "images of several sizes", nil},
		{"not of one type", "", map[string][]byte{"a/1.tif": tiff("gray-float32"), "a/2.tif": tiff("gray-uint16")},
			"a/2.tif: has 1 channel of uint16, and the first sample, a/1.tif, has 1 channel of float32", nil},
		{"8 bits behind", "", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5), "a/2.png": picture(t, ".png", 4, 3, 1)}, "has 3 channels of uint8, and the first sample", nil},
		{"arrays resized", "--resize 8", map[string][]byte{"a/1.npy": deepFile(t, ".npy", 4, 3, 5)}, "NumPy arrays are stored as they are", nil},
		{"array cut", "", map[string][]byte{"a/1.npy": deepFile(t, ".npy", 4, 3, 5)[:70]}, "cut short", nil},
		{"arrays of two shapes", "", map[string][]byte{"a/1.npy": deepFile(t, ".npy", 4, 3, 5), "b/1.npy": deepFile(t, ".npy", 3, 4, 5)},
			"b/1.npy: has an array of uint16 (4, 3), and the first sample, a/1.npy, has an array of uint16 (3, 4)", nil},
		{"color", "--color rgb", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5)}, "--color rgb converts images of 8 bits only", nil},
		{"figures", "--normalize imagenet", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5)}, "which --normalize changes only with --dtype float32", nil},
		{"own figures", "--normalize dataset", map[string][]byte{"a/1.png": deepFile(t, ".png", 4, 3, 5)}, "--normalize dataset is for images of 8 bits", nil},
		{"8 bits as 16", "--dtype uint16", map[string][]byte{"a/1.png": picture(t, ".png", 4, 3, 1)}, "--dtype uint16 is for images of 16", nil},
		{"files", "--keep-encoded", map[string][]byte{"a/1.tif": tiff("channels5")}, "preprocess stores such images as arrays", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, dest := filepath.Join(t.TempDir(), "src"), filepath.Join(t.TempDir(), "ds")
			for name, data := range c.files {
				put(t, source, name, data)
			}
			config, err := parseFlags(t, source+" "+dest+" "+c.flags)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = Run(t.Context(), config, &silent{}); err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q in it", err, c.want)
				}
				return
			}
			m := manifest(t, dest)
			f := m.Fields[0]
			if got := fmt.Sprintf("%v %v %s", f.DType, f.Shape, f.Layout); got != c.want || m.Records != int64(len(c.files)-strings.Count(c.name, "npy")) {
				t.Errorf("%s, %d records; want %s", got, m.Records, c.want)
			}
			if got := payload(t, dest, "images"); !bytes.HasPrefix(got, c.first) {
				t.Errorf("values %v, want %v", got[:len(c.first)], c.first)
			}
		})
	}
}
