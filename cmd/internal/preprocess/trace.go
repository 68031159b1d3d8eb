package preprocess

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// traceField is the last field of a part's records: what the summary of the whole dataset
// needs of the record's sample, and of those that were left out before it.
//
//	uvarint  samples that were left out since the record before, then for each of them
//	sample   see below
//	text     kind of the reason
//	text     reason
//	and at the end
//	sample   of the record
//	16 bytes digest of its content; zero where nobody asks for it
//
// A sample is its size (uvarint), its CRC32C (4 bytes, little endian), its name and its split
// (texts); a text is its length (uvarint) and its bytes.
const traceField = "_penstock_samples"

func newTraceField() store.Field { return store.NewRagged(traceField, tensor.Uint8) }

// trace is what is known of one sample.
type trace struct {
	name, split string
	size        int64
	crc         uint32
	digest      digest
	bad         *leftBefore // why it was left out; nil: it is a record
}

// leftBefore is the reason why another run has left a sample out.
type leftBefore struct{ kind, reason string }

func (e *leftBefore) Error() string { return e.reason }

// appendTraced gives a good record to the writer of a part. What becomes of it in the
// dataset is for the merge to say.
func (r *run) appendTraced(j *job, w store.Writer, s *slot) error {
	last := len(j.schema.Fields) - 1
	s.record.Values[last] = r.books.trace(s.record.Values[last][:0], s)
	s.record.SummarizeField(j.schema, last)
	s.record.Split = ""
	return w.Append(s.record)
}

// trace appends the trace of a record to b, and of all that was left out before it.
func (b *books) trace(out []byte, s *slot) []byte {
	out = b.takeLeft(out)
	out = appendSample(out, s)
	return append(out, s.digest[:]...)
}

// takeLeft appends what was left out since the last record, and forgets it.
func (b *books) takeLeft(out []byte) []byte {
	out = append(binary.AppendUvarint(out, uint64(b.left)), b.pending...)
	b.pending, b.left = b.pending[:0], 0
	return out
}

// leave adds a sample that is left out to those.
func (b *books) leave(s *slot) {
	b.pending = appendSample(b.pending, s)
	b.pending = appendText(b.pending, kindOf(s.bad))
	b.pending = appendText(b.pending, s.bad.Error())
	b.left++
}

func appendSample(b []byte, s *slot) []byte {
	b = binary.AppendUvarint(b, uint64(s.size))
	b = binary.LittleEndian.AppendUint32(b, s.crc)
	return appendText(appendText(b, s.sample.Name), s.sample.Split)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

var errTrace = fmt.Errorf("what is noted of its samples is damaged: %w", store.ErrCorrupt)

// readTraces reads what trace wrote or, of a part's end, takeLeft; then there is no record
// behind those that were left out.
func readTraces(b []byte, record bool) (list []trace, err error) {
	r := &traceReader{b: b}
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		t := r.sample()
		t.bad = &leftBefore{kind: r.text(), reason: r.text()}
		list = append(list, t)
	}
	if record {
		t := r.sample()
		copy(t.digest[:], r.take(uint64(len(t.digest))))
		list = append(list, t)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errTrace
	}
	return list, r.err
}

// traceReader takes values off b until there is an error.
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

func (r *traceReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.err, r.b = errTrace, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *traceReader) text() string { return string(r.take(r.uvarint())) }

func (r *traceReader) sample() (t trace) {
	t.size = int64(r.uvarint())
	if crc := r.take(4); crc != nil {
		t.crc = binary.LittleEndian.Uint32(crc)
	}
	t.name, t.split = r.text(), r.text()
	if t.size < 0 {
		r.err = errTrace
	}
	return t
}

// made is the Data of a sample that a rank has worked on already: its record, or why there
// is none.
type made struct {
	trace
	values source.Data // of the record, with the trace as the last field
}

// Read implements source.Data; a worker takes the sample instead.
func (m made) Read(*source.Values) error {
	return errors.New("the sample of a part is not read a second time")
}

// take makes the slot that of the sample.
func (m made) take(j *job, s *slot) {
	s.bad, s.fatal, s.size, s.crc, s.digest = nil, nil, m.size, m.crc, m.digest
	if m.bad != nil {
		s.bad = m.bad
		return
	}
	v := source.NewValues(len(j.schema.Fields) + 1)
	if s.fatal = m.values.Read(v); s.fatal != nil {
		return
	}
	for i := range s.record.Values {
		s.record.Values[i] = append(slices.Grow(s.record.Values[i][:0], len(v.Get(i))), v.Get(i)...)
	}
	s.record.Summarize(j.schema)
}
