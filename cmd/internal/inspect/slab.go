package inspect

import (
	"context"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// slab is consecutive records of a field in memory.
type slab struct {
	first, n int
	values   tensor.View // of all records, back to back
	offsets  []int64     // of a ragged field: n+1 rows of values; else nil
}

// record returns the values of record first+i: an array of one record, or of its rows.
func (s slab) record(i int) tensor.View {
	if s.offsets == nil {
		return s.values.Slice(i, i+1)
	}
	return s.values.Slice(int(s.offsets[i]), int(s.offsets[i+1]))
}

// slabBytes is about how much of a field is in memory at once.
const slabBytes = 4 << 20

// slabReader reads a field slab by slab into memory that it owns. It serves one goroutine.
type slabReader struct {
	ds      *mmapds.Dataset
	field   store.Field
	buf     []byte
	indices []int
	offsets []int64
}

func newSlabReader(ds *mmapds.Dataset, field store.Field) *slabReader {
	return &slabReader{ds: ds, field: field, buf: aligned(64)}
}

// step returns how many records are a slab.
func (r *slabReader) step() int {
	size := r.field.RecordBytes()
	if r.field.Ragged {
		rows, _ := extentOf(r.ds.Files(), r.ds.Schema().Index(r.field.Name))
		size *= max(1, int(rows)/max(1, r.ds.Len()))
	}
	return min(max(1, slabBytes/size), 1<<16)
}

// read returns records [a, b), valid until the next call.
func (r *slabReader) read(ctx context.Context, a, b int) (slab, error) {
	r.indices = r.indices[:0]
	for i := a; i < b; i++ {
		r.indices = append(r.indices, i)
	}
	s := slab{first: a, n: b - a}
	if !r.field.Ragged {
		need := (b - a) * r.field.RecordBytes()
		if cap(r.buf) < need {
			r.buf = aligned(need)
		}
		err := r.ds.Gather(ctx, r.field.Name, r.indices, r.buf[:need])
		s.values = tensor.Of(r.field.Spec, b-a, r.buf[:need])
		return s, err
	}
	if cap(r.offsets) < b-a+1 {
		r.offsets = make([]int64, b-a+1)
	}
	s.offsets = r.offsets[:b-a+1]
	data, err := r.ds.GatherRagged(ctx, r.field.Name, r.indices, s.offsets, r.buf)
	if err != nil {
		return s, err
	}
	r.buf = data
	s.values = tensor.Of(r.field.Spec, int(s.offsets[b-a]), data)
	return s, nil
}

// each calls f with all records in [a, b), slab after slab.
func (r *slabReader) each(ctx context.Context, a, b int, f func(slab) error) error {
	for step := r.step(); a < b; a += step {
		s, err := r.read(ctx, a, min(b, a+step))
		if err != nil {
			return err
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}
