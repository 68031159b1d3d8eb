package part

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// TraceFieldName is the last field of a part's records: the facts about the record's sample,
// and about the samples that were left out before it, which the summary of the whole dataset
// needs.
//
//	uvarint  samples that were left out since the record before, then for each of them
//	sample   see below
//	text     kind of the reason
//	text     reason
//	and at the end
//	sample   of the record
//	text     digest of its content, 16 bytes; empty if it is not needed
//	uvarint  values of the record, then for each of them
//	4 bytes  CRC32C of the value, little endian
//	uvarint  rows of the value; 1 where it is not ragged
//
// A sample is its size (uvarint), its CRC32C (4 bytes, little endian), its name and its split
// (strings); a string is its length (uvarint) and its bytes.
const TraceFieldName = "_penstock_samples"

func TraceField() store.Field { return store.NewRagged(TraceFieldName, tensor.Uint8) }

// Trace describes one sample.
type Trace struct {
	Name, Split string
	Size        int64
	CRC         uint32
	Digest      [16]byte    // of its content
	Values      []Value     // of the record
	Bad         *SkipReason // why it was left out; nil: it is a record
}

// Value is what one value of a record adds to the dataset's id: checksum and number of rows. With it, a merge
// computes the id without reading the values again.
type Value struct {
	CRC32C uint32
	Rows   int64
}

// SkipReason is why another run has left a sample out.
type SkipReason struct{ Kind, Text string }

func (e *SkipReason) Error() string { return e.Text }

// TraceLog collects what was left out since the last record.
type TraceLog struct {
	pending []byte
	n       int
}

// Skip adds a sample that is left out.
func (l *TraceLog) Skip(t Trace) {
	l.pending = appendText(appendText(appendSample(l.pending, t), t.Bad.Kind), t.Bad.Text)
	l.n++
}

// Record appends the trace of a record to b, and of all that was left out before it.
func (l *TraceLog) Record(b []byte, t Trace) []byte {
	b = appendSample(l.Tail(b), t)
	digest := t.Digest[:]
	if t.Digest == [16]byte{} {
		digest = nil
	}
	b = binary.AppendUvarint(appendText(b, string(digest)), uint64(len(t.Values)))
	for _, v := range t.Values {
		b = binary.AppendUvarint(binary.LittleEndian.AppendUint32(b, v.CRC32C), uint64(v.Rows))
	}
	return b
}

// Tail appends the samples that were left out since the last record, and forgets them.
func (l *TraceLog) Tail(b []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(l.n)), l.pending...)
	l.pending, l.n = l.pending[:0], 0
	return b
}

func appendSample(b []byte, t Trace) []byte {
	b = binary.AppendUvarint(b, uint64(t.Size))
	b = binary.LittleEndian.AppendUint32(b, t.CRC)
	return appendText(appendText(b, t.Name), t.Split)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

var errTrace = fmt.Errorf("its list of samples is corrupt: %w", store.ErrCorrupt)

// readRecord decodes a trace of TraceLog.Record: the samples that were left out before a record, and the record's own
// sample.
func readRecord(b []byte) ([]Trace, error) { return readTraces(b, endsInRecord) }

// readTail decodes a trace of TraceLog.Tail: the samples that were left out at the end of a part.
func readTail(b []byte) ([]Trace, error) { return readTraces(b, endsInNone) }

// traceEnd says whether a record follows the samples that were left out.
type traceEnd bool

const (
	endsInNone   traceEnd = false
	endsInRecord traceEnd = true
)

// readTraces decodes the trace that a rank stored with a record: the samples before the record that were left out,
// and the record's own sample. Parts come over networks and from other versions, so every length is checked.
func readTraces(b []byte, end traceEnd) (list []Trace, err error) {
	r := &traceReader{b: b}
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		t := r.sample()
		t.Bad = &SkipReason{Kind: r.text(), Text: r.text()}
		list = append(list, t)
	}
	if end == endsInRecord {
		t := r.sample()
		copy(t.Digest[:], r.text())
		for n := r.uvarint(); n > 0 && r.err == nil; n-- {
			t.Values = append(t.Values, Value{CRC32C: r.fixed32(), Rows: int64(r.uvarint())})
		}
		list = append(list, t)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errTrace
	}
	return list, r.err
}

// traceReader takes values off b. After the first error b is empty and all values are zero, so that only the end has to
// check for errors.
type traceReader struct {
	b   []byte
	err error
}

func (r *traceReader) uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err, r.b = errTrace, nil
		return 0
	}
	r.b = r.b[n:]
	return x
}

// take returns the next n bytes. n comes from a file, so it is compared with the bytes that are left before it is used.
func (r *traceReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.err, r.b = errTrace, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *traceReader) fixed32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *traceReader) text() string { return string(r.take(r.uvarint())) }

func (r *traceReader) sample() (t Trace) {
	t.Size = int64(r.uvarint())
	t.CRC = r.fixed32()
	t.Name, t.Split = r.text(), r.text()
	if t.Size < 0 {
		r.err = errTrace
	}
	return t
}

// Finished is the Data of a sample that a rank has worked on already: the sample's record, or the reason why the
// sample has no record.
type Finished struct {
	Trace  Trace
	Fields []int       // positions of the fields whose values are read; others are stored already
	Values source.Data // of these fields, with the trace as the last one
}

// Read implements source.Data; a worker takes the sample instead.
func (m Finished) Read(*source.Values) error {
	return errors.New("the sample of a part is not read a second time")
}
