package transforms

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// testImage is the input that testdata/golden.py describes.
func testImage(w, h, c int) *Image {
	m := NewImage(w, h, c)
	x := uint32(w*65536 + h*4 + c)
	for i := range m.Pix {
		x = x*1664525 + 1013904223
		m.Pix[i] = byte(x >> 24)
	}
	for y := 0; y < h; y += 8 {
		for z := y / 8 % 2 * 8; z < w; z += 16 {
			flatten(m, z, y)
		}
	}
	return m
}

// flatten gives the 8 x 8 block at x, y the color of its first pixel.
func flatten(m *Image, x, y int) {
	for j := y; j < min(y+8, m.H); j++ {
		for i := x; i < min(x+8, m.W); i++ {
			copy(m.Pix[j*m.Stride+i*m.C:][:m.C], m.Pix[y*m.Stride+x*m.C:])
		}
	}
}

// quad is m with a fourth byte after each pixel, in rows with a gap, as decoders deliver it.
func quad(m *Image) *Image {
	q := &Image{W: m.W, H: m.H, C: 3, Step: 4, Stride: m.W*4 + 12}
	q.Pix = make([]byte, q.H*q.Stride)
	for i := range q.Pix {
		q.Pix[i] = byte(i*7 + 99)
	}
	for y := range m.H {
		for x := range m.W {
			copy(q.Pix[y*q.Stride+x*4:][:3], m.Pix[y*m.Stride+x*m.Step:])
		}
	}
	return q
}

// apply runs ts on src.
func apply(t testing.TB, src Source, ts ...Transform) []byte {
	t.Helper()
	p, err := Compose(ts...)
	require.NoError(t, err)
	out, err := p.Output(InfoOf(src))
	require.NoError(t, err)
	dst := make([]byte, out.Bytes())
	require.NoError(t, p.Runner().Do(dst, src))
	return dst
}

// golden is a line of golden.txt.
type golden struct {
	op, name string
	n        []int     // the whole numbers
	v        []float64 // those after the first three
	crc      uint32
}

func goldens(t *testing.T) []golden {
	f, err := os.Open("testdata/golden.txt")
	require.NoError(t, err)
	defer f.Close()
	var all []golden
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if fields := strings.Fields(sc.Text()); fields[0] != "#" {
			all = append(all, parseGolden(t, fields))
		}
	}
	return all
}

func parseGolden(t *testing.T, fields []string) golden {
	g := golden{op: fields[0]}
	last := len(fields) - 1
	for _, s := range fields[1:last] {
		if v, err := strconv.Atoi(s); err == nil {
			g.n = append(g.n, v)
		} else if _, err := strconv.ParseFloat(s, 64); err != nil {
			g.name = s
		}
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			g.v = append(g.v, v)
		}
	}
	g.v = g.v[3:]
	crc, err := strconv.ParseUint(fields[last], 16, 32)
	require.NoError(t, err)
	g.crc = uint32(crc)
	return g
}

// do is a Transform of one step of a Plan.
type do func(p *Plan) error

func (d do) Build(p *Plan) error { return d(p) }

var colors = map[string]ImageOp{"brightness": brightness, "contrast": contrast, "saturation": saturation,
	"sharpness": sharpness, "hue": hue,
	"invert": invert, "posterize": posterize, "solarize": solarize, "autocontrast": autocontrast, "equalize": equalize}

// color returns the color operation of the line; first says what comes before.
func (g golden) color(first ImageOp) []Transform {
	return []Transform{do(func(p *Plan) error {
		if err := p.Apply(first, p.Info().W, p.Info().H); err != nil {
			return err
		}
		return p.Apply(colors[g.name], p.Info().W, p.Info().H, g.v[0])
	})}
}

func (g golden) warp(m matrix, fill [3]byte) []Transform {
	return []Transform{do(func(p *Plan) error {
		f, err := parseWarpFilter(g.name)
		if err != nil {
			return err
		}
		return addWarp(p, m, f, fill)
	})}
}

// transforms returns what the line did.
func (g golden) transforms() []Transform {
	switch n := g.n; g.op {
	case "resize":
		return []Transform{Resize{Size: []int{n[4], n[3]}, Interpolation: g.name, PassOrder: "horizontal"}}
	case "auto":
		return []Transform{Resize{Size: []int{n[4], n[3]}, Interpolation: g.name, PassOrder: "auto"}}
	case "shortercrop":
		return []Transform{Resize{Size: []int{n[3]}, Interpolation: g.name, PassOrder: "horizontal"},
			CenterCrop{Size: []int{n[4]}}}
	case "gray":
		return []Transform{Grayscale{}}
	case "pad":
		var m PadMode
		if err := m.UnmarshalText([]byte(g.name)); err != nil {
			panic(err)
		}
		return []Transform{Pad{Padding: n[3:7], Fill: []int{9}, Mode: m}}
	case "color":
		return g.color(func(*Image, *Image, OpArgs) {})
	case "low":
		return g.color(func(m, _ *Image, _ OpArgs) {
			for i, v := range m.Pix {
				m.Pix[i] = v/3 + 40
			}
		})
	case "affine":
		return g.warp(matrix(g.v), [3]byte{9, 8, 7})
	case "rotate":
		return g.warp(rotation(g.v[0], float64(n[1])/2, float64(n[2])/2), [3]byte{})
	}
	return nil
}

// TestGoldens compares with Pillow and NumPy: not one byte may differ.
func TestGoldens(t *testing.T) {
	all := goldens(t)
	if len(all) < 900 {
		t.Fatalf("only %d goldens", len(all))
	}
	for _, g := range all {
		t.Run(fmt.Sprint(g.op, g.name, g.n, g.v), func(t *testing.T) {
			m := testImage(g.n[1], g.n[2], g.n[0])
			if got := crc32.ChecksumIEEE(apply(t, m, g.transforms()...)); got != g.crc {
				t.Errorf("crc %08x, want %08x", got, g.crc)
			}
			if m.C != 3 {
				return
			}
			if got := crc32.ChecksumIEEE(apply(t, quad(m), g.transforms()...)); got != g.crc {
				t.Errorf("of 4 bytes a pixel: crc %08x, want %08x", got, g.crc)
			}
		})
	}
}
