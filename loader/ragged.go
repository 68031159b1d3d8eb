package loader

import (
	"fmt"

	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/loader/internal/padding"

	"github.com/penstock/penstock/tensor"
)

// fillRagged gathers the fields of variable length, and adds up the lengths of those that were transformed. Where a
// record fails, another one takes its place in all fields, and they are gathered over again.
func (w *worker) fillRagged(p *pass, s *slot) error {
	failed := w.gatherRagged(p, s)
	for round := 0; failed != nil; round++ {
		if w.ld.opts.OnError == Fail || p.ctx.Err() != nil || round == attempts || !s.has(failed) {
			return failed
		}
		if err := w.repair(p, s, 0, len(s.indices), failed, func(i int) error { return w.probeRagged(p, s, i) }); err != nil {
			return err
		}
		failed = w.gatherRagged(p, s)
	}
	for f := range w.ld.fields {
		if fd := &w.ld.fields[f]; fd.in.Ragged && !fd.ragged {
			ends := s.offsets[f][:len(s.indices)+1]
			ends[0] = 0
			for i := range s.indices {
				ends[i+1] += ends[i]
			}
		}
	}
	return nil
}

// gatherRagged gathers all fields of variable length that are not views.
func (w *worker) gatherRagged(p *pass, s *slot) *Error {
	for f := range w.ld.fields {
		if w.ld.fields[f].ragged && !s.viewing[f] {
			if err := w.rows(p, s, f); err != nil {
				return w.locate(p, s, f, 0, len(s.indices), err)
			}
		}
	}
	return nil
}

// rows gathers the rows of a field into memory of the slot, or of the caller.
func (w *worker) rows(p *pass, s *slot, f int) (err error) {
	defer w.catch(&err)
	fd := &w.ld.fields[f]
	w.mark.set(s, f, -1)
	w.begin()
	offsets := s.offsets[f][:len(s.indices)+1]
	dst, err := w.rowsFor(p, s, f, offsets)
	if err != nil {
		return err
	}
	dst, err = w.ld.can.Ragged.GatherRagged(p.ctx, fd.in.Name, s.indices, offsets, dst)
	if err != nil {
		return err
	}
	if s.own == nil {
		s.rows[f] = dst
	}
	s.views[f] = tensor.Of(fd.in, int(offsets[len(s.indices)]), dst)
	w.read(w.lap(), s.indices, len(dst))
	return nil
}

// rowsFor returns memory for the rows of field f: that of earlier batches, which may be too
// short and then is replaced from the Go heap; the caller's; or that of Options.Allocator.
func (w *worker) rowsFor(p *pass, s *slot, f int, offsets []int64) ([]byte, error) {
	o, dst := &w.ld.opts, s.rows[f]
	if s.own == nil && o.Budget == 0 && o.Allocator == nil {
		return dst, nil
	}
	fd := &w.ld.fields[f]
	if err := w.ld.can.Ragged.Lengths(p.ctx, fd.in.Name, s.indices, offsets); err != nil {
		return nil, err
	}
	need := int(offsets[len(s.indices)]) * fd.stored
	switch {
	case s.own != nil && need > len(s.own[f]):
		return nil, fmt.Errorf("the rows of the batch have %d bytes, and there is memory for %d", need, len(s.own[f]))
	case s.own != nil:
		return s.own[f], nil
	}
	if err := w.fits(s, f, need); err != nil || o.Allocator == nil {
		return dst, err
	}
	s.rows[f] = nil // it may be freed now
	return w.ld.ring.Grow(s.index, f, max(1, need))
}

// fits reports rows of need bytes that are more than Budget leaves for each batch.
func (w *worker) fits(s *slot, f, need int) error {
	o := &w.ld.opts
	if o.Budget == 0 {
		return nil
	}
	if o.Allocator != nil {
		need = memory.WholePages(max(1, need))
	}
	left := o.Budget/o.slots() - w.ld.ring.Stride()
	for other, rows := range s.rows {
		if other != f {
			left -= cap(rows)
		}
	}
	if need > left {
		return fmt.Errorf("the rows of the batch have %d bytes, and Budget leaves %d for each of %d batches; lower BatchSize, Prefetch or Workers", need, left, o.slots())
	}
	return nil
}

// Pad is the Transform of a field of variable length to one of Length rows: what is longer
// is cut at its end, and what is shorter is filled up. Batch.Offsets says the lengths that
// were stored.
type Pad struct {
	Length int
	Value  float64 // of the elements that are filled in; must be exact in the field's type
}

// Output returns the shape (Length, row shape...).
func (t Pad) Output(in tensor.Spec) (tensor.Spec, error) {
	if !in.Ragged {
		return in, fmt.Errorf("has records of one length, %v; there is nothing to pad", in.Shape)
	}
	if t.Length < 1 {
		return in, fmt.Errorf("Pad to Length %d", t.Length)
	}
	if _, err := padding.Element(in.DType, t.Value); err != nil {
		return in, err
	}
	return tensor.Spec{Name: in.Name, DType: in.DType, Shape: append(tensor.Shape{t.Length}, in.Shape...)}, nil
}

// Worker returns a function without state.
func (t Pad) Worker(in tensor.Spec, _ int) (RecordFunc, error) {
	value, err := padding.Element(in.DType, t.Value)
	return func(dst, src []byte, _ Record) error {
		padding.Fill(dst[copy(dst, src):], value)
		return nil
	}, err
}

// ID names the parameters.
func (t Pad) ID() string { return fmt.Sprintf("pad(%d,%v)", t.Length, t.Value) }
