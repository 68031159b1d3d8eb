package loader

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// Source is a dataset as the loader reads it: Len records, each with one value per field,
// found by number. *mmapds.Dataset is one. Every method may be called by several
// goroutines at once.
//
// A Source can do more by implementing [RaggedSource], [ChunkedSource], [MappedSource],
// [FaultSource], [RemoteSource], [DescribedSource] and [Identifier]. Assert those that it has,
// so that the compiler checks them:
//
//	var _ loader.MappedSource = (*MySource)(nil)
type Source interface {
	// Len returns the number of records. It never changes.
	Len() int

	// Specs returns the fields, always in the same order.
	Specs() []tensor.Spec

	// Slice returns records [a, b) of a field as one view, without copying where it can.
	// The bytes stay valid for as long as the caller holds a Retain.
	Slice(field string, a, b int) (tensor.View, error)

	// Gather copies record indices[i] of a field to dst[i*r:(i+1)*r], where r is the bytes
	// of one record; dst is exactly as long as that needs. It should return soon after ctx
	// is done.
	Gather(ctx context.Context, field string, indices []int, dst []byte) error

	// Prefetch starts to read records [a, b) of a field into memory, and does not wait.
	// It is a hint: its error is ignored, as the read that follows reports what is wrong.
	Prefetch(field string, a, b int) error

	// Retain keeps the memory of the Source valid until the matching Release. After the
	// Source is closed it returns an error.
	Retain() error

	// Release ends one Retain.
	Release()
}

// Lengths returns how many rows each record of a field of variable length has: what
// sampler.NewLengthBuckets needs. It reads the field's offsets and no rows.
func Lengths(ctx context.Context, src Source, field string) ([]int, error) {
	r, ok := src.(RaggedSource)
	if !ok {
		return nil, fmt.Errorf("loader: lengths of %q: the Source has no fields of variable length", field)
	}
	if err := src.Retain(); err != nil {
		return nil, err
	}
	defer src.Release()
	const most = 4096
	out := make([]int, src.Len())
	indices, ends := make([]int, most), make([]int64, most+1)
	for at := 0; at < len(out); at += most {
		n := min(most, len(out)-at)
		consecutive(at, indices[:n])
		if err := r.Lengths(ctx, field, indices[:n], ends[:n+1]); err != nil {
			return nil, fmt.Errorf("loader: lengths of %q: %w", field, err)
		}
		for i := range n {
			out[at+i] = int(ends[i+1] - ends[i])
		}
	}
	return out, nil
}

// consecutive sets dst to first, first+1, ...
func consecutive(first int, dst []int) {
	for i := range dst {
		dst[i] = first + i
	}
}
