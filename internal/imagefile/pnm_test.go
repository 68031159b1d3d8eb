package imagefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// netpbm is the kind of a file.
type netpbm struct {
	kind byte
	most int
}

func (p netpbm) bits() bool    { return p.kind == '1' || p.kind == '4' }
func (p netpbm) decimal() bool { return p.kind <= '3' }

func (p netpbm) channels() int {
	if p.kind == '3' || p.kind == '6' {
		return 3
	}
	return 1
}

// pnmFile returns a file of 5 x 3 pixels of that kind, with samples up to most.
func pnmFile(kind byte, most int) []byte {
	const w, h = 5, 3
	p := netpbm{kind: kind, most: most}
	b := fmt.Appendf(nil, "P%c # made by a test\n%d\t%d", kind, w, h)
	if !p.bits() {
		b = fmt.Appendf(b, "\r\n#%s\n%d", strings.Repeat("x", 40), most)
	}
	b = append(b, '\n')
	row := make([]byte, 0, 2*w)
	for i := range w * h * p.channels() {
		n := i * 7919 % (most + 1)
		switch {
		case kind == '1':
			b = fmt.Appendf(b, "%d", n)
		case p.decimal():
			b = fmt.Appendf(b, "%d ", n)
		case kind == '4':
			if row = append(row, byte(n)); len(row) == w {
				b, row = append(b, row[0]<<7|row[1]<<6|row[2]<<5|row[3]<<4|row[4]<<3), row[:0]
			}
		case most > 255:
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		default:
			b = append(b, byte(n))
		}
	}
	return b
}

// Netpbm's files have Pillow's pixels, gray of more than 8 bits aside, which that clips.
func TestPNMAgainstPillow(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, c := range []struct {
		kind byte
		most int
	}{{'1', 1}, {'4', 1}, {'2', 255}, {'5', 255}, {'3', 255}, {'6', 255}, {'2', 15}, {'5', 100}, {'3', 7}, {'6',
		200}, {'3', 1023}, {'6', 65535}, {'6', 1000}} {
		path := filepath.Join(dir, fmt.Sprintf("%c-%d.pnm", c.kind, c.most))
		require.NoError(t, os.WriteFile(path, pnmFile(c.kind, c.most), 0o666))
		paths = append(paths, path)
	}
	againstPillow(t, paths)
}

// Each kind by its definition: a sample is its part of white.
func TestPNM(t *testing.T) {
	for kind := byte('1'); kind <= '6'; kind++ {
		for _, most := range []int{1, 255, 4095, 65535} {
			p := netpbm{kind: kind, most: most}
			if p.bits() && most > 1 {
				continue
			}
			m, err := openAll(t, New(Options{}), pnmFile(kind, most))
			if err != nil || m.w != 5 || m.h != 3 {
				t.Fatalf("P%c up to %d: %dx%d, %v", kind, most, m.w, m.h, err)
			}
			for i, got := range m.pix {
				at := i
				if p.channels() == 1 {
					at = i / 3
				}
				n := at * 7919 % (most + 1)
				if p.bits() {
					n = 1 - n
				}
				if want := byte(math.RoundToEven(float64(n) / float64(most) * 255)); got != want {
					t.Fatalf("P%c up to %d: sample %d is %d, want %d", kind, most, i, got, want)
				}
			}
		}
	}
}

func TestPNMConfig(t *testing.T) {
	for _, c := range []struct {
		kind byte
		most int
		want format.Config
	}{
		{'4', 1, configOf(format.PNM, 5, 3, "gray", 1, 1, 1, false, tensor.Uint8)},
		{'5', 255, configOf(format.PNM, 5, 3, "gray", 1, 8, 1, false, tensor.Uint8)},
		{'6', 256, configOf(format.PNM, 5, 3, "rgb", 3, 16, 1, false, tensor.Uint16)},
	} {
		if got, err := ReadConfig(pnmFile(c.kind, c.most)); err != nil || got != c.want {
			t.Errorf("P%c: %+v, %v", c.kind, got, err)
		}
	}
}

// No end of a good file is one, and no header makes memory that its samples do not.
func TestPNMDamage(t *testing.T) {
	for kind := byte('1'); kind <= '6'; kind++ {
		whole := pnmFile(kind, 1)
		whole = []byte(strings.TrimRight(string(whole), " "))
		for n := range len(whole) {
			if _, err := openAll(t, New(Options{}), whole[:n]); !errors.Is(err, format.ErrCorrupt) &&
				!errors.Is(err, format.ErrNotImage) {
				t.Errorf("P%c, %d of %d bytes: %v", kind, n, len(whole), err)
			}
		}
	}
	for text, want := range map[string]string{
		"P5 99999 99999 255\nabc":                "truncated",
		"P6 2147483647 2147483647 65535\nabcdef": "truncated",
		"P5 99999999999 1 255\nabc":              "is larger than",
		"P5 1 1 0\nabc":                          "white is 0",
		"P5 1 1 65536\nabc":                      "white is 65536",
		"P5 0 1 255\nabc":                        "0x1 pixels",
		"P2 1 1 10 x":                            `is not a digit, where a number`,
		"P2 1 1 10 11":                           "larger than 10",
		"P1 1 1 2":                               "neither 0 nor 1",
		"P5 -1 1 255\nabc":                       "not an image",
	} {
		if _, err := openAll(t, New(Options{}), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"P5", "P5\n", "P7\nWIDTH 1", "P1.txt is text", "P6 million words", "P5x1 1 255 a",
		"P0 1 1"} {
		if f := Sniff([]byte(text)); f != "" {
			t.Errorf("%q is taken for %s", text, f)
		}
	}
}
