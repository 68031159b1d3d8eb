package digest

import (
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
)

// Block is records that follow each other and belong to one split, of a schema without ragged fields. The caller
// that fills it owns it; writers copy.
type Block struct {
	N      int      // records
	Values [][]byte // of each field: the values of all records, one after the other, aligned for its type
	Split  string   // the split that all of them belong to; empty in a dataset without splits

	fields []tensor.Spec
	sums   [][]uint32          // by field and record
	stats  [][]moments.Moments // by field, record and channel
	filled bool
	meter  moments.Meter
}

// NewBlock returns an empty Block of fields none of which is ragged.
func NewBlock(fields []tensor.Spec) *Block {
	n := len(fields)
	return &Block{fields: fields, Values: make([][]byte, n), sums: make([][]uint32, n),
		stats: make([][]moments.Moments, n)}
}

// Summarize computes checksums and statistics of the present values, so that AppendBlock does not
// have to. It may run concurrently with that of other Blocks; call it last, after every change of N
// and Values.
func (b *Block) Summarize() {
	b.check()
	for i, f := range b.fields {
		b.summarizeField(i, f)
	}
	b.filled = true
}

func (b *Block) summarizeField(i int, f tensor.Spec) {
	channels, run := layout.Channels(f)
	size, values, single := f.RecordBytes(), b.Values[i], single(f)
	b.sums[i], b.stats[i] = b.sums[i][:0], b.stats[i][:0]
	if !single {
		b.stats[i] = append(b.stats[i], make([]moments.Moments, b.N*channels)...)
		b.meter.MeasureEach(f, run, values, b.stats[i])
	}
	b.sums[i] = append(b.sums[i], make([]uint32, b.N)...)
	kernel.CRC32CEach(b.sums[i], values, size)
}

// single reports whether the value of a record is one number.
func single(f tensor.Spec) bool { return f.RecordBytes() == f.DType.Size() }

// check panics where a Block does not fit, which only a programming error can bring about.
func (b *Block) check() {
	for i, f := range b.fields {
		if f.Ragged || len(b.Values[i]) != b.N*f.RecordBytes() {
			panic("store: a block's values have not the length of its records")
		}
	}
}

// Settle calls Summarize unless that was done since the last Settle.
func (b *Block) Settle() {
	if !b.filled {
		b.Summarize()
	}
	b.filled = false
}

// Fields returns those that the block was made for.
func (b *Block) Fields() []tensor.Spec { return b.fields }

// CRC32Cs returns the checksum of each record's value of a field, as the last Summarize computed them.
func (b *Block) CRC32Cs(field int) []uint32 { return b.sums[field] }

// RecordCRC32Cs appends the checksum of each record to sums: of its values, one after the other.
func (b *Block) RecordCRC32Cs(sums []uint32) []uint32 {
	first := len(sums)
	sums = append(sums, make([]uint32, b.N)...)
	for i, f := range b.fields {
		kernel.CRC32CEach(sums[first:], b.Values[i], f.RecordBytes())
	}
	return sums
}

// MergeStatistics merges the moments of the values of a field into those of its channels, record by record.
func (b *Block) MergeStatistics(into []moments.Moments, field int) {
	if f := b.fields[field]; single(f) {
		b.meter.MergeEach(f, b.Values[field], &into[0])
		return
	}
	for list := b.stats[field]; len(list) > 0; list = list[len(into):] {
		for c := range into {
			into[c].Merge(list[c])
		}
	}
}

// Copy makes values those of record i.
func (b *Block) Copy(i int, values [][]byte) {
	for k, f := range b.fields {
		size := f.RecordBytes()
		values[k] = append(values[k][:0], b.Values[k][i*size:(i+1)*size]...)
	}
}
