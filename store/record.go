package store

import (
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/layout"
)

// Record is one sample on its way into a Writer: the bytes of every field, in schema order, little endian, C order. The
// caller owns the Record, and writers copy its bytes.
//
// The value of a ragged field has any number of whole rows and starts out empty: append to Values[i][:0], or set
// Values[i] to memory that is aligned for the field's type.
type Record struct {
	Values [][]byte
	Split  string // the split that the record belongs to; empty in a dataset without splits

	sums   []digest.Value
	stored []int64 // rows of values that are stored already, -1 for other fields; nil if no value is stored
	filled bool
	meter  moments.Meter
}

// raggedRoom is the memory that a ragged value starts with.
const raggedRoom = 1024

// NewRecord returns a Record with memory for every field of s.
func NewRecord(s Schema) *Record {
	r := &Record{Values: make([][]byte, len(s.Fields)), sums: make([]digest.Value, len(s.Fields))}
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

// Summarize computes checksums and statistics of the record's present values, so that Append need not. It may run
// concurrently with the Summarize of other records. Call it last, after every change of Values.
func (r *Record) Summarize(s Schema) {
	for i := range s.Fields {
		r.summarize(i, s.Fields[i].Spec)
	}
	r.filled = true
}

func (r *Record) isStored(field int) bool { return r.stored != nil && r.stored[field] >= 0 }

func (r *Record) summarize(field int, spec tensor.Spec) {
	if r.isStored(field) {
		return
	}
	d := &r.sums[field]
	d.CRC32C = layout.CRC32C(r.Values[field])
	clear(d.Channels)
	_, run := layout.Channels(spec)
	r.meter.Measure(spec, run, r.Values[field], d.Channels)
}

// check panics if a Record does not fit the schema, which only a programming error can cause.
func (r *Record) check(fields []tensor.Spec) {
	if len(r.Values) != len(fields) || len(r.sums) != len(fields) {
		panic("store: record was not made by NewRecord for this schema")
	}
	for i, f := range fields {
		n, size := len(r.Values[i]), f.RecordBytes()
		if !r.isStored(i) && (!f.Ragged && n != size || n%size != 0) {
			panic("store: a record's value has not the length of its field")
		}
	}
}

// recordDigest is the digest.Record of a Record.
type recordDigest Record

func (d *recordDigest) Take(fields []tensor.Spec) []digest.Value {
	r := (*Record)(d)
	r.check(fields)
	if !r.filled {
		for i, f := range fields {
			r.summarize(i, f)
		}
	}
	r.filled = false
	return r.sums
}

func (d *recordDigest) Summarize(field int, spec tensor.Spec) { (*Record)(d).summarize(field, spec) }

func (d *recordDigest) Value(field int) digest.Value { return d.sums[field] }

func (d *recordDigest) Rows(field int, spec tensor.Spec) int {
	if (*Record)(d).isStored(field) {
		return int(d.stored[field])
	}
	return len(d.Values[field]) / spec.RecordBytes()
}

func (d *recordDigest) SetStored(field int, crc uint32, rows int64) {
	if d.stored == nil {
		d.stored = make([]int64, len(d.Values))
		for i := range d.stored {
			d.stored[i] = -1
		}
	}
	d.stored[field], d.Values[field] = rows, nil
	d.sums[field].CRC32C = crc
}

func init() {
	digest.Of = func(record any) digest.Record { return (*recordDigest)(record.(*Record)) }
}
