// Package block reads values of a field for several records at a time.
//
// Statistics, filters and weights look at every record of one field. One read a record would spend most of its time in
// calls, so they read some hundred records into a [Block] by one Gather, and then take the records out of it:
//
//	var b block.Block
//	err := b.Read(ctx, src, spec, records)
//	b.Value(0) // of records[0], until the next Read
//
// A Block hides whether the field is ragged: its memory is one array of values, and Offsets say where records begin.
package block

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// Source has the values of fields, such as a loader.Source.
type Source interface {
	Gather(ctx context.Context, field string, indices []int, dst []byte) error
}

// RaggedSource is a Source that may have ragged fields, such as a loader.RaggedSource.
type RaggedSource interface {
	Source
	GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error)
}

// Block is values of a field in memory, which the next Read uses again. It serves one goroutine.
type Block struct {
	Values []byte

	// Offsets are where each record of a ragged field begins in Values, in rows, and where the last record ends; nil
	// for a field that is not ragged.
	Offsets []int64

	size    int
	offsets []int64
}

// Read reads the values of records.
func (b *Block) Read(ctx context.Context, src Source, f tensor.Spec, records []int) (err error) {
	b.size, b.Offsets = f.RecordBytes(), nil
	n := len(records)
	if !f.Ragged {
		b.Values = slices.Grow(b.Values[:0], n*b.size)[:n*b.size]
		return src.Gather(ctx, f.Name, records, b.Values)
	}
	ragged, ok := src.(RaggedSource)
	if !ok {
		return fmt.Errorf("field %q has records of different lengths, which this source cannot read", f.Name)
	}
	b.offsets = slices.Grow(b.offsets[:0], n+1)[:n+1]
	b.Offsets = b.offsets
	b.Values, err = ragged.GatherRagged(ctx, f.Name, records, b.Offsets, b.Values)
	return err
}

// Value returns the value of record k. The slice has no capacity beyond it, so that an append cannot overwrite record
// k+1.
func (b *Block) Value(k int) []byte {
	first, end := k*b.size, (k+1)*b.size
	if b.Offsets != nil {
		first, end = int(b.Offsets[k])*b.size, int(b.Offsets[k+1])*b.size
	}
	return b.Values[first:end:end]
}
