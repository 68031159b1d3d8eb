package transforms

import (
	"fmt"
	"image"
	"slices"
	"testing"
	"time"

	"github.com/disintegration/imaging"

	"github.com/penstock/penstock/internal/sys/cputime"
	"github.com/penstock/penstock/tensor"
)

// compare runs both functions in turn and reports the CPU time of each, and the median ratio of
// theirs to penstock's: other work on the machine slows both of a pair.
func compare(b *testing.B, ours, theirs func()) {
	var own, other []time.Duration
	var ratios []float64
	for b.Loop() {
		t0 := cputime.Clock()
		ours()
		t1 := cputime.Clock()
		theirs()
		t2 := cputime.Clock()
		own, other = append(own, t1-t0), append(other, t2-t1)
		ratios = append(ratios, float64(t2-t1)/float64(t1-t0))
	}
	slices.Sort(own)
	slices.Sort(other)
	slices.Sort(ratios)
	mid := len(ratios) / 2
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(own[mid].Nanoseconds()), "ours-ns")
	b.ReportMetric(float64(other[mid].Nanoseconds()), "theirs-ns")
	b.ReportMetric(ratios[mid], "x")
}

// BenchmarkResizeImaging makes the shorter side 256, by this package and by imaging.
func BenchmarkResizeImaging(b *testing.B) {
	filters := []struct {
		name string
		f    imaging.ResampleFilter
	}{{"bilinear", imaging.Linear}, {"bicubic", imaging.CatmullRom}, {"lanczos", imaging.Lanczos}}
	for _, size := range []image.Point{{500, 375}, {2000, 1500}} {
		for _, f := range filters {
			b.Run(fmt.Sprintf("%dx%d/%s", size.X, size.Y, f.name), func(b *testing.B) {
				m := testImage(size.X, size.Y, 3)
				src, theirs := quad(m), nrgba(m)
				w, h := shorter(size.X, size.Y, 256, 0)
				r := mustCompose(b, Resize{Size: []int{256}, Interpolation: f.name}).Runner()
				dst := make([]byte, w*h*3)
				compare(b, func() {
					if err := r.Do(dst, src); err != nil {
						b.Fatal(err)
					}
				}, func() { imaging.Resize(theirs, w, h, f.f) })
			})
		}
	}
}

// BenchmarkPipeline is all that happens to a decoded photo on its way to a record.
func BenchmarkPipeline(b *testing.B) {
	src := quad(testImage(500, 375, 3))
	for _, dt := range []tensor.DType{tensor.Uint8, tensor.Float32, tensor.Float16, tensor.BFloat16} {
		b.Run(dt.String(), func(b *testing.B) {
			ts := []Transform{Resize{Size: []int{256}}, CenterCrop{Size: []int{224}}, ToLayout{CHW}, ConvertDType{DType: dt}}
			if dt != tensor.Uint8 {
				ts = append(ts, Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}})
			}
			r := mustCompose(b, ts...).Runner()
			dst := make([]byte, 3*224*224*dt.Size())
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Do(dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkArray casts and standardises a record of features.
func BenchmarkArray(b *testing.B) {
	in := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{64, 1024}}
	r, err := arrayPipeline(b, Cast{tensor.Float32}, Standardize{Mean: []float64{100}, Std: []float64{50}},
		Clip{Max: p64(1)}).Runner(in)
	if err != nil {
		b.Fatal(err)
	}
	src, dst := make([]byte, 65536), make([]byte, 4*65536)
	b.SetBytes(4 * 65536)
	for b.Loop() {
		if err := r.Do(dst, src); err != nil {
			b.Fatal(err)
		}
	}
}
