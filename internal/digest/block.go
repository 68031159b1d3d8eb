package digest

import (
	"encoding/binary"
	"math"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
)

// Block is records that follow each other and belong to one split. The caller that fills it owns it; writers copy.
type Block struct {
	N      int      // records
	Values [][]byte // of each field: the values of all records, one after the other, aligned for its type
	Ends   [][]int  // of each ragged field: where the value of each record ends in Values; nil of the others
	Split  string   // the split that all of them belong to; empty in a dataset without splits

	fields []tensor.Spec
	sizes  []int               // of rows, by field
	sums   [][]uint32          // by field and record
	stats  [][]moments.Moments // by field, record and channel
	filled bool
	meter  moments.Meter

	lengths []byte
}

// NewBlock returns an empty Block.
func NewBlock(fields []tensor.Spec) *Block {
	n := len(fields)
	b := &Block{fields: fields, Values: make([][]byte, n), Ends: make([][]int, n), sums: make([][]uint32, n),
		stats: make([][]moments.Moments, n)}
	for _, f := range fields {
		b.sizes = append(b.sizes, f.RecordBytes())
	}
	return b
}

// Summarize computes checksums and statistics of the present values, so that AppendBlock does not have to. It may run
// concurrently with Summarize of other Blocks; call it last, after every change of N and Values.
func (b *Block) Summarize() {
	b.check()
	for i, f := range b.fields {
		b.summarizeField(i, f)
	}
	b.filled = true
}

func (b *Block) summarizeField(i int, f tensor.Spec) {
	channels, run := layout.Channels(f)
	b.sums[i] = append(b.sums[i][:0], make([]uint32, b.N)...)
	b.follow(b.sums[i], i)
	b.stats[i] = b.stats[i][:0]
	switch {
	case f.Ragged:
		b.stats[i] = append(b.stats[i], make([]moments.Moments, b.raggedParts(f)*channels)...)
		b.measureRagged(i, f, run)
	case !single(f):
		b.stats[i] = append(b.stats[i], make([]moments.Moments, b.N*channels)...)
		b.meter.MeasureEach(f, run, b.Values[i], b.stats[i])
	}
}

// raggedParts returns how many moments a channel of a ragged field gets. Bytes get one for all records, as sums of
// integers do not depend on their order; other types get one a record.
func (b *Block) raggedParts(f tensor.Spec) int {
	if bytesAlone(f) {
		return 1
	}
	return b.N
}

func bytesAlone(f tensor.Spec) bool {
	channels, _ := layout.Channels(f)
	return channels == 1 && f.DType == tensor.Uint8
}

func (b *Block) measureRagged(i int, f tensor.Spec, run int) {
	if bytesAlone(f) {
		b.meter.Measure(f, run, b.Values[i], b.stats[i])
		return
	}
	channels := len(b.stats[i]) / max(b.N, 1)
	for k := range b.N {
		b.meter.Measure(f, run, b.Slice(i, k, k+1), b.stats[i][k*channels:(k+1)*channels])
	}
}

// follow continues the checksum of each record by its value of a field.
func (b *Block) follow(sums []uint32, field int) {
	if f := b.fields[field]; !f.Ragged {
		kernel.CRC32CEach(sums, b.Values[field], b.sizes[field])
		return
	}
	kernel.CRC32CRagged(sums, b.Values[field], b.Ends[field])
}

// single reports whether the value of each record is one number.
func single(f tensor.Spec) bool { return !f.Ragged && f.RecordBytes() == f.DType.Size() }

// check panics where a Block does not fit, which only a programming error can bring about.
func (b *Block) check() {
	for i, f := range b.fields {
		n, size := len(b.Values[i]), b.sizes[i]
		ragged := f.Ragged && len(b.Ends[i]) == b.N && n%size == 0 && (b.N == 0 && n == 0 || b.N > 0 && b.Ends[i][b.N-1] == n)
		if !ragged && (f.Ragged || n != b.N*size) {
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

// Fields returns the fields that the block was made for.
func (b *Block) Fields() []tensor.Spec { return b.fields }

// CRC32Cs returns the checksum of each record's value of a field, as the last Summarize computed them.
func (b *Block) CRC32Cs(field int) []uint32 { return b.sums[field] }

// RecordCRC32Cs appends the checksum of each record to sums. The checksum is of the record's values, one after the
// other.
func (b *Block) RecordCRC32Cs(sums []uint32) []uint32 {
	first := len(sums)
	sums = append(sums, make([]uint32, b.N)...)
	for i := range b.fields {
		b.follow(sums[first:], i)
	}
	return sums
}

// MergeStatistics merges the moments of the values of a field into the moments of its channels, record by record. The
// order is fixed, so that the last bits do not depend on the number of workers.
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

// MergeLengths merges the number of rows of each record of a ragged field into moments, record by record.
func (b *Block) MergeLengths(into *moments.Moments, field int) {
	b.lengths = b.lengths[:0]
	for n := range b.N {
		b.lengths = binary.LittleEndian.AppendUint64(b.lengths, math.Float64bits(float64(b.Rows(field, n, n+1))))
	}
	b.meter.MergeEach(tensor.Spec{DType: tensor.Float64}, b.lengths, into)
}

// Rows returns how many rows the values of a field have together in records [first, end).
func (b *Block) Rows(field, first, end int) int {
	if !b.fields[field].Ragged {
		return end - first
	}
	n := len(b.Slice(field, first, end))
	if size := b.sizes[field]; size > 1 {
		n /= size
	}
	return n
}

// Slice returns the values of a field in records [first, end).
func (b *Block) Slice(field, first, end int) []byte {
	if size := b.sizes[field]; !b.fields[field].Ragged {
		return b.Values[field][first*size : end*size]
	}
	if first == end {
		return nil
	}
	begin, ends := 0, b.Ends[field]
	if first > 0 {
		begin = ends[first-1]
	}
	return b.Values[field][begin:ends[end-1]]
}

// Copy copies the values of record i into values.
func (b *Block) Copy(i int, values [][]byte) {
	for k := range b.fields {
		values[k] = append(values[k][:0], b.Slice(k, i, i+1)...)
	}
}
