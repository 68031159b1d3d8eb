package main

import (
	"image"
	"image/color"
	"os"
	"runtime"

	"github.com/disintegration/imaging"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/imagefile"
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
		for _, f := range filters {
			list, err := resizers(f.name, f.imaging, ours, theirs)
			if err != nil {
				return err
			}
			results, err := b.compare("Resize/"+s.name+"/"+f.name, s, list...)
			if err != nil {
				return err
			}
			rows = append(rows, []string{f.name, s.name, micros(results[0]), micros(results[1]),
				results[1].Over(results[0], measure.CPU).String()})
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// resizers returns penstock, which allocates nothing, and imaging.
func resizers(name string, f imaging.ResampleFilter, ours []*transforms.Image, theirs []*image.NRGBA) (
	[]measure.Contender, error) {
	p, err := transforms.Compose(transforms.Resize{Size: []int{shorter}, Interpolation: name})
	if err != nil {
		return nil, err
	}
	run := p.Runner()
	var dst []byte
	return []measure.Contender{
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
	}, nil
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
