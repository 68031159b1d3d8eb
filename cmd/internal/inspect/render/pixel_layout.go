package render

import (
	"errors"
	"fmt"
	"image"
	"slices"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// PixelLayout says which elements of a record are the pixels of a picture of W by H pixels with C
// channels: pixel (x, y), channel k is element y*row + x*pixel + k*channel.
type PixelLayout struct {
	spec    tensor.Spec
	W, H, C int
	// The element of pixel (x, y), channel k is number y*row + x*pixel + k*channel.
	row, pixel, channel int
}

// PixelLayoutOf returns how to show a field, or why it cannot be shown. Two axes are a gray image.
// Of three axes, the field's layout says which are the channels; without a layout, an axis of 1, 3
// or 4 elements, the first before the last.
func PixelLayoutOf(f store.Field) (PixelLayout, error) {
	p := PixelLayout{spec: f.Spec}
	channels := []int{1, 3, 4}
	switch s := f.Shape; {
	case len(s) == 2 && min(s[0], s[1]) > 1:
		p.H, p.W, p.C = s[0], s[1], 1
		p.row, p.pixel = p.W, 1
	case len(s) == 3 && (f.Layout == tensor.CHW || f.Layout == "" && slices.Contains(channels, s[0])):
		p.C, p.H, p.W = s[0], s[1], s[2]
		p.row, p.pixel, p.channel = p.W, 1, p.W*p.H
	case len(s) == 3 && (f.Layout == tensor.HWC || f.Layout == "" && slices.Contains(channels, s[2])):
		p.H, p.W, p.C = s[0], s[1], s[2]
		p.row, p.pixel, p.channel = p.W*p.C, p.C, 1
	default:
		return p, fmt.Errorf("its records of shape %v are not images", s)
	}
	if !slices.Contains(channels, p.C) {
		return p, fmt.Errorf("%d channels are neither gray (1), RGB (3) nor RGBA (4)", p.C)
	}
	if p.W > 1<<15 || p.H > 1<<15 {
		return p, errors.New("its images are larger than 32768 pixels")
	}
	return p, nil
}

// Image returns the picture of a record. The fourth of four channels, alpha, is left out; one
// channel is shown as gray.
func (p PixelLayout) Image(record []byte, t Brightness) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, p.W, p.H))
	if p.spec.DType == tensor.Uint8 || p.spec.DType == tensor.Bool {
		p.drawBytes(img, record, t)
		return img
	}
	values := dataset.Floats(tensor.Of(p.spec, 1, record))
	for y := range p.H {
		for x := range p.W {
			at := y*p.row + x*p.pixel
			px := img.Pix[y*img.Stride+4*x:][:4]
			px[3] = 255
			for k := range 3 {
				c := min(k, p.C-1)
				px[k] = t.Value(values[at+c*p.channel], c)
			}
		}
	}
	return img
}

// drawBytes is Image for elements of one byte: the brightness of each of the 256 values is computed
// once.
func (p PixelLayout) drawBytes(img *image.RGBA, record []byte, t Brightness) {
	var table [3][256]byte
	var from [3]int
	for k := range table {
		c := min(k, p.C-1)
		from[k] = c * p.channel
		for v := range table[k] {
			table[k][v] = t.Value(float64(v), c)
		}
	}
	for y := range p.H {
		for x := range p.W {
			at := y*p.row + x*p.pixel
			px := img.Pix[y*img.Stride+4*x:][:4]
			px[0] = table[0][record[at+from[0]]]
			px[1] = table[1][record[at+from[1]]]
			px[2] = table[2][record[at+from[2]]]
			px[3] = 255
		}
	}
}
