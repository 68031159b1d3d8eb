package preprocess

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
)

// Images of more than 8 bits, of floats and of other channels, and folders of NumPy arrays, keep type, channels and values.
func TestDeepImages(t *testing.T) {
	tiff := func(name string) []byte {
		data, err := os.ReadFile("../../../internal/imagefile/testdata/tiff/" + name + ".tif")
		require.NoError(t, err)
		return data
	}
	for _, c := range []struct {
		name, flags string
		files       map[string][]byte
		want        string // the field, or part of the error
		first       []byte // of the payload
	}{
		{"png", "", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5), "b/1.png": rawtest.Deep(t, ".png", 4, 3, 6)},
			"uint16 (1, 3, 4) CHW", []byte{5, 0, 6, 1, 7, 2, 8, 3, 15, 10}},
		{"npy", "", map[string][]byte{"a/1.npy": rawtest.Deep(t, ".npy", 4, 3, 5), "b/1.npy": rawtest.Deep(t, ".npy", 4, 3, 6), "b/README": nil},
			"uint16 (3, 4) ", []byte{5, 0, 6, 1, 7, 2, 8, 3, 15, 10}},
		{"crop", "--crop 2x1 --layout hwc --dtype uint16", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 3, 4, 5)}, "uint16 (2, 1, 1) HWC", []byte{5 + 11, 11, 5 + 21, 21}},
		{"sizes", "--resize 16x20", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 30, 40, 5), "b/1.png": rawtest.Deep(t, ".png", 80, 70, 5)}, "uint16 (1, 16, 20) CHW", nil},
		{"floats", "--resize 16 --dtype float32 --normalize 0.5/0.25", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 16, 16, 0)}, "float32 (1, 16, 16) CHW", []byte{0, 0, 0, 0xc0}},
		{"channels", "", map[string][]byte{"a/1.tif": tiff("channels5"), "b/1.tif": tiff("channels5-planar")}, "uint8 (5, 29, 37) CHW", nil},
		{"float TIFF", "", map[string][]byte{"a/1.tif": tiff("gray-float32"), "b/1.tif": tiff("pillow-f")}, "float32 (1, 29, 37) CHW", nil},
		{"pages", "", map[string][]byte{"a/1.tif": tiff("pages")}, "uint16 (3, 29, 37) CHW", nil},
		{"zstd", "", map[string][]byte{"a/1.tif": tiff("gray16-zstd-predictor")}, "uint16 (1, 29, 37) CHW", nil},
		{"8 bits", "--dtype uint8", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5)}, "uint8 (3, 3, 4) CHW", []byte{0, 1, 2, 3, 10}},
		{"high bytes", "--sixteen-bit high-byte --color gray", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5)}, "uint8 (1, 3, 4) CHW", []byte{0, 1, 2, 3, 10}},

		{"not of one size", "", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5), "a/2.png": rawtest.Deep(t, ".png", 3, 4, 5)}, "images of several sizes", nil},
		{"not of one type", "", map[string][]byte{"a/1.tif": tiff("gray-float32"), "a/2.tif": tiff("gray-uint16")},
			"a/2.tif: has 1 channel of uint16, and the first sample, a/1.tif, has 1 channel of float32", nil},
		{"8 bits second", "", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5), "a/2.png": rawtest.Picture(t, ".png", 4, 3, 1)}, "has 3 channels of uint8, and the first sample", nil},
		{"arrays resized", "--resize 8", map[string][]byte{"a/1.npy": rawtest.Deep(t, ".npy", 4, 3, 5)}, "NumPy arrays are stored as they are", nil},
		{"array cut", "", map[string][]byte{"a/1.npy": rawtest.Deep(t, ".npy", 4, 3, 5)[:70]}, "cut short", nil},
		{"arrays of two shapes", "", map[string][]byte{"a/1.npy": rawtest.Deep(t, ".npy", 4, 3, 5), "b/1.npy": rawtest.Deep(t, ".npy", 3, 4, 5)},
			"b/1.npy: has an array of uint16 (4, 3), and the first sample, a/1.npy, has an array of uint16 (3, 4)", nil},
		{"color", "--color rgb", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5)}, "--color rgb converts images of 8 bits only", nil},
		{"statistics", "--normalize imagenet", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5)}, "which --normalize changes only with --dtype float32", nil},
		{"own statistics", "--normalize dataset", map[string][]byte{"a/1.png": rawtest.Deep(t, ".png", 4, 3, 5)}, "--normalize dataset is for images of 8 bits", nil},
		{"8 bits as 16", "--dtype uint16", map[string][]byte{"a/1.png": rawtest.Picture(t, ".png", 4, 3, 1)}, "--dtype uint16 is for images of 16", nil},
		{"files", "--keep-encoded", map[string][]byte{"a/1.tif": tiff("channels5")}, "preprocess stores such images as arrays", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, dest := filepath.Join(t.TempDir(), "src"), filepath.Join(t.TempDir(), "ds")
			for name, data := range c.files {
				rawtest.Put(t, source, name, data)
			}
			config, err := parseFlags(t, source+" "+dest+" "+c.flags)
			require.NoError(t, err)
			if _, err = prepare.Run(t.Context(), config, &rawtest.Silent{}); err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q in it", err, c.want)
				}
				return
			}
			m := rawtest.Manifest(t, dest)
			f := m.Fields[0]
			if got := fmt.Sprintf("%v %v %s", f.DType, f.Shape, f.Layout); got != c.want || m.Records != int64(len(c.files)-strings.Count(c.name, "npy")) {
				t.Errorf("%s, %d records; want %s", got, m.Records, c.want)
			}
			if got := rawtest.Payload(t, dest, "images"); !bytes.HasPrefix(got, c.first) {
				t.Errorf("values %v, want %v", got[:len(c.first)], c.first)
			}
		})
	}
}
