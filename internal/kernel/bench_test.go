package kernel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/tensor"
)

const benchPixels = 224 * 224

// BenchmarkNormalize normalizes 224 x 224 pixels, by turns with a copy of as many bytes as it
// writes and with float32, and reports the median ratios of copy's time to its own, and of its own
// to that of float32. With 1 destination all is in cache, with 256 it is not.
func BenchmarkNormalize(b *testing.B) {
	var norms [3]Norm
	types := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}
	for i, dt := range types {
		norms[i].Init(dt, true, []float32{.485, .456, .406}, []float32{.229, .224, .225})
	}
	for _, ring := range []int{1, 256} {
		for _, planar := range []bool{true, false} {
			for i, dt := range types {
				name := fmt.Sprintf("%v/%d/", dt, ring) + map[bool]string{true: "planes", false: "pixels"}[planar]
				b.Run(name, func(b *testing.B) {
					f32 := newNormBench(ring, planar, norms[0].F32, norms[0].PlanesF32)
					if dt == tensor.Float32 {
						reportNorm(b, f32, f32, 4)
					} else {
						reportNorm(b, newNormBench(ring, planar, norms[i].U16, norms[i].PlanesU16), f32, 2)
					}
				})
			}
		}
	}
}

// reportNorm measures one kernel; i is how often it has run.
func reportNorm(b *testing.B, norm, f32 func(i int), size int) {
	n := 3 * benchPixels * size
	from, to := make([]byte, n), make([][]byte, 256)
	for i := range to {
		to[i] = make([]byte, n)
	}
	ring := 256
	if strings.Contains(b.Name(), "/1/") {
		ring = 1
	}
	var byCopy, byF32 []float64
	for i := 0; b.Loop(); i++ {
		t0 := time.Now()
		norm(i)
		t1 := time.Now()
		copy(to[i%ring], from)
		t2 := time.Now()
		f32(i + 1)
		t3 := time.Now()
		byCopy = append(byCopy, float64(t2.Sub(t1))/float64(t1.Sub(t0)))
		byF32 = append(byF32, float64(t1.Sub(t0))/float64(t3.Sub(t2)))
	}
	slices.Sort(byCopy)
	slices.Sort(byF32)
	b.ReportMetric(byCopy[len(byCopy)/2], "of-copy")
	b.ReportMetric(byF32[len(byF32)/2], "of-f32-time")
}

// newNormBench returns a function that makes a record of planes, or of pixels a row at a
// time, in one of ring destinations.
func newNormBench[T any](ring int, planar bool, plain func([]T, []byte, int),
	planes func(r, g, b []T, src []byte, step int)) func(i int) {
	const p = benchPixels
	src, dst := make([]byte, 3*p), make([][]T, ring)
	noise(src, 1)
	for i := range dst {
		dst[i] = make([]T, 3*p)
	}
	return func(i int) {
		d := dst[i%ring]
		if planar {
			for c := range 3 {
				plain(d[c*p:(c+1)*p], src[c*p:(c+1)*p], c)
			}
			return
		}
		for y := 0; y < p; y += 224 {
			planes(d[y:y+224], d[p+y:p+y+224], d[2*p+y:2*p+y+224], src[3*y:3*y+672], 3)
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
		{"reverse rows", func() { ReverseRows(dst, src[:3*p], 32, 32) }},
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
