package transforms

import (
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// planar does the work of a plan that needs no more than single planes, and reports whether
// this one is such.
func (r *Runner) planar(t target, m *Planar) (bool, error) {
	p := &r.plan.passes[0]
	if len(r.plan.passes) > 1 || p.resize || p.padded || p.post != (colorMode{}) ||
		(r.plan.store.layout != CHW && m.C != 1) {
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
	s.scratch[0] = pixel.Grow(s.scratch[0], w*max(1, min(h, mirrored/w)))
	return s.scratch[0]
}
