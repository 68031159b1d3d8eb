//go:build turbo && cgo

package decode

// #cgo LDFLAGS: -ljpeg
// #include "turbo.h"
import "C"

import (
	"image"
	"runtime"
	"unsafe"

	"github.com/penstock/penstock/transforms"
)

// Backend names the JPEG decoder that is built in, with its version.
func Backend() string { return "libjpeg-turbo " + C.GoString(C.pst_version()) }

// backendState is what the back end keeps from image to image.
type backendState struct {
	c       *C.pst_decoder // made by the first JPEG
	cleanup runtime.Cleanup
	src     turboSource
}

func (b *backendState) close() {
	if b.c != nil {
		b.cleanup.Stop()
		C.pst_free(b.c)
		b.c = nil
	}
}

// decoder returns the C decoder; a Decoder that is dropped without Close frees it too.
func (d *Decoder) decoder() *C.pst_decoder {
	b := &d.backend
	if b.c == nil {
		if b.c = C.pst_new(); b.c == nil {
			panic("decode: libjpeg-turbo cannot start: out of memory, or of another version than its header")
		}
		b.cleanup = runtime.AddCleanup(d, func(c *C.pst_decoder) { C.pst_free(c) }, b.c)
	}
	return b.c
}

// openJPEG decodes nothing yet: every Scan starts over and decodes what it needs.
func (d *Decoder) openJPEG(h *jpegHeader, data []byte) (transforms.Source, error) {
	s := &d.backend.src
	s.d, s.h, s.data = d, *h, data
	return s, nil
}

// turboSource is a JPEG that libjpeg-turbo decodes while it is scanned: up to the last row
// asked for, of the other rows and columns only what keeps the pixels the same.
type turboSource struct {
	d     *Decoder
	h     jpegHeader
	data  []byte
	rows  []byte // as the library writes them
	strip []byte // converted, where that is needed
}

// Size implements transforms.Source.
func (s *turboSource) Size() (w, h, c int) { return s.h.w, s.h.h, s.d.channels() }

// Scan implements transforms.Source.
func (s *turboSource) Scan(r image.Rectangle, f func(y int, strip transforms.Image) error) error {
	if err := checkRect(r, s.h.w, s.h.h); err != nil || r.Empty() {
		return err
	}
	c := s.d.decoder()
	var rows C.pst_rows
	if C.pst_start(c, (*C.uchar)(unsafe.Pointer(unsafe.SliceData(s.data))), C.size_t(len(s.data)), s.space(),
		C.uint(r.Min.X), C.uint(r.Dx()), C.uint(r.Min.Y), &rows) != 0 {
		return s.failed(c)
	}
	step := int(rows.step)
	stride := (int(rows.width)*step + 31) &^ 31
	s.rows = unaligned(s.rows, stride*(stripRows+1))
	left := (r.Min.X - int(rows.first)) * step
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		n := min(stripRows, r.Max.Y-y)
		if C.pst_read(c, (*C.uchar)(unsafe.Pointer(&s.rows[0])), C.size_t(stride), C.uint(n)) != 0 {
			return s.failed(c)
		}
		if err := f(y, s.convert(s.rows[left:], r.Dx(), n, step, stride)); err != nil {
			return err
		}
	}
	return nil
}

// space returns the colour space to ask for: the nearest to what is wanted that libjpeg
// converts to.
func (s *turboSource) space() C.int {
	switch {
	case s.h.n == 4:
		return C.PST_CMYK
	case s.h.n == 1 && s.d.opt.Color == Gray:
		return C.PST_GRAY
	}
	return C.PST_RGBX
}

// convert makes a strip of n rows of w pixels at pix, copying only what libjpeg cannot
// convert itself.
func (s *turboSource) convert(pix []byte, w, n, step, stride int) transforms.Image {
	if s.h.n == 4 {
		for i := range n {
			adobeToRGBX(pix[i*stride:][:4*w])
		}
	}
	m := transforms.Image{Pix: pix, W: w, H: n, C: s.d.channels(), Step: step, Stride: stride}
	if m.C == 1 && step == 4 {
		s.strip = grow(s.strip, n*w)
		for i := range n {
			rgbxToGray(s.strip[i*w:][:w], pix[i*stride:])
		}
		m.Pix, m.Step, m.Stride = s.strip, 1, w
	}
	return m
}

func (s *turboSource) failed(c *C.pst_decoder) error {
	return corrupt(JPEG, "damaged near row %d of %d: %s", uint(C.pst_row(c)), s.h.h, C.GoString(C.pst_message(c)))
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
