package transforms

import (
	"errors"
	"fmt"
	"image"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
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

// Validate reports what makes the fields of m contradict each other.
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
	m.strip = grow(m.strip, stripRows*r.Dx()*3)
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		strip := shapeImage(m.strip, r.Dx(), min(stripRows, r.Max.Y-y), 3)
		for i := range strip.H {
			red, green, blue := planeRows(m.Pix, y+i, 1, m.W, m.H)
			kernel.Interleave(strip.Row(i), red[r.Min.X:r.Max.X], green[r.Min.X:r.Max.X], blue[r.Min.X:r.Max.X])
		}
		if err := f(y, strip); err != nil {
			return err
		}
	}
	return nil
}

// planar does the work of a plan that needs no more than single planes, and reports whether
// this one is such.
func (r *Runner) planar(t target, m *Planar) (bool, error) {
	p := &r.plan.passes[0]
	if len(r.plan.passes) > 1 || p.resize || p.padded || p.post != (colorMode{}) || (r.plan.store.layout != CHW && m.C != 1) {
		return false, nil
	}
	if err := m.Validate(); err != nil {
		return true, err
	}
	switch t.dtype {
	case tensor.Uint8:
		planes(r, t.dst, m, p, copyBytes)
	case tensor.Float32:
		planes(r, t.f32, m, p, (*kernel.Norm).F32)
	default:
		planes(r, t.u16, m, p, (*kernel.Norm).U16)
	}
	return true, nil
}

func copyBytes(_ *kernel.Norm, dst, src []byte, _ int) { copy(dst, src) }

// planes converts all planes: whole ones where nothing is cut or mirrored, else rows, which
// are mirrored some KiB at a time.
func planes[T any](r *Runner, dst []T, m *Planar, p *pass, convert func(*kernel.Norm, []T, []byte, int)) {
	w, h := p.src.Dx(), p.src.Dy()
	strip := r.scan.out.strip(p, w, h)
	for c := range m.C {
		from, to := m.Pix[c*m.W*m.H:(c+1)*m.W*m.H], dst[c*w*h:(c+1)*w*h]
		if w == m.W && !p.flipH && !p.flipV {
			convert(&r.norm, to, from[p.src.Min.Y*w:p.src.Max.Y*w], c)
			continue
		}
		rows := max(1, len(strip)/w)
		for y := 0; y < h; y += rows {
			n := min(rows, h-y)
			src, at := from[(p.src.Min.Y+y)*m.W+p.src.Min.X:][:(n-1)*m.W+w], y
			if p.flipH {
				kernel.ReverseRows(strip[:n*w], src, w, m.W)
				src = strip[:n*w]
			}
			if p.flipV {
				at = h - 1 - y
			}
			convert(&r.norm, to[at*w:(at+n)*w], src, c)
		}
	}
}

// mirrored is about how many bytes are mirrored at a time: they stay in the nearest cache.
const mirrored = 8 << 10

// strip returns memory for the rows of a plane of w x h pixels that are mirrored at a time:
// one where they are turned upside down too, and none where they are not mirrored.
func (s *sink) strip(p *pass, w, h int) []byte {
	switch {
	case !p.flipH:
		return nil
	case p.flipV:
		h = 1
	}
	s.scratch[0] = grow(s.scratch[0], w*max(1, min(h, mirrored/w)))
	return s.scratch[0]
}

// SourceOf returns a stored uint8 record as a Source over the same bytes: a Planar or an
// Image, as info says.
func SourceOf(info Info, record []byte) (Source, error) {
	if info.dtype() != tensor.Uint8 {
		return nil, errors.New("transforms: only uint8 records are images; this is " + info.dtype().String())
	}
	if info.Layout == CHW {
		m := &Planar{Pix: record, W: info.W, H: info.H, C: info.C}
		return m, m.Validate()
	}
	m := &Image{Pix: record, W: info.W, H: info.H, C: info.C, Step: info.C, Stride: info.W * info.C}
	return m, m.Validate()
}
