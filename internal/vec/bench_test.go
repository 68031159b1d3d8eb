package vec

import (
	"fmt"
	"testing"

	"github.com/penstock/penstock/tensor"
)

const benchPixels = 224 * 224

// BenchmarkNormalize writes records of 224 x 224 from bytes; BenchmarkCopy writes as many
// bytes. With 1 destination all is in cache, with 256 nothing is.
func BenchmarkNormalize(b *testing.B) {
	src := make([]byte, 3*benchPixels)
	noise(src, 1)
	for _, ring := range []int{1, 256} {
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			var n Norm
			n.Init(dt, true, []float32{.485, .456, .406}, []float32{.229, .224, .225})
			for _, form := range []string{"plane", "hwc-chw"} {
				b.Run(fmt.Sprintf("%v/%s/ring%d", dt, form, ring), func(b *testing.B) {
					b.SetBytes(int64(3 * benchPixels * dt.Size()))
					if dt == tensor.Float32 {
						benchNorm(b, ring, src, form, n.F32, n.PlanesF32)
					} else {
						benchNorm(b, ring, src, form, n.U16, n.PlanesU16)
					}
				})
			}
		}
	}
}

func benchNorm[T any](b *testing.B, ring int, src []byte, form string, plain func([]T, []byte, int), planes func(r, g, b []T, src []byte, step int)) {
	dst := make([][]T, ring)
	for i := range dst {
		dst[i] = make([]T, 3*benchPixels)
	}
	const p = benchPixels
	for i := 0; b.Loop(); i++ {
		d := dst[i%ring]
		if form == "plane" {
			for c := range 3 {
				plain(d[c*p:(c+1)*p], src[c*p:(c+1)*p], c)
			}
		} else {
			for y := 0; y < p; y += 224 { // a row at a time, as the pipeline does
				planes(d[y:y+224], d[p+y:p+y+224], d[2*p+y:2*p+y+224], src[3*y:3*y+672], 3)
			}
		}
	}
}

// BenchmarkCopy is the bound for BenchmarkNormalize.
func BenchmarkCopy(b *testing.B) {
	for _, ring := range []int{1, 256} {
		for _, size := range []int{4, 2} {
			n := 3 * benchPixels * size
			b.Run(fmt.Sprintf("%dB/ring%d", size, ring), func(b *testing.B) {
				src, dst := make([]byte, n), make([][]byte, ring)
				for i := range dst {
					dst[i] = make([]byte, n)
				}
				b.SetBytes(int64(n))
				for i := 0; b.Loop(); i++ {
					copy(dst[i%ring], src)
				}
			})
		}
	}
}

// BenchmarkKernels runs the rest over one row or record in cache.
func BenchmarkKernels(b *testing.B) {
	src := make([]byte, 4*benchPixels)
	noise(src, 1)
	const p = benchPixels
	dst := make([]byte, 3*p)
	for _, k := range []struct {
		name string
		f    func()
	}{
		{"planes3", func() { Planes(dst[:p], dst[p:2*p], dst[2*p:], src[:3*p], 3) }},
		{"planes4", func() { Planes(dst[:p], dst[p:2*p], dst[2*p:], src, 4) }},
		{"interleave", func() { Interleave(dst, src[:p], src[p:2*p], src[2*p:3*p]) }},
		{"pack", func() { Pack(dst, src, 4, 3) }},
		{"gray", func() { Gray(dst[:p], src, 4) }},
		{"reverse1", func() { Reverse(dst, src[:3*p], 1) }},
		{"reverse3", func() { Reverse(dst, src[:3*p], 3) }},
		{"moments", func() { new(Moments).Add(src[:3*p]) }},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(3 * p)
			for b.Loop() {
				k.f()
			}
		})
	}
}
