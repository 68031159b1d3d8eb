package imagefile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// tiffCase describes a file, as testdata/tiff.py does.
type tiffCase struct {
	Samples, DType string
	Shape          []int
	RGB, Refused   string
}

// tiffCases returns the files of a folder.
func tiffCases(t testing.TB, dir string) (list map[string]tiffCase) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "tiff.json"))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	require.NoError(t, err)
	if len(list) < 100 {
		t.Fatalf("%d files", len(list))
	}
	return list
}

// Every variant that is read has the values of tifffile and the pixels of Pillow; others are refused with a remedy.
func TestTIFF(t *testing.T) { checkTIFF(t, "testdata/tiff") }

// The same with the libraries that are installed here.
func TestTIFFLibraries(t *testing.T) {
	dir := t.TempDir()
	pythontest.Run(t, "import tifffile, imagecodecs, PIL", "testdata/tiff.py", dir)
	checkTIFF(t, dir)
}

func checkTIFF(t *testing.T, dir string) {
	d := New(Options{Zstd: stream.Zstd})
	for name, want := range tiffCases(t, dir) {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			if want.RGB != "" {
				if got, err := openAll(t, d, data); err != nil {
					t.Error("pixels: ", err)
				} else if sum := shapedDigest(got.pix, got.h, got.w, got.c); sum != want.RGB {
					t.Errorf("pixels are not Pillow's: %dx%dx%d", got.h, got.w, got.c)
				}
			}
			if want.Refused == "" && want.Samples == "" {
				return
			}
			m, err := tiffValues(d, data)
			switch {
			case want.Refused != "":
				if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), want.Refused) ||
					!strings.Contains(err.Error(), "old.tif") {
					t.Errorf("%v, want %q and a command in it", err, want.Refused)
				}
			case err != nil:
				t.Error("samples: ", err)
			default:
				if sum := shapedDigest(m.Pix, m.H, m.W, m.C); sum != want.Samples || m.DType.String() != want.DType {
					t.Errorf("samples are not tifffile's: %v (%d, %d, %d), want %s %v", m.DType, m.H, m.W, m.C, want.DType, want.Shape)
				}
			}
		})
	}
}

// shapedDigest is digest of testdata/tiff.py.
func shapedDigest(b []byte, shape ...int) string {
	h := sha256.New()
	for _, n := range shape {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// tiffValues is Samples, for images of 8 bits as well. A file without alpha is meant: Samples drops it.
func tiffValues(d *Decoder, data []byte) (m pixel.Raster, err error) {
	c, err := ReadConfig(data)
	if err != nil {
		return m, err
	}
	c.Transparent = false
	err = format.Guard(format.TIFF, func() error {
		m, err = d.tiffSamples(c, data)
		return err
	})
	return m, err
}

// mutations is how many changed files TestTIFFMutations opens.
var mutations = flag.Int("mutations", 300, "number of mutations")

// Changed files are errors or images of the size in the header, in memory that the limit bounds.
func TestTIFFMutations(t *testing.T) {
	const limit = 1 << 16
	d, rnd := New(Options{Zstd: stream.Zstd, MaxPixels: limit}), rand.New(rand.NewPCG(1, 2))
	paths, err := filepath.Glob("testdata/tiff/*.tif")
	if err != nil || len(paths) < 100 {
		t.Fatal(len(paths), err)
	}
	var before, after runtime.MemStats
	for i := range *mutations {
		data, err := os.ReadFile(paths[rnd.IntN(len(paths))])
		require.NoError(t, err)
		mutate(data, rnd)
		if rnd.IntN(8) == 0 {
			data = data[:rnd.IntN(len(data))]
		}
		runtime.ReadMemStats(&before)
		if src, err := d.Open(data); err != nil {
			checkKind(t, err)
		} else if w, h, _ := src.Size(); w*h > limit {
			t.Fatalf("mutation %d: %dx%d pixels", i, w, h)
		}
		m, err := d.Samples(data)
		if err != nil {
			checkKind(t, err)
		} else if len(m.Pix) != m.W*m.H*m.C*m.DType.Size() {
			t.Fatalf("mutation %d: %d bytes for %dx%dx%d of %v", i, len(m.Pix), m.W, m.H, m.C, m.DType)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<30 {
			t.Fatalf("mutation %d: %d bytes of memory", i, took)
		}
	}
}

// mutate changes some bytes, most of them in what may be a directory.
func mutate(data []byte, rnd *rand.Rand) {
	for range 1 + rnd.IntN(4) {
		at := rnd.IntN(len(data))
		if rnd.IntN(3) > 0 {
			at = rnd.IntN(min(len(data), 300))
		}
		switch rnd.IntN(3) {
		case 0:
			data[at] ^= 1 << rnd.IntN(8)
		case 1:
			data[at] = byte(rnd.Uint32())
		case 2:
			for i := at; i < min(at+4, len(data)); i++ {
				data[i] = []byte{0, 255, 127, 1}[rnd.IntN(4)]
			}
		}
	}
}
