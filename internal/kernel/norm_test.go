package kernel

import (
	"math"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/tensor"
)

// norms are kinds of normalization, those with odd divisors included.
var norms = []struct {
	name      string
	scaled    bool
	mean, std []float32
}{
	{"none", false, nil, nil},
	{"scaled", true, nil, nil},
	{"imagenet", true, []float32{.485, .456, .406}, []float32{.229, .224, .225}},
	{"one", true, []float32{.5}, []float32{.5}},
	{"clip", true, []float32{.48145466, .4578275, .40821073}, []float32{.26862954, .26130258, .27577711}},
	{"bytes", false, []float32{123.675, 116.28, 103.53}, []float32{58.395, 57.12, 57.375}},
	{"twice rounded", true, []float32{.2, .4, .6}, []float32{.8403, .7803, .7203}}, // otherwise than once, to 16 bits
	{"huge", true, []float32{1e30, -1e-30, 3}, []float32{1e-30, 1e30, 1e-8}},
}

// formula converts a byte, with true division in float32.
func formula(x byte, c int, scaled bool, mean, std []float32) float32 {
	y := float32(x)
	if scaled {
		y /= 255
	}
	if mean != nil {
		y -= mean[c%len(mean)]
		y /= std[c%len(std)]
	}
	return y
}

// floats returns n numbers of type T at both ends of guarded memory.
func floats[T float32 | uint16](t *testing.T, n int) [2][]T {
	size := int(unsafe.Sizeof(*new(T)))
	var out [2][]T
	for i, b := range targets(t, n*size) {
		if n > 0 {
			out[i] = unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
		}
	}
	return out
}

func TestNormF32(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, k := range norms {
			var n Norm
			n.Init(tensor.Float32, k.scaled, k.mean, k.std)
			want := func(x byte, c int) uint32 { return math.Float32bits(formula(x, c, k.scaled, k.mean, k.std)) }
			checkNorm(t, k.name, want, math.Float32bits, n.F32, n.PixelsF32, n.PlanesF32)
		}
	})
}

func TestNormU16(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, dt := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
			for _, k := range norms {
				var n Norm
				n.Init(dt, k.scaled, k.mean, k.std)
				want := func(x byte, c int) uint32 {
					y := formula(x, c, k.scaled, k.mean, k.std)
					if dt == tensor.Float16 {
						return uint32(tensor.HalfOf(y))
					}
					return uint32(tensor.BrainOf(y))
				}
				bits := func(v uint16) uint32 { return uint32(v) }
				checkNorm(t, k.name+" "+dt.String(), want, bits, n.U16, n.PixelsU16, n.PlanesU16)
			}
		}
	})
}

// checkNorm compares the bits of all three forms with want.
func checkNorm[T float32 | uint16](t *testing.T, name string, want func(byte, int) uint32, bits func(T) uint32,
	plain func([]T, []byte, int), pixels func([]T, []byte, int), planes func(r, g, b []T, src []byte, step int)) {
	t.Helper()
	for _, n := range lengths {
		dst := floats[T](t, n)
		placed(t, n, func(t *testing.T, src []byte) {
			for c := range 3 {
				for _, d := range dst {
					plain(d, src, c)
					for i, v := range d {
						if bits(v) != want(src[i], c) {
							t.Fatalf("%s: %d bytes, channel %d: byte %d gives %v", name, n, c, src[i], v)
						}
					}
				}
			}
		})
		all := floats[T](t, 3*n)
		r, g, b := floats[T](t, n), floats[T](t, n), floats[T](t, n)
		for _, step := range []int{3, 4, 5} {
			placed(t, pixelBytes(n, step), func(t *testing.T, src []byte) {
				for k := range all {
					pixels(all[k], src, step)
					planes(r[k], g[k], b[k], src, step)
					for i := range n {
						p := src[i*step:]
						w := [3]uint32{want(p[0], 0), want(p[1], 1), want(p[2], 2)}
						if w != [3]uint32{bits(all[k][3*i]), bits(all[k][3*i+1]), bits(all[k][3*i+2])} {
							t.Fatalf("%s: %d pixels of %d bytes: pixel %d", name, n, step, i)
						}
						if w != [3]uint32{bits(r[k][i]), bits(g[k][i]), bits(b[k][i])} {
							t.Fatalf("%s: %d pixels of %d bytes in planes: pixel %d", name, n, step, i)
						}
					}
				}
			})
		}
	}
}
