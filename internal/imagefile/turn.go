package imagefile

import (
	"image"

	"github.com/penstock/penstock/internal/pixel"
)

// turn returns src as EXIF orientation o (2 to 8) wants it to be shown. The result is a copy of all
// pixels, since the first turned row can need pixels of every row of src.
func (d *Decoder) turn(src pixel.Source, o int) (pixel.Source, error) {
	w, h, c := src.Size()
	step := 1
	if c == 3 {
		step = 4
	}
	ow, oh := w, h
	if o >= 5 {
		ow, oh = h, w
	}
	d.turned = pixel.Grow(d.turned, w*h*step)
	out := d.turned
	at := orientation(o, w, h, step)
	err := src.Scan(image.Rect(0, 0, w, h), func(y int, strip pixel.Image) error {
		for i := range strip.H {
			row := strip.Pix[i*strip.Stride:]
			start, next := at(y + i)
			for x := range w {
				copy(out[start+x*next:][:c], row[x*strip.Step:])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.set(out, ow, oh, step, ow*step), nil
}

// orientation returns where row y of an image of w by h pixels goes: the offset of its first pixel
// in the turned image, and the distance from there to the next pixel, in bytes.
func orientation(o, w, h, step int) func(y int) (start, next int) {
	return func(y int) (start, next int) {
		var px, dx int // in pixels
		switch o {
		case 2: // mirrored left to right
			px, dx = y*w+w-1, -1
		case 3: // turned by 180 degrees
			px, dx = (h-1-y)*w+w-1, -1
		case 4: // mirrored top to bottom
			px, dx = (h-1-y)*w, 1
		case 5: // transposed
			px, dx = y, h
		case 6: // to be turned clockwise
			px, dx = h-1-y, h
		case 7: // transposed along the other diagonal
			px, dx = (w-1)*h+h-1-y, -h
		case 8: // to be turned counter-clockwise
			px, dx = (w-1)*h+y, -h
		}
		return px * step, dx * step
	}
}

// turnSamples returns samples as EXIF orientation o wants them to be shown.
func turnSamples(m pixel.Raster, o int) pixel.Raster {
	size := m.C * m.DType.Size()
	out, at := m, orientation(o, m.W, m.H, size)
	if o >= 5 {
		out.W, out.H = m.H, m.W
	}
	out.Pix = make([]byte, len(m.Pix))
	for y := range m.H {
		start, next := at(y)
		for x := range m.W {
			copy(out.Pix[start+x*next:][:size], m.Pix[(y*m.W+x)*size:])
		}
	}
	return out
}
