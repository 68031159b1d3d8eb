package store

import (
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"

	"github.com/penstock/penstock/internal/layout"
)

// Block is records that follow each other and belong to one split, of a schema without ragged fields. The caller
// that fills it owns it; writers copy.
type Block struct {
	N      int      // records
	Values [][]byte // of each field: the values of all records, one behind the other, aligned for its type
	Split  string   // the split that all of them belong to; empty in a dataset without splits

	schema Schema
	sums   [][]uint32          // by field and record
	stats  [][]moments.Moments // by field, record and channel
	filled bool
	meter  moments.Meter
}

// NewBlock returns an empty Block for a schema without ragged fields.
func NewBlock(s Schema) *Block {
	n := len(s.Fields)
	return &Block{schema: s, Values: make([][]byte, n), sums: make([][]uint32, n), stats: make([][]moments.Moments, n)}
}

// Summarize computes checksums and statistics of the present values, so that AppendBlock has not to. It
// may run beside other Blocks' Summarize; call it last, after every change of N and Values.
func (b *Block) Summarize() {
	b.check()
	for i, f := range b.schema.Fields {
		b.summarizeField(i, f)
	}
	b.filled = true
}

func (b *Block) summarizeField(i int, f Field) {
	channels, run := f.Channels()
	size, values, single := f.RecordBytes(), b.Values[i], f.single()
	b.sums[i], b.stats[i] = b.sums[i][:0], b.stats[i][:0]
	if !single {
		b.stats[i] = append(b.stats[i], make([]moments.Moments, b.N*channels)...)
		b.meter.MeasureEach(f.Spec, run, values, b.stats[i])
	}
	for k := range b.N {
		b.sums[i] = append(b.sums[i], layout.CRC32C(values[k*size:(k+1)*size]))
	}
}

// single reports whether the value of a record is one number.
func (f Field) single() bool { return f.RecordBytes() == f.DType.Size() }

// check panics where a Block does not fit, which only a programming error can bring about.
func (b *Block) check() {
	for i, f := range b.schema.Fields {
		if f.Ragged || len(b.Values[i]) != b.N*f.RecordBytes() {
			panic("store: a block's values have not the length of its records")
		}
	}
}

// blockDigest is the digest.Block of a Block.
type blockDigest Block

func (b *blockDigest) Settle() {
	if !b.filled {
		(*Block)(b).Summarize()
	}
	b.filled = false
}

func (b *blockDigest) Fields() []tensor.Spec { return b.schema.Specs() }

func (b *blockDigest) CRC32Cs(field int) []uint32 { return b.sums[field] }

func (b *blockDigest) MergeStatistics(into []moments.Moments, field int) {
	if f := b.schema.Fields[field]; f.single() {
		b.meter.MergeEach(f.Spec, b.Values[field], &into[0])
		return
	}
	for list := b.stats[field]; len(list) > 0; list = list[len(into):] {
		for c := range into {
			into[c].Merge(list[c])
		}
	}
}

func (b *blockDigest) Copy(i int, values [][]byte) {
	for k, f := range b.schema.Fields {
		size := f.RecordBytes()
		values[k] = append(values[k][:0], b.Values[k][i*size:(i+1)*size]...)
	}
}
