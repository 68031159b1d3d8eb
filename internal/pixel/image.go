// Package pixel has images as decoders make them and transforms take them: rows of bytes in memory, or a [Source] that
// decodes rows when they are asked for.
//
// An [Image] is interleaved samples of 8 bits, gray or RGB, with a stride, so that a crop shares the memory of its
// image. A [Raster] is whatever can say its size and scan a rectangle. A resize by a large factor takes the rows of a
// Source one after the other, and never has the whole image in memory.
package pixel

import (
	"fmt"
	"image"
)

// Image is an 8-bit image: rows top to bottom, pixels left to right, channels interleaved.
// Its memory belongs to its maker.
type Image struct {
	Pix    []byte // pixel (x, y) starts at y*Stride + x*Step
	W, H   int    // pixels
	C      int    // channels: 1 gray, 3 RGB
	Step   int    // bytes from a pixel to the next: C, or 4 for RGB with a fourth byte that means nothing
	Stride int    // bytes from a row to the next
}

// A Source is an image whose pixels may not be decoded yet: an Image, or a JPEG that is
// decoded only where a crop needs it. A Source serves one goroutine.
type Source interface {
	// Size returns width, height (pixels) and channels (1 or 3).
	Size() (w, h, c int)

	// Scan calls f with strips of consecutive rows that together are the rectangle r,
	// top down, each row once. A strip's column 0 is r.Min.X, and its row 0 is row y of
	// the image. The strip is valid during the call. Scan may be called again, then it
	// starts over. An error of f ends the scan and is returned as it is.
	Scan(r image.Rectangle, f func(y int, strip Image) error) error
}

// Size returns width, height and channels.
func (m *Image) Size() (w, h, c int) { return m.W, m.H, m.C }

// Scan calls f once, with r as a part of m.
func (m *Image) Scan(r image.Rectangle, f func(y int, strip Image) error) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if !r.In(m.Bounds()) {
		return fmt.Errorf("scan of %v leaves the image, %dx%d", r, m.W, m.H)
	}
	if r.Empty() {
		return nil
	}
	return f(r.Min.Y, m.Sub(r))
}

// Bounds returns the rectangle of the whole image, with the origin at 0, 0.
func (m *Image) Bounds() image.Rectangle { return image.Rect(0, 0, m.W, m.H) }

// Sub returns the part r of m, which must be within it, over the same memory.
func (m *Image) Sub(r image.Rectangle) Image {
	s := *m
	s.W, s.H = r.Dx(), r.Dy()
	from := r.Min.Y*m.Stride + r.Min.X*m.Step
	s.Pix = m.Pix[from : from+(s.H-1)*s.Stride+(s.W-1)*s.Step+s.C]
	return s
}

// Row returns row y from its first pixel to the last channel of its last.
func (m *Image) Row(y int) []byte {
	from := y * m.Stride
	return m.Pix[from : from+(m.W-1)*m.Step+m.C]
}

// Validate returns an error if the fields of m contradict each other.
func (m *Image) Validate() error {
	switch {
	case m.W <= 0 || m.H <= 0:
		return fmt.Errorf("image of %dx%d pixels: both must be positive", m.W, m.H)
	case m.C != 1 && m.C != 3:
		return fmt.Errorf("image of %d channels: must be 1 (gray) or 3 (RGB)", m.C)
	case m.Step != m.C && (m.C != 3 || m.Step != 4):
		return fmt.Errorf("image of %d channels with %d bytes from pixel to pixel", m.C, m.Step)
	case m.H > 1 && m.Stride < (m.W-1)*m.Step+m.C:
		return fmt.Errorf("image of %d pixels a row with only %d bytes from row to row", m.W, m.Stride)
	case len(m.Pix) < (m.H-1)*m.Stride+(m.W-1)*m.Step+m.C:
		return fmt.Errorf("image of %dx%d pixels in only %d bytes", m.W, m.H, len(m.Pix))
	}
	return nil
}

// Reshape makes m an image of w x h pixels without gaps, with arbitrary content, in its old
// memory if that suffices.
func (m *Image) Reshape(w, h, c int) { *m = Of(m.Pix, w, h, c) }

// Of returns an image without gaps, with arbitrary content, in the memory pix if that suffices.
func Of(pix []byte, w, h, c int) Image {
	return Image{Pix: Grow(pix, w*h*c), W: w, H: h, C: c, Step: c, Stride: w * c}
}

// Grow returns s with length n, newly allocated if its capacity is too small. The content is undefined.
func Grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
