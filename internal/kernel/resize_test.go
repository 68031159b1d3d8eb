package kernel

import (
	"fmt"
	"slices"
	"testing"
)

// axes are resizes of one axis: in, out, and the outputs wanted.
var axes = [][4]int{
	{1, 1, 0, 1}, {1, 9, 0, 9}, {9, 1, 0, 1}, {2, 3, 0, 3}, {3, 2, 1, 2}, {5, 50, 0, 50}, {50, 5, 0, 5}, {33, 32, 0, 32},
	{64, 64, 3, 60}, {100, 67, 0, 67}, {100, 67, 20, 41}, {100, 150, 7, 140}, {500, 341, 58, 282}, {300, 16, 0, 16},
	{1000, 7, 1, 6}, {17, 4097, 0, 4097},
}

// reference sums in 64 bits, over the weights as Init made them.
func reference(w *Weights, i int, at func(j int) byte) byte {
	lo, hi := w.Span(i)
	sum := int64(roundHalf)
	for j := lo; j < hi; j++ {
		sum += int64(at(j)) * int64(w.k[(i-w.From)*w.taps+j-lo])
	}
	return byte(min(max(sum>>weightBits, 0), 255))
}

func TestRows(t *testing.T) {
	each(t, func(t *testing.T) {
		var w Weights
		for _, a := range axes {
			for f := Nearest; f <= Lanczos; f++ {
				w.Init(a[0], a[1], a[2], a[3], f)
				for _, c := range []int{1, 3} {
					for step := c; step <= 4; step++ {
						for _, rows := range []int{1, 3, 4, 7, 9} {
							if a[1] > 1000 && (rows != 4 || f > Bilinear) {
								continue
							}
							checkRows(t, &w, c, step, rows)
						}
					}
				}
			}
		}
	})
}

func checkRows(t *testing.T, w *Weights, c, step, rows int) {
	t.Helper()
	lo, hi := w.Inputs()
	n := w.To - w.From
	srcStride, dstStride := (hi-lo)*step, n*c
	dst := targets(t, rows*dstStride)
	placed(t, (rows-1)*srcStride+(hi-lo-1)*step+c, func(t *testing.T, src []byte) {
		for _, d := range dst {
			w.Rows(d, dstStride, src, srcStride, rows, step, c, lo)
			for i := range d {
				r, x, ch := i/dstStride, i%dstStride/c, i%c
				want := reference(w, w.From+x, func(j int) byte { return src[r*srcStride+(j-lo)*step+ch] })
				if d[i] != want {
					t.Fatalf("%v %d to %d, %d rows of %d channels, %d bytes apart: row %d pixel %d channel %d is %d, want %d",
						w.Filter, w.In, w.Out, rows, c, step, r, x, ch, d[i], want)
				}
			}
		}
	})
}

func TestColumn(t *testing.T) {
	each(t, func(t *testing.T) {
		var w Weights
		for _, a := range axes {
			for f := Nearest; f <= Lanczos; f++ {
				w.Init(a[0], a[1], a[2], a[3], f)
				lo, hi := w.Inputs()
				for _, n := range []int{1, 31, 32, 33, 63, 64, 65, 257} {
					stride := n + 3
					dst := targets(t, n)
					placed(t, (hi-lo-1)*stride+n, func(t *testing.T, src []byte) {
						for i := w.From; i < w.To; i += 1 + (w.To-w.From)/8 {
							for _, d := range dst {
								w.Column(d, src, stride, i, lo)
								for x := range d {
									if want := reference(&w, i, func(j int) byte { return src[(j-lo)*stride+x] }); d[x] != want {
										t.Fatalf("%v %v: output %d byte %d of %d is %d, want %d", f, a, i, x, n, d[x], want)
									}
								}
							}
						}
					})
				}
			}
		}
	})
}

// TestInitReuses holds that weights do not depend on what was in the memory before, and that
// a part of an axis has the weights of the whole.
func TestInitReuses(t *testing.T) {
	var used Weights
	for _, a := range axes {
		for f := Nearest; f <= Lanczos; f++ {
			var fresh, whole Weights
			fresh.Init(a[0], a[1], a[2], a[3], f)
			used.Init(a[0], a[1], a[2], a[3], f)
			whole.Init(a[0], a[1], 0, a[1], f)
			for i := a[2]; i < a[3]; i++ {
				k := func(w *Weights) string {
					lo, hi := w.Span(i)
					return fmt.Sprint(lo, hi, w.k[(i-w.From)*w.taps:][:hi-lo])
				}
				if k(&fresh) != k(&used) || k(&fresh) != k(&whole) {
					t.Fatalf("%v %v: output %d: %s, %s, %s", f, a, i, k(&fresh), k(&used), k(&whole))
				}
			}
		}
	}
}

// TestWeightsAddUp holds that a flat image stays flat: the rounding of the weights is far
// below half a level.
func TestWeightsAddUp(t *testing.T) {
	var w Weights
	for _, a := range axes {
		for f := Nearest; f <= Lanczos; f++ {
			w.Init(a[0], a[1], a[2], a[3], f)
			for i := w.From; i < w.To; i++ {
				if got := reference(&w, i, func(int) byte { return 255 }); got != 255 {
					t.Fatalf("%v %v: output %d of white is %d", f, a, i, got)
				}
			}
		}
	}
}

func TestFilterNames(t *testing.T) {
	for i, name := range Filters() {
		f, err := ParseFilter(name)
		if err != nil || f != Filter(i) || f.String() != name {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if f, err := ParseFilter("cubic"); err == nil {
		t.Error(f)
	}
	if !slices.Contains(Filters(), "lanczos") || Filter(99).String() != "invalid" {
		t.Error(Filters())
	}
}

// FuzzResize compares both passes with the reference, for any axis and memory that ends
// where the image ends.
func FuzzResize(f *testing.F) {
	f.Add(uint16(500), uint16(341), uint16(58), uint16(282), uint8(Bilinear), uint8(4), uint8(5), uint32(1))
	f.Add(uint16(7), uint16(300), uint16(0), uint16(300), uint8(Lanczos), uint8(3), uint8(1), uint32(2))
	f.Add(uint16(300), uint16(7), uint16(2), uint16(5), uint8(Bicubic), uint8(1), uint8(9), uint32(3))
	f.Fuzz(func(t *testing.T, in, out, from, to uint16, filter, step, rows uint8, seed uint32) {
		c := 3
		if step == 1 {
			c = 1
		}
		if in == 0 || from >= to || to > out || Filter(filter) > Lanczos || int(step) < c || step > 5 || rows == 0 ||
			rows > 20 || in > 2000 || out > 2000 {
			return
		}
		var w Weights
		w.Init(int(in), int(out), int(from), int(to), Filter(filter))
		lo, hi := w.Inputs()
		n, s := w.To-w.From, int(step)
		src := make([]byte, (int(rows)-1)*(hi-lo)*s+(hi-lo-1)*s+c)
		src = src[:len(src):len(src)]
		noise(src, seed)
		got := make([]byte, int(rows)*n*c)
		w.Rows(got, n*c, src, (hi-lo)*s, int(rows), s, c, lo)
		for i, v := range got {
			r, x, ch := i/(n*c), i%(n*c)/c, i%c
			if want := reference(&w, w.From+x, func(j int) byte { return src[(r*(hi-lo)+j-lo)*s+ch] }); v != want {
				t.Fatalf("row %d pixel %d channel %d is %d, want %d", r, x, ch, v, want)
			}
		}
		width := int(rows)*7 + 20
		columns := make([]byte, (hi-lo)*width)
		noise(columns, seed+1)
		line := make([]byte, width)
		for i := w.From; i < w.To; i += 1 + n/5 {
			w.Column(line, columns, width, i, lo)
			for x, v := range line {
				if want := reference(&w, i, func(j int) byte { return columns[(j-lo)*width+x] }); v != want {
					t.Fatalf("output row %d byte %d is %d, want %d", i, x, v, want)
				}
			}
		}
	})
}
