package combine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// cutter copies windows out of the arrays of Sources. All fields are fixed when it is made, except
// the cache and the retention, which have locks of their own; any goroutine may gather.
type cutter struct {
	named
	fields    []windowed
	specs     []tensor.Spec
	axes      []axis
	origins   *origins
	cache     chunkCache
	retention atomic.Pointer[chunkRetention] // nil without an order of chunks
	scratch   sync.Pool                      // of *windowScratch
}

// windowScratch is memory that one call borrows and returns.
type windowScratch struct {
	place place
	spans [tensor.MaxRank]span
	shown shown
	files []int   // the records of the Source whose image files windows have
	ends  []int64 // their offsets
	rows  []byte
}

// shown is one view of the Source's records that serves several consecutive windows. Overlapping
// windows would otherwise slice, and check, the same records many times.
type shown struct {
	first, end int
	data       []byte
	left       int // windows of the run that remain to be copied
}

// mostShown limits the bytes of windows that share a view: the Source brings all of these
// bytes into memory before the first window is copied.
const mostShown = 4 << 20

// rows returns n records from first on, or nil if the view does not contain them.
func (s *shown) rows(first, n, size int) []byte {
	if first < s.first || first+n > s.end {
		return nil
	}
	return s.data[(first-s.first)*size : (first-s.first+n)*size]
}

func (w *cutter) borrow() *windowScratch {
	if s, ok := w.scratch.Get().(*windowScratch); ok {
		return s
	}
	return new(windowScratch)
}

// field returns the named field of the records.
func (w *cutter) field(name string) (*windowed, error) {
	i := fieldOf(w.specs, name)
	if i < 0 {
		return nil, fmt.Errorf("combine: window: there is no field %q", name)
	}
	return &w.fields[i], nil
}

// gather copies windows. Windows in the Source's memory are copied at once. Windows in
// chunks are collected first, so that each chunk is decoded only once.
func (w *cutter) gather(ctx context.Context, field string, indices []int, dst []byte) error {
	f, err := w.field(field)
	if err != nil {
		return err
	}
	s := w.borrow()
	defer func() {
		s.shown = shown{}
		w.scratch.Put(s)
	}()
	size, together := f.out.RecordBytes(), f.rows && !f.chunked()
	var rest *blockRead
	var reads rowReads
	for k, i := range indices {
		if uint(i) >= uint(w.origins.n) {
			return fmt.Errorf("combine: window: record %d of %d does not exist", i, w.origins.n)
		}
		if f.rows && s.shown.left == 0 {
			w.show(f, s, indices[k:])
		}
		s.shown.left--
		w.origins.of(i, &s.place)
		to := dst[k*size : (k+1)*size]
		done, err := w.copy(f, s, to)
		if err != nil {
			return failed(err, i)
		}
		if done {
			continue
		}
		if first, n, plain := w.rowsOf(f, &s.place); plain && together {
			reads.add(k, first, n)
			continue
		}
		rest = w.addTo(rest, f, s, i, to)
	}
	if !reads.overlap() {
		if err := reads.read(ctx, f, indices, dst); err != nil {
			return err
		}
	} else {
		for _, k := range reads.windows {
			w.origins.of(indices[k], &s.place)
			for a := range f.cuts {
				w.span(f, a, s)
			}
			rest = w.addTo(rest, f, s, indices[k], dst[k*size:(k+1)*size])
		}
	}
	if rest == nil {
		return nil
	}
	if k := w.retention.Load(); k != nil {
		k.past.add(indices[0])
		k.touch(&w.cache, f, indices)
	}
	return rest.run(ctx)
}

// addTo adds the window of the scratch memory's spans to the windows that are copied out of chunks.
func (w *cutter) addTo(r *blockRead, f *windowed, s *windowScratch, record int, dst []byte) *blockRead {
	if r == nil {
		r = newBlockRead(&w.cache, f)
	}
	r.add(s.spans[:len(f.cuts)], record, dst)
	return r
}

// show takes one view of the Source's records for the windows at the beginning of indices that are
// consecutive, and stores it in s.shown. If the Source shows no view, s.shown has no data, and copy
// reads each window by itself: an error then names one window.
func (w *cutter) show(f *windowed, s *windowScratch, indices []int) {
	most := max(1, min(len(indices), mostShown/max(1, f.out.RecordBytes())))
	n := 1
	for n < most && indices[n] == indices[n-1]+1 {
		n++
	}
	s.shown = shown{left: n}
	last := indices[n-1]
	if n == 1 || last >= w.origins.n {
		return
	}
	w.origins.of(indices[0], &s.place)
	first, rows, plain := w.rowsOf(f, &s.place)
	w.origins.of(last, &s.place)
	start, _, lastPlain := w.rowsOf(f, &s.place)
	end := start + rows
	if !plain || !lastPlain || start < first || end-first > n*rows || !f.part.can.Contiguous(f.in.Name, first, end) {
		return
	}
	if data, err := warmSlice(f.part, f.in.Name, first, end); err == nil {
		s.shown.first, s.shown.end, s.shown.data = first, end, data
	}
}

// copy copies a window that lies in the Source's memory. For any other window it sets the spans and
// returns false.
func (w *cutter) copy(f *windowed, s *windowScratch, dst []byte) (done bool, err error) {
	if f.rows {
		first, n, plain := w.rowsOf(f, &s.place)
		if data := s.shown.rows(first, n, f.in.RecordBytes()); plain && data != nil {
			kernel.Copy(dst, data)
			return true, nil
		}
		if plain && f.part.can.Contiguous(f.in.Name, first, first+n) {
			data, err := warmSlice(f.part, f.in.Name, first, first+n)
			if err == nil {
				kernel.Copy(dst, data)
			}
			return true, err
		}
	}
	for a := range f.cuts {
		w.span(f, a, s)
	}
	rows := &s.spans[0]
	lo, hi := rows.limits()
	if lo >= hi || !f.part.can.Contiguous(f.in.Name, lo, hi) {
		if lo >= hi { // all of it is beyond the edge
			repeat(dst, f.fill)
		}
		return lo >= hi, nil
	}
	data, err := warmSlice(f.part, f.in.Name, lo, hi)
	if err != nil {
		return true, err
	}
	newBox(f, s.spans[:len(f.cuts)]).copy(0, dst, data, -lo)
	return true, nil
}

// warmSlice returns records [a, b) of a Source after bringing them into memory: a page fault during
// the copy would block a thread of the scheduler.
func warmSlice(p *member, field string, a, b int) ([]byte, error) {
	if m := p.can.Mapped; m != nil && !m.IsWarm(field, a, b) {
		if err := m.Warm(field, a, b); err != nil {
			return nil, err
		}
	}
	v, err := p.Slice(field, a, b)
	return v.Bytes(), err
}

// rowsOf returns the Source's records for a window of whole records; plain is false if the window
// reaches beyond the records.
func (w *cutter) rowsOf(f *windowed, p *place) (first, n int, plain bool) {
	c := &f.cuts[0]
	if c.axis < 0 {
		return 0, c.n, true
	}
	first = c.start(p.at[c.axis])
	lo, hi := w.origins.bounds(c, p)
	return first, c.size, first >= lo && first+c.size <= hi
}

// span sets the elements of a window along an axis of a field. Only a window that reaches beyond an
// edge needs a list.
func (w *cutter) span(f *windowed, a int, s *windowScratch) {
	c, to := &f.cuts[a], &s.spans[a]
	to.list = to.list[:0]
	to.first, to.n, to.step = 0, c.size, c.dilation
	if c.axis < 0 {
		return
	}
	to.first = c.start(s.place.at[c.axis])
	lo, hi := w.origins.bounds(c, &s.place)
	last := to.first + c.span()
	if to.first >= lo && last < hi {
		return
	}
	pad := w.axes[c.axis].pad
	for k := range c.size {
		to.list = append(to.list, beyond(pad, to.first+k*c.dilation, lo, hi))
	}
}

// beyond returns the element that stands at place i of an axis whose elements are [lo, hi); -1 is
// fill.
func beyond(pad Pad, i, lo, hi int) int {
	n := hi - lo
	if i >= lo && i < hi {
		return i
	}
	switch i -= lo; pad {
	case PadWrap:
		return lo + mod(i, n)
	case PadEdge:
		return lo + max(0, min(i, n-1))
	case PadReflect:
		if n == 1 {
			return lo
		}
		i = mod(i, 2*(n-1))
		return lo + min(i, 2*(n-1)-i)
	}
	return -1
}

func mod(a, n int) int { return ((a % n) + n) % n }

func floorDiv(a, n int) int { return (a - mod(a, n)) / n }

// consecutive returns the Source's records for windows [a, b) if they are consecutive there: then
// the windows are a view.
func (w *cutter) consecutive(field string, a, b int) (p *member, name string, first, end int, ok bool) {
	f, err := w.field(field)
	if err != nil || !f.rows || a < 0 || b > w.origins.n || a >= b {
		return nil, "", 0, 0, false
	}
	var at place
	w.origins.of(a, &at)
	first, n, ok := w.rowsOf(f, &at)
	if !ok || b == a+1 {
		return f.part, f.in.Name, first, first + n, ok
	}
	c := &f.cuts[0]
	if w.origins.table != nil || len(w.axes) > 1 || c.axis < 0 || w.axes[0].stride != n {
		return nil, "", 0, 0, false
	}
	w.origins.of(b-1, &at)
	last, _, ok := w.rowsOf(f, &at)
	return f.part, f.in.Name, first, last + n, ok && last == first+(b-1-a)*n
}

// each calls f with the Source's records for each window. Overlapping windows cause one call for
// the range of all their records.
func (w *cutter) each(field string, a, b int, f func(p *member, name string, first, end int) error) error {
	of, err := w.field(field)
	if err != nil {
		return err
	}
	s := w.borrow()
	defer w.scratch.Put(s)
	first, end := 0, 0
	for i := a; i < b; i++ {
		w.origins.of(i, &s.place)
		w.span(of, 0, s)
		lo, hi := s.spans[0].limits()
		if lo >= first && lo <= end {
			end = max(end, hi)
			continue
		}
		if first < end {
			if err := f(of.part, of.in.Name, first, end); err != nil {
				return err
			}
		}
		first, end = lo, hi
	}
	if first < end {
		return f(of.part, of.in.Name, first, end)
	}
	return nil
}
