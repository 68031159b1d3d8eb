package imagefile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/testkit/require"
)

const kindsDir = "testdata/kinds"

// kinds calls f with every file of testdata/kinds.
func kinds(t testing.TB, f func(name string, data []byte)) {
	t.Helper()
	paths, err := filepath.Glob(kindsDir + "/*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files in "+kindsDir+":", err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		f(filepath.Base(p), data)
	}
}

// How files are opened, by the names that goldens.json has for it.
var ways = map[string]Options{
	"rgb":    {},
	"gray":   {Color: Gray},
	"turned": {Orient: true},
}

// Differences from Pillow, and the reasons.
var notAsPillow = map[string]string{
	"I16.png": "gray samples of 16 bits are clipped at 255 there, here their high byte is kept",
}

// Every kind of file reads as Pillow read it when testdata/make.py ran.
func TestGoldens(t *testing.T) {
	text, err := os.ReadFile("testdata/goldens.json")
	require.NoError(t, err)
	var want map[string]map[string]string
	require.NoError(t, json.Unmarshal(text, &want))
	for way, opt := range ways {
		d := New(opt)
		kinds(t, func(name string, data []byte) {
			if notAsPillow[name] != "" {
				return
			}
			m, err := openAll(t, d, data)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if got := digest(m); got != want[name][way] {
				t.Errorf("%s, %s: pixels are not Pillow's (%s, want %s)", name, way, got, want[name][way])
			}
		})
	}
}

func digest(m pixels) string {
	h := sha256.New()
	var size [8]byte
	binary.LittleEndian.PutUint32(size[:], uint32(m.w))
	binary.LittleEndian.PutUint32(size[4:], uint32(m.h))
	h.Write(size[:])
	h.Write(m.pix)
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// The same against the Pillow that is installed here, which may be a newer one.
func TestKindsAgainstPillow(t *testing.T) {
	modes := map[string]string{"rgb": "RGB", "gray": "L", "turned": "RGB"}
	for way, opt := range ways {
		t.Run(way, func(t *testing.T) {
			do := "nothing"
			if opt.Orient {
				do = "turn"
			}
			p, d := newPillow(t, modes[way], do), New(opt)
			kinds(t, func(name string, data []byte) {
				want, ok := p.open(filepath.Join(kindsDir, name))
				if !ok || notAsPillow[name] != "" {
					return
				}
				got, err := openAll(t, d, data)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if largest, mean := difference(t, got, want); largest > 0 {
					t.Errorf("%s: differs from Pillow by up to %d, %.3f in the mean", name, largest, mean)
				}
			})
		})
	}
}

func TestUnsupportedSaysSo(t *testing.T) {
	data, err := os.ReadFile("testdata/tiff/lab.tif")
	require.NoError(t, err)
	_, err = ReadConfig(data)
	if !errors.Is(err, format.ErrUnsupported) ||
		err.Error() != "tiff: not supported: its colors are CIE L*a*b*; convert it to RGB: magick old.tif -colorspace sRGB new.png" {
		t.Errorf("lab.tif: %v", err)
	}
}

// 16 bits become 8 by dropping the low byte: the file holds v<<8 + 77.
func TestGray16KeepsHighByte(t *testing.T) {
	d := New(Options{Color: Gray})
	high, err := os.ReadFile(filepath.Join(kindsDir, "I16.png"))
	require.NoError(t, err)
	m, err := openAll(t, d, high)
	require.NoError(t, err)
	seen := map[byte]bool{}
	for _, v := range m.pix {
		seen[v] = true
	}
	if m.w != 45 || m.h != 37 || len(seen) < 100 {
		t.Errorf("%dx%d with %d different values, want 45x37 and most values", m.w, m.h, len(seen))
	}
}
