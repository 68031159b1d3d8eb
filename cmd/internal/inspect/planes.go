package inspect

import (
	"errors"
	"fmt"
	"image"
	"slices"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// planes says how the elements of a record are the pixels of a picture.
type planes struct {
	spec    tensor.Spec
	w, h, c int
	// The element of pixel (x, y), channel k is number y*row + x*pixel + k*channel.
	row, pixel, channel int
}

// planesOf returns how to show a field, or why it cannot be shown. Where the field does not
// name its layout, the shape tells it.
func planesOf(f store.Field) (planes, error) {
	p := planes{spec: f.Spec}
	channels := []int{1, 3, 4}
	switch s := f.Shape; {
	case len(s) == 2 && min(s[0], s[1]) > 1:
		p.h, p.w, p.c = s[0], s[1], 1
		p.row, p.pixel = p.w, 1
	case len(s) == 3 && (f.Layout == store.CHW || f.Layout == "" && slices.Contains(channels, s[0])):
		p.c, p.h, p.w = s[0], s[1], s[2]
		p.row, p.pixel, p.channel = p.w, 1, p.w*p.h
	case len(s) == 3 && (f.Layout == store.HWC || f.Layout == "" && slices.Contains(channels, s[2])):
		p.h, p.w, p.c = s[0], s[1], s[2]
		p.row, p.pixel, p.channel = p.w*p.c, p.c, 1
	default:
		return p, fmt.Errorf("its records of shape %v are no images", s)
	}
	if !slices.Contains(channels, p.c) {
		return p, fmt.Errorf("%d channels are neither gray (1), RGB (3) nor RGBA (4)", p.c)
	}
	if p.w > 1<<15 || p.h > 1<<15 {
		return p, errors.New("its images are larger than 32768 pixels")
	}
	return p, nil
}

// image returns the picture of a record; of four channels the fourth is left out.
func (p planes) image(record []byte, t tone) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, p.w, p.h))
	if p.spec.DType == tensor.Uint8 || p.spec.DType == tensor.Bool {
		p.drawBytes(img, record, t)
		return img
	}
	values := floats(tensor.Of(p.spec, 1, record))
	for y := range p.h {
		for x := range p.w {
			at := y*p.row + x*p.pixel
			px := img.Pix[y*img.Stride+4*x:][:4]
			px[3] = 255
			for k := range 3 {
				c := min(k, p.c-1)
				px[k] = t.brightness(values[at+c*p.channel], c)
			}
		}
	}
	return img
}

// drawBytes looks the brightness of each value up.
func (p planes) drawBytes(img *image.RGBA, record []byte, t tone) {
	var table [3][256]byte
	var from [3]int
	for k := range table {
		c := min(k, p.c-1)
		from[k] = c * p.channel
		for v := range table[k] {
			table[k][v] = t.brightness(float64(v), c)
		}
	}
	for y := range p.h {
		for x := range p.w {
			at := y*p.row + x*p.pixel
			px := img.Pix[y*img.Stride+4*x:][:4]
			px[0] = table[0][record[at+from[0]]]
			px[1] = table[1][record[at+from[1]]]
			px[2] = table[2][record[at+from[2]]]
			px[3] = 255
		}
	}
}

// floats widens the elements of v.
func floats(v tensor.View) []float64 {
	switch v.DType() {
	case tensor.Bool, tensor.Uint8:
		return widen(v.Bytes(), func(x uint8) float64 { return float64(x) })
	case tensor.Float16:
		return widen(tensor.As[tensor.Half](v), func(x tensor.Half) float64 { return float64(x.Float32()) })
	case tensor.BFloat16:
		return widen(tensor.As[tensor.Brain](v), func(x tensor.Brain) float64 { return float64(x.Float32()) })
	case tensor.Float32:
		return widen(tensor.As[float32](v), func(x float32) float64 { return float64(x) })
	case tensor.Float64:
		return widen(tensor.As[float64](v), func(x float64) float64 { return x })
	}
	return widen(appendInts(nil, v), func(x int64) float64 { return float64(x) })
}

// appendInts appends the elements of v, which are whole numbers. Those above the range of
// int64 wrap around.
func appendInts(dst []int64, v tensor.View) []int64 {
	switch v.DType() {
	case tensor.Bool, tensor.Uint8:
		return append(dst, widen(v.Bytes(), func(x uint8) int64 { return int64(x) })...)
	case tensor.Int8:
		return append(dst, widen(tensor.As[int8](v), func(x int8) int64 { return int64(x) })...)
	case tensor.Uint16:
		return append(dst, widen(tensor.As[uint16](v), func(x uint16) int64 { return int64(x) })...)
	case tensor.Int16:
		return append(dst, widen(tensor.As[int16](v), func(x int16) int64 { return int64(x) })...)
	case tensor.Uint32:
		return append(dst, widen(tensor.As[uint32](v), func(x uint32) int64 { return int64(x) })...)
	case tensor.Int32:
		return append(dst, widen(tensor.As[int32](v), func(x int32) int64 { return int64(x) })...)
	case tensor.Uint64:
		return append(dst, widen(tensor.As[uint64](v), func(x uint64) int64 { return int64(x) })...)
	case tensor.Int64:
		return append(dst, tensor.As[int64](v)...)
	}
	panic("inspect: not whole numbers")
}

func widen[T, U any](in []T, f func(T) U) []U {
	out := make([]U, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}
