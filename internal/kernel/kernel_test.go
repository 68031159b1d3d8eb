package kernel

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/penstock/penstock/internal/testkit/guardpage"
)

// lengths are those at which kernels change what they do.
var lengths = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 255, 256, 257,
	4095, 4096, 4097}

// noise fills b with bytes that depend on seed.
func noise(b []byte, seed uint32) {
	x := seed*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
		if x>>20&15 == 0 {
			b[i] = -byte(x >> 19 & 1) // extremes more often than chance has them
		}
	}
}

// placed calls f for each implementation and each way in which memory can end at a page that
// must not be touched: with n bytes of noise as a source, twice.
func placed(t *testing.T, n int, f func(t *testing.T, src []byte)) {
	t.Helper()
	sides := targets(t, n)
	for k, src := range sides {
		noise(src, uint32(n+k))
	}
	for _, src := range sides {
		f(t, src)
	}
}

// pixelBytes is how long n pixels of 3 channels are.
func pixelBytes(n, step int) int {
	if n == 0 {
		return 0
	}
	return (n-1)*step + 3
}

// targets returns n bytes at both ends of guarded memory.
func targets(t *testing.T, n int) [2][]byte {
	t.Helper()
	return guardpage.Slices[byte](t, n)
}

func TestPlanes(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths {
			for _, step := range []int{3, 4, 5} {
				r, g, b := targets(t, n), targets(t, n), targets(t, n)
				placed(t, pixelBytes(n, step), func(t *testing.T, src []byte) {
					for k := range r {
						Planes(r[k], g[k], b[k], src, step)
						for i := range n {
							if r[k][i] != src[i*step] || g[k][i] != src[i*step+1] || b[k][i] != src[i*step+2] {
								t.Fatalf("%d pixels of %d bytes: pixel %d", n, step, i)
							}
						}
					}
				})
			}
		}
	})
}

func TestInterleave(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths {
			dst := targets(t, 3*n)
			g, b := make([]byte, n), make([]byte, n)
			noise(g, 5)
			noise(b, 6)
			placed(t, n, func(t *testing.T, r []byte) {
				for _, d := range dst {
					Interleave(d, r, g, b)
					for i := range n {
						if d[3*i] != r[i] || d[3*i+1] != g[i] || d[3*i+2] != b[i] {
							t.Fatalf("%d pixels: pixel %d", n, i)
						}
					}
				}
			})
		}
	})
}

func TestPack(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths {
			for _, step := range []int{3, 4, 5} {
				dst := targets(t, 3*n)
				placed(t, pixelBytes(n, step), func(t *testing.T, src []byte) {
					for _, d := range dst {
						Pack(d, src, step, 3)
						for i := range n {
							if !bytes.Equal(d[3*i:3*i+3], src[i*step:i*step+3]) {
								t.Fatalf("%d pixels of %d bytes: pixel %d", n, step, i)
							}
						}
					}
				})
			}
		}
	})
	got := make([]byte, 3)
	if Pack(got, []byte{1, 9, 2, 9, 3}, 2, 1); !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Error(got)
	}
}

func TestReverse(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths {
			for _, c := range []int{1, 3} {
				dst := targets(t, c*n)
				placed(t, c*n, func(t *testing.T, src []byte) {
					for _, d := range dst {
						Reverse(d, src, c)
						for i := range n {
							if !bytes.Equal(d[c*i:c*i+c], src[c*(n-1-i):c*(n-i)]) {
								t.Fatalf("%d pixels of %d channels: pixel %d", n, c, i)
							}
						}
					}
				})
			}
		}
	})
}

func TestReverseRows(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, width := range lengths[1:] {
			for _, gap := range []int{0, 1, 40} {
				for _, rows := range []int{0, 1, 2, 5} {
					testReverseRows(t, width, width+gap, rows)
				}
			}
		}
	})
}

func testReverseRows(t *testing.T, width, stride, rows int) {
	t.Helper()
	dst := targets(t, rows*width)
	placed(t, max(0, (rows-1)*stride+width), func(t *testing.T, src []byte) {
		for _, d := range dst {
			ReverseRows(d, src, width, stride)
			for i := range d {
				if d[i] != src[i/width*stride+width-1-i%width] {
					t.Fatalf("%d rows of %d bytes, %d apart: byte %d", rows, width, stride, i)
				}
			}
		}
	})
}

func TestGray(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths {
			for _, step := range []int{3, 4, 5} {
				dst := targets(t, n)
				placed(t, pixelBytes(n, step), func(t *testing.T, src []byte) {
					for _, d := range dst {
						Gray(d, src, step)
						for i := range n {
							p := src[i*step:]
							if want := (int(p[0])*19595 + int(p[1])*38470 + int(p[2])*7471 + 0x8000) >> 16; int(d[i]) != want {
								t.Fatalf("%d pixels of %d bytes: pixel %d is %d, want %d", n, step, i, d[i], want)
							}
						}
					}
				})
			}
		}
	})
}

func TestSpread(t *testing.T) {
	got := make([]byte, 9)
	if Spread(got, []byte{1, 0, 2, 0, 3}, 2); !bytes.Equal(got, []byte{1, 1, 1, 2, 2, 2, 3, 3, 3}) {
		t.Error(got)
	}
}

func TestMoments(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range append(lengths, 1<<18-1, 1<<18+33, 1<<20) {
			placed(t, n, func(t *testing.T, src []byte) {
				want := Moments{Min: 255}
				for _, v := range src {
					want.N++
					want.Sum += uint64(v)
					want.SumSq += uint64(v) * uint64(v)
					want.Min, want.Max = min(want.Min, v), max(want.Max, v)
				}
				var got Moments
				got.Add(src)
				if n > 0 && got != want || n == 0 && got != (Moments{}) {
					t.Fatalf("%d bytes: %+v, want %+v", n, got, want)
				}
			})
		}
		white := bytes.Repeat([]byte{255}, 1<<19)
		var m Moments
		if m.Add(white); m.SumSq != 255*255<<19 || m.Min != 255 {
			t.Errorf("white: %+v", m)
		}
	})
}

func TestAddPixels(t *testing.T) {
	for _, c := range []int{1, 2, 3, 4} {
		src := make([]byte, 999*c)
		noise(src, uint32(c))
		got, want := make([]Moments, c), make([]Moments, c)
		AddPixels(got, src)
		for i, v := range src {
			want[i%c].Add([]byte{v})
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d channels: %v, want %v", c, got, want)
		}
	}
}

// TestWrongLengthsPanic holds that no kernel sees slices that contradict each other.
func TestWrongLengthsPanic(t *testing.T) {
	b := make([]byte, 96)
	var n Norm
	var w Weights
	w.Init(8, 4, 0, 4, Bilinear)
	for name, f := range map[string]func(){
		"planes":     func() { Planes(b[:32], b[:32], b[:31], b, 3) },
		"few pixels": func() { Planes(b[:33], b[:33], b[:33], b, 3) },
		"interleave": func() { Interleave(b[:95], b[:32], b[:32], b[:32]) },
		"pack":       func() { Pack(b[:96], b[:90], 3, 3) },
		"reverse":    func() { Reverse(b[:96], b[:93], 3) },
		"rows":       func() { ReverseRows(b[:9], b, 2, 2) },
		"few rows":   func() { ReverseRows(b[:96], b[:95], 32, 32) },
		"near rows":  func() { ReverseRows(b[:32], b, 32, 31) },
		"gray":       func() { Gray(b[:33], b, 3) },
		"spread":     func() { Spread(b[:9], b[:2], 1) },
		"f32":        func() { n.F32(make([]float32, 97), b, 0) },
		"u16":        func() { n.U16(make([]uint16, 97), b, 0) },
		"planes f32": func() { n.PlanesF32(make([]float32, 32), make([]float32, 32), make([]float32, 31), b, 3) },
		"planes u16": func() { n.PlanesU16(make([]uint16, 33), make([]uint16, 33), make([]uint16, 33), b, 3) },
		"pixels":     func() { n.PixelsF32(make([]float32, 99), b, 3) },
		"norm":       func() { n.Init(0, true, []float32{1}, nil) },
		"add pixels": func() { AddPixels(make([]Moments, 3), b[:95]) },
		"range":      func() { new(Weights).Init(8, 4, 2, 2, Box) },
		"rows src":   func() { w.Rows(b, 12, b[:21], 24, 1, 3, 3, 0) },
		"rows dst":   func() { w.Rows(b[:11], 12, b, 24, 1, 3, 3, 0) },
		"rows x0":    func() { w.Rows(b, 12, b, 24, 1, 3, 3, 1) },
		"column":     func() { w.Column(b[:8], b[:23], 8, 1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
