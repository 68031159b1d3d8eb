package prepare

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

const imageFiles = "../internal/imagefile/testdata/kinds/"

// rawFile reads a file of the repository.
func rawFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
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

// oriented returns a JPEG that says it is to be turned by a quarter.
func oriented(data []byte) []byte {
	exif := []byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")
	return slices.Concat(data[:2], exif, data[2:])
}

// profiled returns a JPEG with an unusable color profile.
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

// Odd images and their results; package imagefile has more of them. An empty want says that it is taken, as it is by Pillow: corruption inside of the
// entropy-coded data that leads back to valid codes looks like a picture.
func TestOddImages(t *testing.T) {
	baseline, png := rawFile(t, imageFiles+"large-420.jpg"), rawFile(t, imageFiles+"RGB.png")
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
		{"cut in the middle.jpg", baseline[:len(baseline)/2], "truncated"},
		{"end mark too early.jpg", replace(baseline, middle(baseline), 0xff, 0xd9), "corrupt image"},
		{"zero bytes.jpg", replace(baseline, middle(baseline), make([]byte, 64)...), ""},
		{"lossless coding.jpg", replace(baseline, sof, 0xff, 0xc3), "unsupported image"},
		{"cmyk.jpg", rawFile(t, imageFiles+"cmyk.jpg"), ""},
		{"profile.jpg", profiled(baseline), ""},
		{"bomb.jpg", rawFile(t, "../testdata/corrupt/bomb.jpg"), "image is too large"},
		{"bomb.png", pngOfSize(png, 20000, 20000), "image is too large"},
		{"bad checksum.png", replace(png, len(png)-14, 0, 0), "corrupt image"},
		{"color of 16 bits.png", rawFile(t, imageFiles+"RGB16.png"), "has 3 channels of uint16, and the first sample, a.png, has 8-bit pixels; --sixteen-bit high-byte makes 8 bits of 16"},
		{"gray of 16 bits.png", rawFile(t, imageFiles+"I16.png"), "has 1 channel of uint16, and the first sample"},
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
	rawtest.Put(t, source, "a.png", rawtest.Picture(t, ".png", 40, 30, 1))
	rawtest.Put(t, source, name, data)
	c := config(t, source)
	c.Skip = true
	change(&c)
	s := mustRun(t, c)
	if len(s.Skipped) == 0 {
		return ""
	}
	return slices.Collect(maps.Keys(s.SkippedKinds))[0] + ": " + s.Skipped[0].Reason
}

// Each flag on odd images does what it says.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		file   string
		change func(*Config)
		want   string
	}{
		{"RGBA.png", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, "is transparent, which is refused; --alpha dropped takes such images"},
		{"LA.png", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, "is transparent"},
		{"transparent.png", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, "is transparent"},
		{"transparent.gif", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, "is transparent"},
		{"lossy-alpha.webp", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, "is transparent"},
		{"lossless.webp", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, ""},
		{"RGBA.bmp", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, ""},
		{"RGB.tiff", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, ""},
		{"RGB.png", func(c *Config) { c.Images.Rules.RefuseAlpha = true }, ""},
		{"RGB16.png", func(c *Config) { c.Images.Rules.Deep = RefuseDeep }, "has 16 bits a sample, which is refused; --sixteen-bit kept or high-byte takes such images"},
		{"I16.png", func(c *Config) { c.Images.Rules.Deep = RefuseDeep }, "has 16 bits a sample"},
		{"RGB.png", func(c *Config) { c.Images.Rules.Deep = RefuseDeep }, ""},
		{"cmyk.jpg", func(c *Config) { c.Images.Rules.RefuseCMYK = true }, "is CMYK, which is refused; --cmyk converted takes such images"},
		{"cmyk-no-adobe.jpg", func(c *Config) { c.Images.Rules.RefuseCMYK = true }, "is CMYK"},
		{"RGB16.png", func(c *Config) { c.Images.Rules.Deep = HighByte }, ""},
		{"../tiff/channels5.tif", func(c *Config) { c.Images.Rules.Deep = RefuseDeep }, "has 5 channels of uint8, which is refused; --sixteen-bit kept takes such images"},
		{"../tiff/gray-float32.tif", func(c *Config) { c.Images.Rules.Deep = HighByte }, "it has 1 channels of float32"},
		{"CMYK.tiff", func(*Config) {}, ""},
		{"CMYK.tiff", func(c *Config) { c.Images.Rules.RefuseCMYK = true }, "is CMYK"},
		{"420.jpg", func(c *Config) { c.Images.Rules.RefuseCMYK = true }, ""},
	} {
		got := reasonOf(t, "x"+filepath.Ext(c.file), rawFile(t, imageFiles+c.file), c.change)
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: reason %q, want %q in it", c.file, got, c.want)
		}
	}
}

// EXIF's orientation is applied on request alone, and the manifest says which it was.
func TestOrientation(t *testing.T) {
	source := filepath.Join(t.TempDir(), "photos")
	rawtest.Put(t, source, "a.jpg", oriented(rawtest.Picture(t, ".jpg", 40, 30, 1)))
	for want, orient := range map[string]bool{"(3, 30, 40) ignored": false, "(3, 40, 30) applied": true} {
		c := config(t, source)
		c.Images.Resize, c.Images.Crop, c.Images.Rules.Orient = nil, nil, orient
		mustRun(t, c)
		m := rawtest.Manifest(t, c.Dest)
		if got := m.Fields[0].Shape.String() + " " + m.Recipe.Options["exif-orientation"]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
