package transforms

import (
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// planar carries out a plan that treats every plane alone (crops, flips, conversion to CHW), and
// reports whether the plan is such. Stored CHW records then need not be interleaved to pixels and
// taken apart again.
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

// planes converts all planes of an image. A plane that is neither cut nor mirrored is one call of
// the kernel; otherwise rows are mirrored some KiB at a time, while they are in the nearest cache.
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

// mirrored is about how many bytes are mirrored at a time: few enough to stay in the nearest cache.
const mirrored = 8 << 10

// strip returns memory for the rows that are mirrored at a time, of a plane of w x h pixels. The
// memory holds a single row if the plane is also turned upside down, and is nil if rows are not
// mirrored.
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
