package imagefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

func configOf(
	f format.Format, w, h int, model string, channels, bits, orientation int, transparent bool, dtype tensor.DType,
) format.Config {
	return format.Config{
		Format: f, Width: w, Height: h, Model: model, Channels: channels, Bits: bits,
		Orientation: orientation, Transparent: transparent, DType: dtype,
	}
}

func TestSniff(t *testing.T) {
	byExt := map[string]format.Format{".jpg": format.JPEG, ".png": format.PNG, ".gif": format.GIF, ".bmp": format.BMP,
		".tiff": format.TIFF, ".webp": format.WebP}
	kinds(t, func(name string, data []byte) {
		want := byExt[filepath.Ext(name)]
		if got := Sniff(data); got != want {
			t.Errorf("%s: sniffed as %q, want %q", name, got, want)
		}
		if got := Sniff(data[:SniffLen]); got != want {
			t.Errorf("%s: the first %d bytes sniffed as %q, want %q", name, SniffLen, got, want)
		}
	})
	for _, head := range []string{"", "\xff", "\xff\xd8", "GIF88a..........", "RIFF????WAVE....", "BM", "%PDF-1.4"} {
		if got := Sniff([]byte(head)); got != "" {
			t.Errorf("%q sniffed as %q", head, got)
		}
	}
}

func TestNotAnImage(t *testing.T) {
	for data, want := range map[string]string{
		"":                              "the file is empty",
		"\x00\x00\x00":                  "all 3 bytes are zero",
		"{\"error\": 404, \"text\": 0}": "looks like text",
		"\x00\x00\x00\x1cftypheic....":  "looks like HEIC; convert all such files to JPEG: magick mogrify -quality 95 -format jpg *.heic",
		"\x00\x00\x00\x1cftypavif....":  "looks like AVIF; convert all such files to PNG: magick mogrify -format png *.avif",
		"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1heic....": "looks like HEIC",
		"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avif....": "looks like AVIF",
		"\x00\x00\x00\x1cftypmp42....":                         "a video",
		"%PDF-1.7":                                             "looks like PDF",
		"PK\x03\x04....":                                       "zip",
		"\x89HDF\r\n\x1a\n":                                    "HDF5",
		"\x93NUMPY\x01\x00":                                    "NumPy",
		"\x01\x02\xfe\xff":                                     "no known format begins like it",
		"caf\xc3\xa9 au lait":                                  "looks like text",
		strings.Repeat("a", 511) + "é":                         "looks like text", // cut within a letter
	} {
		_, err := New(Options{}).Open([]byte(data))
		if !errors.Is(err, format.ErrNotImage) || !strings.HasPrefix(err.Error(), "not an image: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", data, err, want)
		}
	}
}

func TestReadConfig(t *testing.T) {
	for name, want := range map[string]format.Config{
		"420.jpg":             configOf(format.JPEG, 45, 37, "ycbcr", 3, 8, 1, false, tensor.Uint8),
		"420-progressive.jpg": configOf(format.JPEG, 45, 37, "ycbcr", 3, 8, 1, false, tensor.Uint8),
		"gray.jpg":            configOf(format.JPEG, 45, 37, "gray", 1, 8, 1, false, tensor.Uint8),
		"cmyk.jpg":            configOf(format.JPEG, 45, 37, "cmyk", 4, 8, 1, false, tensor.Uint8),
		"ycck.jpg":            configOf(format.JPEG, 45, 37, "ycck", 4, 8, 1, false, tensor.Uint8),
		"rgb-adobe.jpg":       configOf(format.JPEG, 45, 37, "rgb", 3, 8, 1, false, tensor.Uint8),
		"rgb-names.jpg":       configOf(format.JPEG, 45, 37, "rgb", 3, 8, 1, false, tensor.Uint8),
		"orientation6.jpg":    configOf(format.JPEG, 24, 17, "ycbcr", 3, 8, 6, false, tensor.Uint8),
		"orientation6.png":    configOf(format.PNG, 24, 17, "rgb", 3, 8, 6, false, tensor.Uint8),
		"orientation6.webp":   configOf(format.WebP, 24, 17, "ycbcr", 3, 8, 6, false, tensor.Uint8),
		"orientation6.tiff":   configOf(format.TIFF, 24, 17, "rgb", 3, 8, 6, false, tensor.Uint8),
		"RGB.png":             configOf(format.PNG, 45, 37, "rgb", 3, 8, 1, false, tensor.Uint8),
		"RGBA16.png":          configOf(format.PNG, 20, 16, "rgba", 4, 16, 1, true, tensor.Uint16),
		"LA.png":              configOf(format.PNG, 45, 37, "graya", 2, 8, 1, true, tensor.Uint8),
		"I16.png":             configOf(format.PNG, 45, 37, "gray", 1, 16, 1, false, tensor.Uint16),
		"1.png":               configOf(format.PNG, 45, 37, "gray", 1, 1, 1, false, tensor.Uint8),
		"two-bits.png":        configOf(format.PNG, 45, 37, "palette", 1, 2, 1, false, tensor.Uint8),
		"partial.gif":         configOf(format.GIF, 20, 16, "palette", 1, 8, 1, false, tensor.Uint8),
		"P.bmp":               configOf(format.BMP, 45, 37, "palette", 1, 8, 1, false, tensor.Uint8),
		"L.tiff":              configOf(format.TIFF, 45, 37, "gray", 1, 8, 1, false, tensor.Uint8),
		"lossy-44x36.webp":    configOf(format.WebP, 44, 36, "ycbcr", 3, 8, 1, false, tensor.Uint8),
		"lossless-alpha.webp": configOf(format.WebP, 45, 37, "rgba", 4, 8, 1, true, tensor.Uint8),
	} {
		if got, err := ReadConfig(readKind(t, name)); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// The header is enough for ReadConfig, and a header that is cut short is an error.
func TestReadConfigOfPrefixes(t *testing.T) {
	kinds(t, func(name string, data []byte) {
		whole, err := ReadConfig(data)
		if err != nil {
			if notAsPillow[name] == "" {
				t.Errorf("%s: %v", name, err)
			}
			return
		}
		for n := range data {
			c, err := ReadConfig(data[:n])
			c.Orientation, c.Transparent = whole.Orientation, whole.Transparent // may stand further on
			if err == nil && c != whole {
				t.Fatalf("%s: the first %d bytes say %+v, all of it %+v", name, n, c, whole)
			}
			if err != nil && n >= SniffLen && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
				t.Fatalf("%s: the first %d bytes: %v, want ErrCorrupt", name, n, err)
			}
		}
	})
}

func TestBackendSaysWhatIsBuiltIn(t *testing.T) {
	if name, version, ok := strings.Cut(Backend(), " "); !ok || name == "" || version == "" {
		t.Errorf("%q is not a name and a version", Backend())
	}
}

// A file's name plays no part: a PNG that is called .JPEG opens.
func TestNameOfAnotherFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "photo.JPEG")
	require.NoError(t, os.WriteFile(path, readKind(t, "RGB.png"), 0o644))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if m, err := openAll(t, New(Options{}), data); err != nil || m.w != 45 {
		t.Errorf("%dx%d, %v", m.w, m.h, err)
	}
}

// The orientation may be of any integer type that Pillow takes for a number, and in a PNG come after the pixels.
func TestOrientationElsewhere(t *testing.T) {
	exif := func(typ byte, value ...byte) []byte {
		return append([]byte{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, typ, 0, 0, 0, 1}, append(value, 0, 0, 0, 0)...)
	}
	for _, tt := range []struct {
		exif []byte
		want int
	}{
		{exif(3, 0, 6, 0, 0), 6}, {exif(4, 0, 0, 0, 6), 6}, {exif(9, 0, 0, 0, 8), 8}, {exif(8, 0, 2, 0, 0), 2}, {exif(6, 5, 0, 0, 0), 5},
		{exif(1, 6, 0, 0, 0), 1}, {exif(3, 0, 9, 0, 0), 1}, {exif(4, 1, 0, 0, 6), 1}, {exif(77, 0, 6, 0, 0), 1}, {exif(3, 0, 6, 0, 0)[:20], 1},
	} {
		if got := format.Orientation(tt.exif); got != tt.want {
			t.Errorf("% x: %d, want %d", tt.exif, got, tt.want)
		}
	}
	data := readKind(t, "orientation6.png")
	at := bytes.Index(data, []byte("eXIf")) - 4
	end := at + 12 + int(binary.BigEndian.Uint32(data[at:]))
	iend := len(data) - 12
	c, err := ReadConfig(splice(data[:at], data[end:iend], data[at:end], data[iend:]))
	if err != nil || c.Orientation != 6 {
		t.Errorf("after the pixels: %+v, %v", c, err)
	}
}
