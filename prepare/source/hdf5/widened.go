package hdf5

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/tensor"
)

// widened reads the numbers of other records as a type that has all their values, as libhdf5 converts the sources of a
// virtual dataset.
type widened struct {
	narrow   Records
	from, to tensor.DType
}

// Len implements Records.
func (w *widened) Len() int64 { return w.narrow.Len() }

// widen returns r, whose elements are of type from, as records of type to.
func widen(r Records, from, to *meta.Datatype) (Records, error) {
	a, b := from.DType(), to.DType()
	switch {
	case from.String() == to.String(), a == b && a != tensor.Invalid:
		return r, nil
	case a != tensor.Bool && b.Holds(a):
		return &widened{r, a, b}, nil
	}
	return nil, fmt.Errorf("it is %v, not %v, which cannot hold all its values: %w; write the virtual dataset "+
		"as one that is converted: h5repack -l CONTI OLD.h5 NEW.h5", from, to, meta.ErrUnsupported)
}

// RecordBytes implements Records.
func (w *widened) RecordBytes() int {
	return w.narrow.RecordBytes() / w.from.Size() * w.to.Size()
}

// Records implements Records.
func (w *widened) Records(ctx context.Context, dst []byte, a, b int64) error {
	src := make([]byte, (b-a)*int64(w.narrow.RecordBytes()))
	if err := w.narrow.Records(ctx, src, a, b); err != nil {
		return err
	}
	word := make([]byte, 8)
	for n, m := w.from.Size(), w.to.Size(); len(src) > 0; src, dst = src[n:], dst[m:] {
		element, err := w.to.AppendExact(word[:0], w.from.Read(src))
		if err != nil {
			return err
		}
		copy(dst[:m], element)
	}
	return nil
}
