package main

import (
	"fmt"
	"image"
	"image/color"
	"os"
	"runtime"

	"github.com/disintegration/imaging"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// resize compares making the shorter side 256 with imaging, on photos that are decoded.
func (b *bench) resize() error {
	rows := [][]string{{"decoded photo to shorter side 256", "set", "us/photo", "imaging, us/photo", "times faster"}}
	for _, s := range b.sets {
		d := imagefile.New(imagefile.Options{})
		ours, theirs, err := decoded(s.files, d)
		if err != nil {
			return err
		}
		for _, f := range []struct {
			name string
			f    imaging.ResampleFilter
		}{{"bilinear", imaging.Linear}, {"bicubic", imaging.CatmullRom}, {"lanczos", imaging.Lanczos}} {
			results, err := b.resizers(f.name, f.f, ours, theirs)
			if err != nil {
				return err
			}
			measure.Lines(os.Stdout, "Resize/"+s.name+"/"+f.name, "photo", results)
			rows = append(rows, []string{f.name, s.name, micros(results[0]), micros(results[1]),
				results[1].Over(results[0], measure.CPU).String()})
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

func (b *bench) resizers(name string, f imaging.ResampleFilter, ours []*transforms.Image, theirs []*image.NRGBA) (
	[]measure.Result, error) {
	p, err := transforms.Compose(transforms.Resize{Size: []int{shorter}, Interpolation: name})
	if err != nil {
		return nil, err
	}
	run := p.Runner()
	var dst []byte
	return measure.Rounds(b.o.rounds, len(ours), chunk, []measure.Contender{
		{Name: "penstock", Do: clean(func(from, to int) error {
			for _, m := range ours[from:to] {
				out, err := p.Output(transforms.InfoOf(m))
				if err != nil {
					return err
				}
				if n := out.Bytes(); len(dst) < n {
					dst = make([]byte, n)
				}
				if err := run.Do(dst[:out.Bytes()], m); err != nil {
					return err
				}
			}
			return nil
		})},
		{Name: "imaging", Do: measure.Timed(func(from, to int) error {
			for _, m := range theirs[from:to] {
				w, h := shorter, 0
				if m.Rect.Dx() > m.Rect.Dy() {
					w, h = 0, shorter
				}
				imaging.Resize(m, w, h, f)
			}
			return nil
		})},
	})
}

// clean is measure.Timed without the garbage that others left.
func clean(f func(from, to int) error) func(from, to int) (measure.Cost, error) {
	return func(from, to int) (measure.Cost, error) {
		runtime.GC()
		return measure.Timed(f)(from, to)
	}
}

// decoded returns the pixels of photos, in the form that either side likes best.
func decoded(files [][]byte, d *imagefile.Decoder) (ours []*transforms.Image, theirs []*image.NRGBA, err error) {
	for _, f := range files {
		src, err := d.Open(f)
		if err != nil {
			return nil, nil, err
		}
		w, h, _ := src.Size()
		m := &transforms.Image{Pix: make([]byte, 4*w*h), W: w, H: h, C: 3, Step: 4, Stride: 4 * w}
		n := image.NewNRGBA(image.Rect(0, 0, w, h))
		err = src.Scan(image.Rect(0, 0, w, h), func(y int, strip transforms.Image) error {
			for i := range strip.H {
				for x := range strip.W {
					p := strip.Pix[i*strip.Stride+x*strip.Step:][:3]
					n.SetNRGBA(x, y+i, color.NRGBA{R: p[0], G: p[1], B: p[2], A: 255})
				}
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		copy(m.Pix, n.Pix)
		ours, theirs = append(ours, m), append(theirs, n)
	}
	return ours, theirs, nil
}

// normalize compares converting records of bytes to numbers with copying as many bytes as that
// writes.
func (b *bench) normalize() error {
	rows := [][]string{{"224x224 bytes to", "from", "destination", "us/record", "of the bandwidth of copy()",
		"of the time of float32"}}
	for _, ring := range []int{1, 256} {
		for _, planar := range []bool{true, false} {
			results, err := b.normalizers(ring, planar)
			if err != nil {
				return err
			}
			where := map[int]string{1: "in cache", 256: "in memory"}[ring]
			from := map[bool]string{true: "planes", false: "pixels"}[planar]
			measure.Lines(os.Stdout, "Normalize/"+where+"/"+from, "record", results)
			copies := map[string]measure.Result{"float32": results[3], "float16": results[4], "bfloat16": results[4]}
			for _, r := range results[:3] {
				rows = append(rows, []string{r.Name, from, where, fmt.Sprintf("%.1f", r.Median(measure.CPU)*1e6),
					copies[r.Name].Over(r, measure.CPU).String(), r.Over(results[0], measure.CPU).String()})
			}
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

const pixels = side * side

// normalizers measures the kernels, which write to ring records by turns, each whole as a
// Runner does it, and copies of as many bytes as float32 and the types of 16 bits have.
func (b *bench) normalizers(ring int, planar bool) ([]measure.Result, error) {
	var norms [3]kernel.Norm
	var list []measure.Contender
	src := make([]byte, 3*pixels)
	for i := range src {
		src[i] = byte(i * 7)
	}
	for i, dt := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		n := &norms[i]
		n.Init(dt, true, floats(mean), floats(std))
		if dt == tensor.Float32 {
			list = append(list, measureKernel(dt.String(), ring, planar, src, n.F32, n.PlanesF32))
		} else {
			list = append(list, measureKernel(dt.String(), ring, planar, src, n.U16, n.PlanesU16))
		}
	}
	for _, size := range []int{4, 2} {
		from, to := make([]byte, 3*pixels*size), records[byte](ring, 3*pixels*size)
		list = append(list, measure.Contender{Name: fmt.Sprintf("copy of %d bytes each", size),
			Do: measure.Timed(func(a, z int) error {
				for i := a; i < z; i++ {
					copy(to[i%ring], from)
				}
				return nil
			})})
	}
	return measure.Rounds(4*b.o.rounds, 512, 64, list)
}

func floats(list []float64) []float32 {
	out := make([]float32, len(list))
	for i, x := range list {
		out[i] = float32(x)
	}
	return out
}

func records[T any](n, size int) [][]T {
	list := make([][]T, n)
	for i := range list {
		list[i] = make([]T, size)
	}
	return list
}

func measureKernel[T any](name string, ring int, planar bool, src []byte, plane func([]T, []byte, int),
	rgb func(r, g, b []T, src []byte, step int)) measure.Contender {
	dst := records[T](ring, 3*pixels)
	one := func(d []T) {
		if planar {
			for c := range 3 {
				plane(d[c*pixels:(c+1)*pixels], src[c*pixels:(c+1)*pixels], c)
			}
			return
		}
		rgb(d[:pixels], d[pixels:2*pixels], d[2*pixels:], src, 3)
	}
	return measure.Contender{Name: name, Do: measure.Timed(func(from, to int) error {
		for i := from; i < to; i++ {
			one(dst[i%ring])
		}
		return nil
	})}
}
