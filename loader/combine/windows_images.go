package combine

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// SliceRagged returns windows [a, b) of a field of image files, in new memory.
func (w *Windows) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	f, err := w.field(field)
	if err != nil {
		return tensor.View{}, err
	}
	return copiedRagged(w, f.out, a, b, offsets)
}

// Lengths returns the bytes of windows of a field of image files.
func (w *Windows) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	s := w.borrow()
	defer w.scratch.Put(s)
	f, err := w.files(field, indices, s)
	if err == nil {
		err = renumbered(f.part.can.Ragged.Lengths(ctx, f.in.Name, s.files, s.ends), s.files, indices)
	}
	if err == nil {
		f.measure(s, offsets)
	}
	return err
}

// GatherRagged copies the image files of windows. Each window is a record of content [tensor.Images].
func (w *Windows) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	s := w.borrow()
	defer w.scratch.Put(s)
	f, err := w.files(field, indices, s)
	if err != nil {
		return nil, err
	}
	if f.in.Content == tensor.Images { // whose records follow each other as they are
		dst, err = f.part.can.Ragged.GatherRagged(ctx, f.in.Name, s.files, s.ends, dst)
	} else {
		s.rows, err = f.part.can.Ragged.GatherRagged(ctx, f.in.Name, s.files, s.ends, s.rows)
	}
	if err != nil {
		return nil, renumbered(err, s.files, indices)
	}
	f.measure(s, offsets)
	if f.in.Content == tensor.Images {
		return dst, nil
	}
	dst = slices.Grow(dst[:0], int(offsets[len(indices)]))
	for k := range s.files {
		dst = tensor.AppendImage(dst, s.rows[s.ends[k]:s.ends[k+1]])
	}
	return dst, nil
}

// files sets s.files to the records of the Source that windows of a field have, the same number for each window.
func (w *Windows) files(field string, indices []int, s *windowScratch) (*windowed, error) {
	f, err := w.field(field)
	if err != nil {
		return nil, err
	}
	if !f.in.Ragged {
		return nil, fmt.Errorf("combine: window: records of %q have no variable length", field)
	}
	s.files = s.files[:0]
	for _, i := range indices {
		if uint(i) >= uint(w.origins.n) {
			return nil, fmt.Errorf("combine: window: record %d of %d does not exist", i, w.origins.n)
		}
		w.origins.of(i, &s.place)
		w.span(f, 0, s)
		for k := range s.spans[0].n {
			s.files = append(s.files, s.spans[0].at(k))
		}
	}
	s.ends = slices.Grow(s.ends[:0], len(s.files)+1)[:len(s.files)+1]
	return f, nil
}

// measure sets the offsets of windows in their batch by the offsets of their image files.
func (f *windowed) measure(s *windowScratch, offsets []int64) {
	n := f.cuts[0].size
	for k := range offsets {
		offsets[k] = s.ends[k*n]
		if f.in.Content == tensor.Image {
			offsets[k] += int64(k * n * tensor.ImageHead)
		}
	}
}

// renumbered returns the error with the number of the window that has the record which the error names.
func renumbered(err error, rows, windows []int) error {
	if window, ok := windowOf(err, rows, windows); ok {
		return failed(err, window)
	}
	return err
}
