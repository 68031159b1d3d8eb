package main

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"io"
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

// way takes a photo's bytes to a record, and may write that to out.
type way func(data []byte, out io.Writer) error

// ways are this program's ways to process a photo.
func ways(order string) (map[string]way, error) {
	list := map[string]way{"usual": usual(), "all sizes": resizeAll(order)}
	for _, filter := range []string{"bilinear", "bicubic", "lanczos"} {
		for _, dt := range []tensor.DType{tensor.Uint8, tensor.Float32} {
			w, err := pipeline(filter, order, dt, imagefile.Options{})
			if err != nil {
				return nil, err
			}
			list[filter+" "+dt.String()] = w
		}
	}
	list["own decode"] = ownDecode()
	if bare != nil {
		list["decode alone"] = bare
	}
	return list, nil
}

// recipe is the work: the shorter side 256, the center 224 x 224, channels first, and
// normalized if of a float type.
func recipe(filter, order string, dt tensor.DType) (*transforms.Pipeline, error) {
	ts := []transforms.Transform{
		transforms.Resize{Size: []int{shorter}, Interpolation: filter, PassOrder: order},
		transforms.CenterCrop{Size: []int{side}},
		transforms.ToLayout{Layout: transforms.CHW},
	}
	if dt != tensor.Uint8 {
		ts = append(ts, transforms.ConvertDType{DType: dt}, transforms.Normalize{Mean: mean, Std: std})
	}
	return transforms.Compose(ts...)
}

func pipeline(filter, order string, dt tensor.DType, opt imagefile.Options) (way, error) {
	p, err := recipe(filter, order, dt)
	if err != nil {
		return nil, err
	}
	run, d := p.Runner(), imagefile.New(opt)
	record := aligned(3 * side * side * dt.Size())
	return func(data []byte, out io.Writer) error {
		src, err := d.Open(data)
		if err != nil {
			return err
		}
		if err := run.Do(record, src); err != nil {
			return err
		}
		return write(out, record)
	}, nil
}

// ownDecode decodes the whole photo to RGB, and nothing else.
func ownDecode() way {
	d := imagefile.New(imagefile.Options{})
	return func(data []byte, _ io.Writer) error {
		src, err := d.Open(data)
		if err != nil {
			return err
		}
		w, h, _ := src.Size()
		return src.Scan(image.Rect(0, 0, w, h), func(int, transforms.Image) error { return nil })
	}
}

// aligned returns bytes that may be seen as float32.
func aligned(n int) []byte {
	words := make([]float32, (n+3)/4)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*len(words))[:n:n]
}

func write(out io.Writer, record []byte) error {
	if out == nil {
		return nil
	}
	_, err := out.Write(record)
	return err
}

// usual is the way of a Go program without this module: image/jpeg, imaging, a loop.
func usual() way {
	dst := make([]float32, 3*side*side)
	return func(data []byte, _ io.Writer) error {
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

// doing returns what does photos [from, to) of files in a way.
func doing(list map[string]way, name string, files [][]byte) (func(from, to int, out io.Writer) error, error) {
	w, ok := list[name]
	if !ok {
		return nil, fmt.Errorf("no way %q in this build", name)
	}
	return func(from, to int, out io.Writer) error {
		for i := from; i < to; i++ {
			if err := w(files[i], out); err != nil {
				return fmt.Errorf("photo %d: %w", i, err)
			}
		}
		return nil
	}, nil
}
