package store

import (
	"github.com/penstock/penstock/internal/moments"

	"github.com/penstock/penstock/internal/layout"
)

// Record is one sample on its way into a Writer: the bytes of every field, in schema
// order, little endian, C order. The caller that fills it owns it; writers copy.
//
// The value of a ragged field has any number of whole rows and starts out empty: append to
// Values[i][:0], or set Values[i] to memory that is aligned for the field's type.
type Record struct {
	Values [][]byte
	Split  string // the split that the record belongs to; empty in a dataset without splits

	sums   []Digest
	stored []int64 // rows of values that are stored already, -1 elsewhere; nil: there are none
	filled bool
	meter  moments.Meter
}

// Digest is what the value of one field adds to the statistics and the identity of a dataset.
type Digest struct {
	CRC32C   uint32            // of its bytes
	Channels []moments.Moments // one, or one a channel of an image
}

// raggedRoom is the memory that a ragged value starts with.
const raggedRoom = 1024

// NewRecord returns a Record with memory for every field of s.
func NewRecord(s Schema) *Record {
	r := &Record{Values: make([][]byte, len(s.Fields)), sums: make([]Digest, len(s.Fields))}
	for i, f := range s.Fields {
		channels, _ := f.Channels()
		n, room := f.RecordBytes(), f.RecordBytes()
		if f.Ragged {
			n, room = 0, max(raggedRoom, f.RecordBytes())
		}
		// Through []uint64, so that every type finds its alignment.
		words := make([]uint64, (room+7)/8)
		r.Values[i] = bytesOf(words)[:n]
		r.sums[i].Channels = make([]moments.Moments, channels)
	}
	return r
}

// Summarize computes checksums and statistics of the record's present values, so that
// Append has not to. It may run beside other records' Summarize; call it last, after every
// change of Values.
func (r *Record) Summarize(s Schema) {
	for i := range s.Fields {
		r.SummarizeField(s, i)
	}
	r.filled = true
}

// SetStored stands for a value that the dataset has already: all that is known of it is the checksum of its bytes and
// how many rows it has. Its statistics are not those of the record, and Values has no bytes of it.
func (r *Record) SetStored(field int, crc uint32, rows int64) {
	if r.stored == nil {
		r.stored = make([]int64, len(r.Values))
		for i := range r.stored {
			r.stored[i] = -1
		}
	}
	r.stored[field], r.Values[field] = rows, nil
	r.sums[field].CRC32C = crc
}

func (r *Record) isStored(field int) bool { return r.stored != nil && r.stored[field] >= 0 }

// SummarizeField does again for one value what Summarize did for all: it has changed since.
func (r *Record) SummarizeField(s Schema, field int) {
	if r.isStored(field) {
		return
	}
	d := &r.sums[field]
	d.CRC32C = layout.CRC32C(r.Values[field])
	clear(d.Channels)
	f := s.Fields[field]
	_, run := f.Channels()
	r.meter.Measure(f.Spec, run, r.Values[field], d.Channels)
}

// Summary returns what Summarize has computed of one value.
func (r *Record) Summary(field int) Digest { return r.sums[field] }

// Rows returns how many rows the value of a field, which has that position in s, has.
func (r *Record) Rows(s Schema, field int) int {
	if r.isStored(field) {
		return int(r.stored[field])
	}
	return len(r.Values[field]) / s.Fields[field].RecordBytes()
}

// Digests returns those of all values, in schema order: what Summarize computed since the last call, or else it
// does that now. They are good until the next Summarize. It panics if r was not made for this schema, or a value
// has not the length of its field.
func (r *Record) Digests(s Schema) []Digest {
	r.check(s)
	if !r.filled {
		r.Summarize(s)
	}
	r.filled = false
	return r.sums
}

// check panics where a Record does not fit, which only a programming error can bring about.
func (r *Record) check(s Schema) {
	if len(r.Values) != len(s.Fields) || len(r.sums) != len(s.Fields) {
		panic("store: record was not made by NewRecord for this schema")
	}
	for i, f := range s.Fields {
		n, size := len(r.Values[i]), f.RecordBytes()
		if !r.isStored(i) && (!f.Ragged && n != size || n%size != 0) {
			panic("store: a record's value has not the length of its field")
		}
	}
}
