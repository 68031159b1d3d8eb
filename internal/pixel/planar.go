package pixel

import (
	"fmt"
	"image"

	"github.com/penstock/penstock/internal/kernel"
)

// Planar is an 8-bit image with its channels one after the other, as records in layout CHW
// are stored. It is a Source; a Runner whose pipeline only crops, mirrors, converts and
// normalizes to CHW works on the planes as they are.
type Planar struct {
	Pix     []byte // C planes of W*H bytes, without gaps
	W, H, C int    // pixels, and channels: 1 or 3

	strip []byte // rows that Scan has interleaved
}

// Size returns width, height and channels.
func (m *Planar) Size() (w, h, c int) { return m.W, m.H, m.C }

// Validate returns an error if the fields of m contradict each other.
func (m *Planar) Validate() error {
	if m.C != 1 && m.C != 3 {
		return fmt.Errorf("image of %d channels: must be 1 (gray) or 3 (RGB)", m.C)
	}
	if m.W <= 0 || m.H <= 0 || len(m.Pix) != m.W*m.H*m.C {
		return fmt.Errorf("image of %d planes of %dx%d pixels in %d bytes", m.C, m.W, m.H, len(m.Pix))
	}
	return nil
}

// Scan interleaves the channels of r some rows at a time.
func (m *Planar) Scan(r image.Rectangle, f func(y int, strip Image) error) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if !r.In(image.Rect(0, 0, m.W, m.H)) {
		return fmt.Errorf("scan of %v leaves the image, %dx%d", r, m.W, m.H)
	}
	if m.C == 1 {
		all := Image{Pix: m.Pix, W: m.W, H: m.H, C: 1, Step: 1, Stride: m.W}
		return all.Scan(r, f)
	}
	m.strip = Grow(m.strip, stripRows*r.Dx()*3)
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		strip := Of(m.strip, r.Dx(), min(stripRows, r.Max.Y-y), 3)
		for i := range strip.H {
			red, green, blue := PlaneRows(m.Pix, y+i, 1, m.W, m.H)
			kernel.Interleave(strip.Row(i), red[r.Min.X:r.Max.X], green[r.Min.X:r.Max.X], blue[r.Min.X:r.Max.X])
		}
		if err := f(y, strip); err != nil {
			return err
		}
	}
	return nil
}

// stripRows is how many rows Scan interleaves at a time: few enough to be in cache still.
const stripRows = 16

// PlaneRows returns rows from row y on of each plane of a CHW record.
func PlaneRows[T any](d []T, y, rows, w, h int) (r, g, b []T) {
	at, n, plane := y*w, rows*w, w*h
	return d[at : at+n], d[plane+at : plane+at+n], d[2*plane+at : 2*plane+at+n]
}
