package combine

import (
	"fmt"
	"math/bits"
	"slices"
)

// Overlap describes the elements that windows of two fields share.
type Overlap struct {
	Array    string    `json:"array"` // from which both fields are cut
	Fields   [2]string `json:"fields"`
	Elements [2]int64  `json:"elements"` // of the array, that windows of each have
	Shared   int64     `json:"shared"`   // that windows of both have
}

// Overlaps returns the fields of two views that are windows of one array, and the elements of the array that windows
// of both have: a training and a validation set should share none. Arrays are the same if their names, sources and
// sizes are.
func Overlaps(a, b *Windows) ([]Overlap, error) {
	var list []Overlap
	for i := range a.c.fields {
		for k := range b.c.fields {
			f, g := &a.c.fields[i], &b.c.fields[k]
			if f.in.Name != g.in.Name || f.part.can.ID() != g.part.can.ID() || f.part.Len() != g.part.Len() ||
				!slices.Equal(f.in.Shape, g.in.Shape) {
				continue
			}
			o, err := overlap(&a.c, f, &b.c, g)
			if err != nil {
				return nil, fmt.Errorf("combine: overlap of %q and %q: %w", f.out.Name, g.out.Name, err)
			}
			list = append(list, o)
		}
	}
	return list, nil
}

// mostCells limits the elements of an array whose windows have a list of origins.
const mostCells = 1 << 33

func overlap(a *cutter, f *windowed, b *cutter, g *windowed) (Overlap, error) {
	o := Overlap{Array: f.in.Name, Fields: [2]string{f.out.Name, g.out.Name}}
	if a.origins.table != nil || b.origins.table != nil {
		x, err := a.cells(f)
		if err != nil {
			return o, err
		}
		y, err := b.cells(g)
		if err != nil {
			return o, err
		}
		o.Elements, o.Shared = [2]int64{x.count(nil), y.count(nil)}, x.count(y)
		return o, nil
	}
	o.Elements, o.Shared = [2]int64{1, 1}, 1
	for axis := range f.cuts { // a window is a product, and a grid of origins too
		x, y := a.covered(f, axis), b.covered(g, axis)
		o.Elements[0] *= x.count(nil)
		o.Elements[1] *= y.count(nil)
		o.Shared *= x.count(y)
	}
	return o, nil
}

// bitset is a set of numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) add(i int) { s[i/64] |= 1 << (i % 64) }

// addRange adds [a, b).
func (s bitset) addRange(a, b int) {
	for ; a < b && a%64 != 0; a++ {
		s.add(a)
	}
	for ; a+64 <= b; a += 64 {
		s[a/64] = ^uint64(0)
	}
	for ; a < b; a++ {
		s.add(a)
	}
}

// count returns how many numbers are in the set and, unless other is nil, in other too.
func (s bitset) count(other bitset) (n int64) {
	for i, word := range s {
		if other != nil {
			word &= other[i]
		}
		n += int64(bits.OnesCount64(word))
	}
	return n
}

// covered returns the elements of an axis of a field that windows of a grid have.
func (w *cutter) covered(f *windowed, axis int) bitset {
	c := &f.cuts[axis]
	s := newBitset(c.n)
	if c.axis < 0 {
		s.addRange(0, c.n)
		return s
	}
	o, a := w.origins, &w.axes[c.axis]
	if c.axis != o.runAxis {
		s.addAligned(a, c, o.axes[c.axis].first, o.axes[c.axis].count, 0, a.n)
		return s
	}
	before := 0
	for i, end := range o.ends {
		s.addAligned(a, c, o.firsts[i], end-before, o.reach[i][0], o.reach[i][1])
		before = end
	}
	return s
}

// addAligned adds the elements of windows with count origins, of elements [lo, hi) of an axis. Every per-th window of a
// field of another resolution is as far after the one before it.
func (s bitset) addAligned(a *axis, c *cut, first, count, lo, hi int) {
	lo, hi = c.within(lo, hi, a.n)
	for i := range min(c.per, count) {
		w := progression{c.start(first + i*a.stride), a.stride * c.times, (count-i-1)/c.per + 1}
		s.addWindows(a.pad, c, w, lo, hi)
	}
}

// progression is the first elements of some windows: first, first+stride, ...
type progression struct{ first, stride, count int }

// addWindows adds the elements of windows, of elements [lo, hi).
func (s bitset) addWindows(pad Pad, c *cut, w progression, lo, hi int) {
	for k := range c.size {
		from, n := w.first+k*c.dilation, w.count
		for n > 0 && from < lo {
			s.addBeyond(pad, from, lo, hi)
			from, n = from+w.stride, n-1
		}
		for n > 0 && from+(n-1)*w.stride >= hi {
			s.addBeyond(pad, from+(n-1)*w.stride, lo, hi)
			n--
		}
		if w.stride == 1 && n > 0 {
			s.addRange(from, from+n)
			continue
		}
		for i := range n {
			s.add(from + i*w.stride)
		}
	}
}

func (s bitset) addBeyond(pad Pad, i, lo, hi int) {
	if i = beyond(pad, i, lo, hi); i >= 0 {
		s.add(i)
	}
}

// cells returns the elements of the array of a field that windows have, whose number in the array is that of memory.
func (w *cutter) cells(f *windowed) (bitset, error) {
	total := 1
	for _, c := range f.cuts {
		if c.n > mostCells/total {
			return nil, fmt.Errorf("the array has more than %d elements, too many to compare windows with origins of their own",
				int64(mostCells))
		}
		total *= c.n
	}
	s, scratch := newBitset(total), w.borrow()
	defer w.scratch.Put(scratch)
	for i := range w.origins.n {
		w.origins.of(i, &scratch.place)
		for axis := range f.cuts {
			w.span(f, axis, scratch)
		}
		s.addBox(f, scratch, 0, 0)
	}
	return s, nil
}

// addBox adds the elements of a window, from an axis on.
func (s bitset) addBox(f *windowed, of *windowScratch, axis, at int) {
	span := &of.spans[axis]
	for k := range span.n {
		switch i := span.at(k); {
		case i < 0: // the fill
		case axis == len(f.cuts)-1:
			s.add(at*f.cuts[axis].n + i)
		default:
			s.addBox(f, of, axis+1, at*f.cuts[axis].n+i)
		}
	}
}
