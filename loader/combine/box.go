package combine

import "github.com/penstock/penstock/tensor"

// span lists the elements of a window along one axis: first, first+step, ..., or, near an edge, the
// elements of list, in which -1 is the fill value.
type span struct {
	first, n, step int
	list           []int // if it is not empty
}

// at returns element k.
func (s *span) at(k int) int {
	if len(s.list) > 0 {
		return s.list[k]
	}
	return s.first + k*s.step
}

// isAll reports whether the elements are all n elements of an axis, in order.
func (s *span) isAll(n int) bool { return len(s.list) == 0 && s.first == 0 && s.step == 1 && s.n == n }

// limits returns the smallest range [lo, hi) of array indexes with all elements of the span. The
// range is empty if the span has only fill elements, which no index of the array has.
func (s *span) limits() (lo, hi int) {
	if len(s.list) == 0 {
		return s.first, s.first + (s.n-1)*s.step + 1
	}
	lo = -1
	for _, i := range s.list {
		if i >= 0 && (lo < 0 || i < lo) {
			lo = i
		}
		hi = max(hi, i+1)
	}
	return max(0, lo), hi
}

// box copies the part of an array that spans choose.
type box struct {
	spans []span
	axes  int                 // up to here; what is within is copied as it is
	from  [tensor.MaxRank]int // bytes of a step along each axis of the array
	to    [tensor.MaxRank]int // and of the window
	fill  []byte              // an element
}

// newBox returns the box of a field. Inner axes that stay whole are merged into one, so that their
// elements are one copy.
func newBox(f *windowed, spans []span) *box {
	b := &box{spans: spans, fill: f.fill, axes: len(f.cuts)}
	from, to := f.in.DType.Size(), f.in.DType.Size()
	for a := len(f.cuts) - 1; a >= 0; a-- {
		b.from[a], b.to[a] = from, to
		from, to = from*f.cuts[a].n, to*f.cuts[a].size
	}
	for b.axes > 1 && f.cuts[b.axes-1].axis < 0 { // whole axes within all cuts
		b.axes--
	}
	return b
}

// copy copies the axes from a on. Element i of axis a is element i+shift of src, which may begin in
// the middle of the array.
func (b *box) copy(a int, dst, src []byte, shift int) {
	s, from, to := &b.spans[a], b.from[a], b.to[a]
	last := a == b.axes-1
	if last && len(s.list) == 0 && s.step == 1 {
		at := (s.first + shift) * from
		copy(dst[:s.n*to], src[at:])
		return
	}
	for k := range s.n {
		i := s.at(k)
		switch sub := dst[k*to : (k+1)*to]; {
		case i < 0:
			repeat(sub, b.fill)
		case last:
			copy(sub, src[(i+shift)*from:])
		default:
			b.copy(a+1, sub, src[(i+shift)*from:], 0)
		}
	}
}

// repeat fills dst with copies of an element, doubling the filled part with each copy.
func repeat(dst, element []byte) {
	for n := copy(dst, element); n < len(dst); {
		n += copy(dst[n:], dst[:n])
	}
}
