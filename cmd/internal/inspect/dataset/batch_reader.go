package dataset

import (
	"context"

	"github.com/penstock/penstock/internal/block"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Batch is records of one field in memory. First is the number of the first record, and counts only
// if the records are consecutive.
type Batch struct {
	First, N int
	Values   tensor.View // of all records, one after the other
	Offsets  []int64     // of a ragged field: record k has rows Offsets[k] to Offsets[k+1] of Values; else nil
}

// Record returns the values of entry i: an array of one record, or of the rows of a ragged record.
func (s Batch) Record(i int) tensor.View {
	if s.Offsets == nil {
		return s.Values.Slice(i, i+1)
	}
	return s.Values.Slice(int(s.Offsets[i]), int(s.Offsets[i+1]))
}

// batchBytes is about how many bytes of a field are in memory at a time: enough for long reads, and
// little for each of many goroutines.
const batchBytes = 4 << 20

// unknownStep is the number of records in a batch of a ragged field whose lengths become known only
// by reading it, as in raw samples.
const unknownStep = 64

// Records is what a BatchReader reads from: a dataset or raw samples.
type Records interface {
	Len() int
	Schema() store.Schema
	Gather(ctx context.Context, field string, indices []int, dst []byte) error
	GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error)
}

// BatchReader reads one field batch by batch into memory that it owns and reuses. It serves one
// goroutine.
type BatchReader struct {
	ds      Records
	field   store.Field
	block   block.Block
	indices []int
}

// NewBatchReader returns a reader of one field of ds.
func NewBatchReader(ds Records, field store.Field) *BatchReader {
	return &BatchReader{ds: ds, field: field, block: block.Block{Values: Aligned(64)}}
}

// Step returns the number of records in a batch of about batchBytes. For a ragged field of a
// dataset, the average length decides.
func (r *BatchReader) Step() int {
	size := r.field.RecordBytes()
	if ds, ok := r.ds.(*mmapds.Dataset); ok && r.field.Ragged {
		rows, _ := ExtentOf(ds.Files(), ds.Schema().Index(r.field.Name))
		size *= max(1, int(rows)/max(1, ds.Len()))
	} else if r.field.Ragged {
		return unknownStep
	}
	return min(max(1, batchBytes/size), 1<<16)
}

// Read returns records [a, b). The Batch is valid until the next call.
func (r *BatchReader) Read(ctx context.Context, a, b int) (Batch, error) {
	r.indices = r.indices[:0]
	for i := a; i < b; i++ {
		r.indices = append(r.indices, i)
	}
	s, err := r.ReadRecords(ctx, r.indices)
	s.First = a
	return s, err
}

// ReadRecords returns the records with these numbers, in their order. The Batch is valid until the
// next call.
func (r *BatchReader) ReadRecords(ctx context.Context, numbers []int) (Batch, error) {
	s := Batch{N: len(numbers)}
	if need := s.N * r.field.RecordBytes(); !r.field.Ragged && cap(r.block.Values) < need {
		r.block.Values = Aligned(need)
	}
	if err := r.block.Read(ctx, r.ds, r.field.Spec, numbers); err != nil {
		return s, err
	}
	rows := s.N
	if s.Offsets = r.block.Offsets; s.Offsets != nil {
		rows = int(s.Offsets[s.N])
	}
	s.Values = tensor.Of(r.field.Spec, rows, r.block.Values)
	return s, nil
}

// Each calls f with all records in [a, b), batch by batch. f must not keep a Batch.
func (r *BatchReader) Each(ctx context.Context, a, b int, f func(Batch) error) error {
	for step := r.Step(); a < b; a += step {
		s, err := r.Read(ctx, a, min(b, a+step))
		if err != nil {
			return err
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// Aligned returns n bytes whose address suits elements of any type, so that they can be seen as a
// slice of numbers.
func Aligned(n int) []byte {
	words := store.NewField("words", tensor.Uint64, (n+7)/8)
	return store.NewRecord(store.Schema{Fields: []store.Field{words}}).Values[0][:n]
}
