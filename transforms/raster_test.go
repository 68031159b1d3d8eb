package transforms

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// rasterScript writes images of the modes that Pillow has for more than 8 bits, and Pillow's
// resizes of them: "MODE FILTER WIDTHxHEIGHT.raw" from 41 x 53 pixels in MODE.raw. The values stay
// in range when interpolated: Pillow wraps around if they do not.
const rasterScript = `
import sys, warnings
import numpy as np
from PIL import Image
warnings.simplefilter("ignore")
rng = np.random.default_rng(3)
a = rng.random((53, 41))
for mode, x in ("I;16", (20000 + a * 20000).astype("<u2")), ("I", (a * 2e9 - 1e9).astype("<i4")), ("F", (a * 100 - 30).astype("<f4")):
    im = Image.fromarray(x)
    assert im.mode == mode, im.mode
    open(f"{sys.argv[1]}/{mode}.raw", "wb").write(x.tobytes())
    for name in "BOX", "BILINEAR", "HAMMING", "BICUBIC", "LANCZOS", "NEAREST":
        for size in (20, 31), (64, 90), (41, 20), (17, 53):
            y = np.asarray(im.resize(size, getattr(Image.Resampling, name)))
            open(f"{sys.argv[1]}/{mode} {name} {size[0]}x{size[1]}.raw", "wb").write(y.astype(x.dtype).tobytes())
`

// A Raster is resized as Pillow resizes I;16, I and F, bit for bit, in every channel.
func TestRasterAgainstPillow(t *testing.T) {
	dir := t.TempDir()
	pythontest.Run(t, "from PIL import Image; assert int(Image.__version__.split('.')[0]) >= 11", "-c", rasterScript, dir)
	paths, err := filepath.Glob(filepath.Join(dir, "* *.raw"))
	if err != nil || len(paths) != 3*6*4 {
		t.Fatal(paths, err)
	}
	dtypes := map[string]tensor.DType{"I;16": tensor.Uint16, "I": tensor.Int32, "F": tensor.Float32}
	for _, path := range paths {
		mode, rest, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".raw"), " ")
		filter, size, _ := strings.Cut(rest, " ")
		in, err := os.ReadFile(filepath.Join(dir, mode+".raw"))
		require.NoError(t, err)
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		m := Raster{Pix: in, W: 41, H: 53, C: 1, DType: dtypes[mode]}
		var w, h int
		if _, err := fmt.Sscanf(size, "%dx%d", &w, &h); err != nil {
			t.Fatal(err)
		}
		p, err := Compose(Resize{Size: []int{h, w}, Interpolation: strings.ToLower(filter), PassOrder: "auto"}, ToLayout{CHW})
		require.NoError(t, err)
		for _, channels := range []int{1, 5} {
			got := make([]byte, channels*len(want))
			require.NoError(t, p.Raster(got, repeated(m, channels)))
			if !bytes.Equal(got, bytes.Repeat(want, channels)) {
				t.Errorf("%s %s %s, %d channels: not Pillow's", mode, filter, size, channels)
			}
		}
	}
}

// repeated returns an image with n channels that are the one of m.
func repeated(m Raster, n int) Raster {
	size := m.DType.Size()
	out := Raster{W: m.W, H: m.H, C: n, DType: m.DType}
	for i := range m.W * m.H {
		out.Pix = append(out.Pix, bytes.Repeat(m.Pix[i*size:][:size], n)...)
	}
	return out
}

// Crops, axes, conversion and normalization work as for images of 8 bits; other transforms are errors.
func TestRaster(t *testing.T) {
	m := Raster{W: 3, H: 2, C: 2, DType: tensor.Uint16}
	for i := range 12 {
		m.Pix = binary.LittleEndian.AppendUint16(m.Pix, uint16(1000*i))
	}
	p, err := Compose(Crop{Top: 1, Left: 1, Height: 1, Width: 2}, ToLayout{CHW}, ConvertDType{DType: tensor.Float32},
		Normalize{Mean: []float64{0.5}, Std: []float64{0.25}})
	require.NoError(t, err)
	info, err := p.RasterOutput(m)
	if err != nil || info.String() != "float32 (2, 1, 2)" {
		t.Fatal(info, err)
	}
	dst := make([]byte, info.Bytes())
	require.NoError(t, p.Raster(dst, m))
	x := make([]float64, 4)
	load(x, dst, tensor.Float32)
	for i, v := range []float32{8000, 10000, 9000, 11000} {
		if want := (v/65535 - 0.5) / 0.25; x[i] != float64(want) {
			t.Errorf("value %d is %v, want %v", i, x[i], want)
		}
	}
	for want, ts := range map[string][]Transform{
		"can be resized, cropped": {Grayscale{}},
		"smaller than its crop":   {CenterCrop{Size: []int{9}}},
		"not float16":             {ConvertDType{DType: tensor.Float16}},
		"no value for white":      {ConvertDType{DType: tensor.Float32}},
	} {
		m := Raster{W: 3, H: 2, C: 3, DType: tensor.Uint16}
		if strings.Contains(want, "white") {
			m.DType = tensor.Int32
		}
		p, err := Compose(ts...)
		require.NoError(t, err)
		if _, err := p.RasterOutput(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}
