//go:build turbo && cgo

package imagefile

import (
	"image"
	"unsafe"

	"github.com/penstock/penstock/internal/imagefile/turbo"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/transforms"
)

// Backend names the JPEG decoders that are built in, with their versions.
func Backend() string {
	return "built-in 1 (pure Go), libjpeg-turbo " + turbo.Version + " for several scans"
}

// backendState is what the back end keeps from image to image.
type backendState struct {
	src turboSource
}

func (b *backendState) close() {
	if b.src.dec != nil {
		b.src.dec.Close()
		b.src.dec = nil
	}
}

// openJPEG chooses the faster decoder: libjpeg-turbo for images of several scans, as
// progressive ones are, the built-in one for others. It has arithmetic-coded ones even if
// the library is asked for, which may be built without, and those whose scans are not all there,
// as the library's guesses of what they lack are others for a part of an image.
func (d *Decoder) openJPEG(h *jpegHeader, data []byte) (transforms.Source, error) {
	if h.arithmetic() || h.incomplete() || !d.opt.Library && !h.severalScans() {
		return d.openGo(h, data)
	}
	return d.openTurbo(h, data)
}

// openTurbo decodes nothing yet: every Scan starts over and decodes what it needs.
func (d *Decoder) openTurbo(h *jpegHeader, data []byte) (transforms.Source, error) {
	s := &d.backend.src
	if s.dec == nil {
		dec, err := turbo.New()
		if err != nil {
			return nil, err
		}
		s.dec = dec
	}
	s.gray, s.h, s.data = d.opt.Color == Gray, *h, data
	return s, nil
}

// turboSource is a JPEG that libjpeg-turbo decodes while it is scanned.
type turboSource struct {
	dec   *turbo.Decoder
	gray  bool // one channel is wanted
	h     jpegHeader
	data  []byte
	rows  []byte // as the library writes them
	strip []byte // converted to gray, where that is needed
}

// Size implements transforms.Source.
func (s *turboSource) Size() (w, h, c int) {
	if s.gray {
		return s.h.w, s.h.h, 1
	}
	return s.h.w, s.h.h, 3
}

// Scan implements transforms.Source.
func (s *turboSource) Scan(r image.Rectangle, f func(y int, strip transforms.Image) error) error {
	if err := checkRect(r, s.h.w, s.h.h); err != nil || r.Empty() {
		return err
	}
	rows, err := s.dec.Start(s.data, s.space(), r.Min.X, r.Dx(), r.Min.Y)
	if err != nil {
		return corrupt(JPEG, "damaged %v", err)
	}
	stride := (rows.Width*rows.Step + 31) &^ 31
	s.rows = unaligned(s.rows, stride*stripRows)
	left := (r.Min.X - rows.First) * rows.Step
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		n := min(stripRows, r.Max.Y-y)
		if err := s.dec.Read(s.rows, stride, n); err != nil {
			return corrupt(JPEG, "damaged %v", err)
		}
		if err := f(y, s.convert(s.rows[left:], r.Dx(), n, rows.Step, stride)); err != nil {
			return err
		}
	}
	return nil
}

// space returns the form to ask for: the nearest to what is wanted that libjpeg converts to.
func (s *turboSource) space() turbo.Space {
	switch {
	case s.h.n == 4:
		return turbo.CMYK
	case s.h.n == 1 && s.gray:
		return turbo.Gray
	}
	return turbo.RGBX
}

// convert makes a strip of n rows of w pixels at pix, copying only what libjpeg cannot
// convert itself.
func (s *turboSource) convert(pix []byte, w, n, step, stride int) transforms.Image {
	if s.h.n == 4 {
		for i := range n {
			adobeToRGBX(pix[i*stride:][:4*w])
		}
	}
	m := transforms.Image{Pix: pix, W: w, H: n, C: 3, Step: step, Stride: stride}
	if !s.gray {
		return m
	}
	m.C = 1
	if step == 4 {
		s.strip = grow(s.strip, n*w)
		for i := range n {
			kernel.Gray(s.strip[i*w:][:w], pix[i*stride:], 4)
		}
		m.Pix, m.Step, m.Stride = s.strip, 1, w
	}
	return m
}

// unaligned returns n bytes whose address is 16 more than a multiple of 32. libjpeg-turbo
// writes rows past the cache where they are 32-byte aligned, and reading such a row at once
// waits for memory. b is reused if it is large enough.
func unaligned(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	b = make([]byte, n+48)
	off := (48 - int(uintptr(unsafe.Pointer(&b[0]))%32)) % 32
	return b[off:][:n:n]
}
