package decode

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"

	"github.com/gen2brain/jpegn"

	"github.com/penstock/penstock/transforms"
)

// openPlanes decodes a JPEG without C. Plain baseline files go to jpegn, which is fast and
// takes damage for pixels; the rest, and what looks cut short after it, to image/jpeg,
// which is slow and strict.
func (d *Decoder) openPlanes(h *jpegHeader, data []byte) (transforms.Source, error) {
	if h.plain() {
		ok, err := d.openFast(h, data)
		if ok || err != nil {
			return &d.planes, err
		}
	}
	var m image.Image
	err := guard(JPEG, func() (err error) {
		m, err = jpeg.Decode(bytes.NewReader(data))
		return err
	})
	if err != nil {
		return nil, err
	}
	if d.setPlanes(h, m) {
		return &d.planes, nil
	}
	return d.fromImage(JPEG, m)
}

// plain reports whether all there is to decode is one baseline scan of luma, and chroma at
// no more than its resolution.
func (h *jpegHeader) plain() bool {
	if h.sof > mSOF1 || h.scanComps != h.n || h.n == 4 || h.model() == "rgb" {
		return false
	}
	for _, c := range h.comp[1:h.n] {
		if c.h != 1 || c.v != 1 {
			return false
		}
	}
	return h.n == 1 || h.comp[0].h != 3 && h.comp[0].v != 3
}

// openFast decodes by jpegn. It returns false where image/jpeg has to be asked.
func (d *Decoder) openFast(h *jpegHeader, data []byte) (ok bool, err error) {
	err = guard(JPEG, func() error {
		m, err := jpegn.Decode(bytes.NewReader(data))
		ok = err == nil && d.setPlanes(h, m) && !d.planes.suspicious(h)
		return nil
	})
	return ok, err
}

// setPlanes takes over the planes of m, if it has any of the form that the header makes
// expect.
func (d *Decoder) setPlanes(h *jpegHeader, m image.Image) bool {
	p := &d.planes
	p.w, p.h, p.c = h.w, h.h, d.channels()
	switch m := m.(type) {
	case *image.Gray:
		p.n = 1
		p.comp[0] = plane{pix: m.Pix, stride: m.Stride, w: h.w, h: h.h, fx: 1, fy: 1}
	case *image.YCbCr:
		fx, fy, ok := subsampling(m.SubsampleRatio)
		if !ok {
			return false
		}
		p.n = 3
		p.comp[0] = plane{pix: m.Y, stride: m.YStride, w: h.w, h: h.h, fx: 1, fy: 1}
		p.comp[1] = plane{pix: m.Cb, stride: m.CStride, w: (h.w + fx - 1) / fx, h: (h.h + fy - 1) / fy, fx: fx, fy: fy}
		p.comp[2] = p.comp[1]
		p.comp[2].pix = m.Cr
	default:
		return false
	}
	return p.ready(m.Bounds())
}

// ready reports whether the planes hold the samples that they promise.
func (p *planes) ready(r image.Rectangle) bool {
	if r != image.Rect(0, 0, p.w, p.h) {
		return false
	}
	for i := range p.comp[:p.n] {
		c := &p.comp[i]
		if c.stride < c.w || len(c.pix) < (c.h-1)*c.stride+c.w {
			return false
		}
		c.fancy = c.triangle()
	}
	return true
}

func subsampling(r image.YCbCrSubsampleRatio) (fx, fy int, ok bool) {
	switch r {
	case image.YCbCrSubsampleRatio444:
		return 1, 1, true
	case image.YCbCrSubsampleRatio422:
		return 2, 1, true
	case image.YCbCrSubsampleRatio420:
		return 2, 2, true
	case image.YCbCrSubsampleRatio440:
		return 1, 2, true
	case image.YCbCrSubsampleRatio411:
		return 4, 1, true
	case image.YCbCrSubsampleRatio410:
		return 4, 2, true
	}
	return 0, 0, false
}

// suspicious reports whether the data may have ended before the image, or before a restart
// interval: jpegn then leaves blocks flat, so a last unit that is not flat came from the
// file. A flat one need not be wrong, it needs a strict decoder.
func (p *planes) suspicious(h *jpegHeader) bool {
	fx, fy := p.comp[p.n-1].fx, p.comp[p.n-1].fy
	across := (p.w + 8*fx - 1) / (8 * fx)
	units := across * ((p.h + 8*fy - 1) / (8 * fy))
	step := h.restart
	if step == 0 {
		step = units
	}
	for end := step; ; end += step {
		u := min(end, units) - 1
		if p.flatUnit(u%across, u/across, fx, fy) {
			return true
		}
		if end >= units {
			return false
		}
	}
}

// flatUnit reports whether every block of the unit (MCU) at ux, uy is of one value.
func (p *planes) flatUnit(ux, uy, fx, fy int) bool {
	for i := range p.comp[:p.n] {
		c := &p.comp[i]
		bx, by := fx/c.fx, fy/c.fy
		for b := range bx * by {
			x, y := 8*(ux*bx+b%bx), 8*(uy*by+b/bx)
			if !c.flatBlock(x, y) {
				return false
			}
		}
	}
	return true
}

func (c *plane) flatBlock(x, y int) bool {
	off := y*c.stride + x
	if off+7*c.stride+8 > len(c.pix) {
		return true
	}
	want := uint64(c.pix[off]) * 0x0101010101010101
	for range 8 {
		if binary.LittleEndian.Uint64(c.pix[off:]) != want {
			return false
		}
		off += c.stride
	}
	return true
}
