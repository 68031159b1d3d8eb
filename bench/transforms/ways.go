package main

import (
	"bytes"
	"image"
	"image/jpeg"
	"unsafe"

	"github.com/disintegration/imaging"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

const side, shorter = 224, 256

var (
	mean = []float64{.485, .456, .406}
	std  = []float64{.229, .224, .225}
)

// filters are penstock's filters, and the filters of package imaging that compute the same.
var filters = []struct {
	name    string
	imaging imaging.ResampleFilter
}{{"bilinear", imaging.Linear}, {"bicubic", imaging.CatmullRom}, {"lanczos", imaging.Lanczos}}

// way takes a photo's bytes to a record.
type way func(data []byte) error

// ways are this program's ways to process a photo.
func ways() (map[string]way, error) {
	list := map[string]way{"usual": usual(), "own decode": ownDecode()}
	for _, f := range filters {
		w, err := pipeline(f.name)
		if err != nil {
			return nil, err
		}
		list[f.name] = w
	}
	if bare != nil {
		list["decode alone"] = bare
	}
	return list, nil
}

// pipeline makes the shorter side 256, the center 224 x 224, and normalized float32, channels first.
func pipeline(filter string) (way, error) {
	p, err := transforms.Compose(
		transforms.Resize{Size: []int{shorter}, Interpolation: filter},
		transforms.CenterCrop{Size: []int{side}},
		transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32}, transforms.Normalize{Mean: mean, Std: std},
	)
	if err != nil {
		return nil, err
	}
	run, d := p.Runner(), imagefile.New(imagefile.Options{})
	record := make([]float32, 3*side*side)
	dst := unsafe.Slice((*byte)(unsafe.Pointer(&record[0])), 4*len(record))
	return func(data []byte) error {
		src, err := d.Open(data)
		if err != nil {
			return err
		}
		return run.Do(dst, src)
	}, nil
}

// ownDecode decodes the whole photo to RGB, and nothing else.
func ownDecode() way {
	d := imagefile.New(imagefile.Options{})
	return func(data []byte) error {
		src, err := d.Open(data)
		if err != nil {
			return err
		}
		w, h, _ := src.Size()
		return src.Scan(image.Rect(0, 0, w, h), func(int, transforms.Image) error { return nil })
	}
}

// usual is the way of a Go program without this module: image/jpeg, imaging, a loop.
func usual() way {
	dst := make([]float32, 3*side*side)
	return func(data []byte) error {
		m, err := jpeg.Decode(bytes.NewReader(data))
		if err != nil {
			return err
		}
		w, h := shorter, 0
		if m.Bounds().Dx() > m.Bounds().Dy() {
			w, h = 0, shorter
		}
		n := imaging.CropCenter(imaging.Resize(m, w, h, imaging.Linear), side, side)
		for c := range 3 {
			mean, std := float32(mean[c]), float32(std[c])
			for y := range side {
				row, to := n.Pix[y*n.Stride:], dst[(c*side+y)*side:][:side]
				for x := range to {
					to[x] = (float32(row[4*x+c])/255 - mean) / std
				}
			}
		}
		return nil
	}
}
