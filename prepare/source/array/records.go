package array

import (
	"context"

	"github.com/penstock/penstock/tensor"
)

// Records reads records of one size by their numbers. It may be used by any number of goroutines. *chunk.Reader
// implements it.
type Records interface {
	Len() int64
	RecordBytes() int
	Records(ctx context.Context, dst []byte, a, b int64) error
}

// Converted reads the records of Narrow with their numbers converted from type From to type To, as libhdf5 converts
// the sources of a virtual dataset. To should hold all values of From; a value that it does not hold exactly is an
// error.
type Converted struct {
	Narrow   Records
	From, To tensor.DType
}

// Len implements Records.
func (w *Converted) Len() int64 { return w.Narrow.Len() }

// RecordBytes implements Records.
func (w *Converted) RecordBytes() int {
	return w.Narrow.RecordBytes() / w.From.Size() * w.To.Size()
}

// Records implements Records.
func (w *Converted) Records(ctx context.Context, dst []byte, a, b int64) error {
	src := make([]byte, (b-a)*int64(w.Narrow.RecordBytes()))
	if err := w.Narrow.Records(ctx, src, a, b); err != nil {
		return err
	}
	word := make([]byte, 8)
	for n, m := w.From.Size(), w.To.Size(); len(src) > 0; src, dst = src[n:], dst[m:] {
		element, err := w.To.AppendExact(word[:0], w.From.Read(src))
		if err != nil {
			return err
		}
		copy(dst[:m], element)
	}
	return nil
}
