package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"

	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
)

// Record is one sample on its way into a Writer: the bytes of every field, in schema
// order, little endian, C order. The caller that fills it owns it; writers copy.
//
// The value of a ragged field has any number of whole rows and starts out empty: append to
// Values[i][:0], or set Values[i] to memory that is aligned for the field's type.
type Record struct {
	Values [][]byte
	Split  string // the split that the record belongs to; empty in a dataset without splits

	sums   []digest
	filled bool
	meter  meter
}

// digest is what a record adds to the statistics and identity of one field.
type digest struct {
	crc      uint32
	channels []moments.Moments
}

// raggedRoom is the memory that a ragged value starts with.
const raggedRoom = 1024

// NewRecord returns a Record with memory for every field of s.
func NewRecord(s Schema) *Record {
	r := &Record{Values: make([][]byte, len(s.Fields)), sums: make([]digest, len(s.Fields))}
	for i, f := range s.Fields {
		channels, _ := f.Channels()
		n, room := f.RecordBytes(), f.RecordBytes()
		if f.Ragged {
			n, room = 0, max(raggedRoom, f.RecordBytes())
		}
		// Through []uint64, so that every type finds its alignment.
		words := make([]uint64, (room+7)/8)
		r.Values[i] = bytesOf(words)[:n]
		r.sums[i].channels = make([]moments.Moments, channels)
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

// SummarizeField does again for one value what Summarize did for all: it has changed since.
func (r *Record) SummarizeField(s Schema, field int) {
	d := &r.sums[field]
	d.crc = CRC32C(r.Values[field])
	clear(d.channels)
	r.meter.measure(s.Fields[field], r.Values[field], d.channels)
}

// Rows returns how many rows the value of a field, which has that position in s, has.
func (r *Record) Rows(s Schema, field int) int {
	return len(r.Values[field]) / s.Fields[field].RecordBytes()
}

// check panics where a Record does not fit, which only a programming error can bring about.
func (r *Record) check(s Schema) {
	if len(r.Values) != len(s.Fields) || len(r.sums) != len(s.Fields) {
		panic("store: record was not made by NewRecord for this schema")
	}
	for i, f := range s.Fields {
		n, size := len(r.Values[i]), f.RecordBytes()
		if !f.Ragged && n != size || n%size != 0 {
			panic("store: a record's value has not the length of its field")
		}
	}
}

// Ledger computes the statistics and the identity of a dataset while it is written. Both
// formats use it, so a dataset has the same ID in either.
//
// The ID is the first half of a SHA-256 over the fields as JSON and, for each split and
// field, the SHA-256 of the CRC32Cs (little endian) of its records in order, each followed
// by the number of rows (uint64) where the field is ragged. A split's name and a zero byte
// come before its fields; a dataset without splits counts as one that has no name. How
// records are spread over shards does not change it.
type Ledger struct {
	schema Schema
	splits []string
	books  []books // by split
}

// books are those of one split; without splits there is one.
type books struct {
	count   int64
	ids     []hash.Hash
	stats   [][]moments.Moments // by field and channel
	lengths []moments.Moments
	labels  [][]int64
	entry   [12]byte // what goes into an id; here, so that it is not allocated
}

// NewLedger returns the ledger of an empty dataset with those splits, if any.
func NewLedger(s Schema, splits ...string) *Ledger {
	l := &Ledger{schema: s, splits: splits}
	for range max(1, len(splits)) {
		l.books = append(l.books, newBooks(s))
	}
	return l
}

func newBooks(s Schema) books {
	b := books{lengths: make([]moments.Moments, len(s.Fields))}
	for _, f := range s.Fields {
		channels, _ := f.Channels()
		b.ids = append(b.ids, sha256.New())
		b.stats = append(b.stats, make([]moments.Moments, channels))
		b.labels = append(b.labels, make([]int64, len(f.Classes)))
	}
	return b
}

// Add enters the next record, summarising it if that was not done, and returns the CRC32C
// of each value in sums, which is as long as the schema. A label outside its classes, or a
// split that is not one of the dataset's, is an error, and then nothing was entered.
func (l *Ledger) Add(r *Record, sums []uint32) error {
	r.check(l.schema)
	split, err := l.split(r.Split)
	if err != nil {
		return err
	}
	for i, f := range l.schema.Fields {
		if err := checkLabels(f, r.Values[i]); err != nil {
			return err
		}
	}
	if !r.filled {
		r.Summarize(l.schema)
	}
	r.filled = false
	l.books[split].add(l.schema, r)
	for i := range sums {
		sums[i] = r.sums[i].crc
	}
	return nil
}

// split returns the position of a split.
func (l *Ledger) split(name string) (int, error) {
	if len(l.splits) == 0 && name == "" {
		return 0, nil
	}
	if i := slices.Index(l.splits, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("split %q is not one of the dataset's: %q", name, l.splits)
}

func (b *books) add(s Schema, r *Record) {
	for i, f := range s.Fields {
		entry := b.entry[:4]
		binary.LittleEndian.PutUint32(entry, r.sums[i].crc)
		if rows := r.Rows(s, i); f.Ragged {
			entry = binary.LittleEndian.AppendUint64(entry, uint64(rows))
			b.lengths[i].Merge(moments.One(float64(rows)))
		}
		b.ids[i].Write(entry)
		for c := range b.stats[i] {
			b.stats[i][c].Merge(r.sums[i].channels[c])
		}
		if isLabel(f) {
			for v := r.Values[i]; len(v) > 0; v = v[8:] {
				b.labels[i][binary.LittleEndian.Uint64(v)]++
			}
		}
	}
	b.count++
}

// isLabel reports whether values are class numbers: int64 scalars, one or any number.
func isLabel(f Field) bool {
	return len(f.Classes) > 0 && f.DType == tensor.Int64 && len(f.Shape) == 0
}

func checkLabels(f Field, value []byte) error {
	if !isLabel(f) {
		return nil
	}
	for ; len(value) > 0; value = value[8:] {
		if label := int64(binary.LittleEndian.Uint64(value)); label < 0 || label >= int64(len(f.Classes)) {
			return fmt.Errorf("field %q: label %d, but there are %d classes", f.Name, label, len(f.Classes))
		}
	}
	return nil
}

// Records returns how many records were added.
func (l *Ledger) Records() int64 {
	n := int64(0)
	for i := range l.books {
		n += l.books[i].count
	}
	return n
}

// Manifest returns the manifest of what was added, with no shards.
func (l *Ledger) Manifest(info Info) *Manifest {
	m := &Manifest{
		Format: FormatName, Version: FormatVersion, Generation: 1,
		Records: l.Records(), Fields: append([]Field(nil), l.schema.Fields...),
		Statistics: make(map[string]*Statistics),
		Recipe:     info.Recipe, Source: info.Source, Skipped: info.Skipped,
	}
	for i, f := range l.schema.Fields {
		s := l.statistics(i, f, l.books)
		m.Statistics[f.Name] = s
		if info.NormalizeByStatistics && PixelBytes(f) {
			m.Fields[i].Normalization = l.statistics(i, f, l.booksOf(info.NormalizeSplit)).normalization()
		}
	}
	m.ID = l.id(m.Fields)
	m.Ledger = l.State()
	return m
}

// PixelBytes reports whether a field is one that Info.NormalizeByStatistics speaks of: bytes
// with a layout, or with two axes or more, such as images of one channel.
func PixelBytes(f Field) bool {
	return f.DType == tensor.Uint8 && !f.Ragged && (f.Layout != "" || len(f.Shape) > 1)
}

// normalization returns what brings uint8 values to mean 0 and standard deviation 1. A
// channel of one value only is not scaled.
func (s *Statistics) normalization() *Normalization {
	channels := s.Channels
	if channels == nil {
		channels = []Moments{s.Moments}
	}
	n := &Normalization{Scale: 255}
	for _, c := range channels {
		std := c.Std / 255
		if std == 0 {
			std = 1
		}
		n.Mean, n.Std = append(n.Mean, c.Mean/255), append(n.Std, std)
	}
	return n
}

// booksOf returns the part of l.books for a split, or all if it is "" or not one of the splits.
func (l *Ledger) booksOf(split string) []books {
	if i := slices.Index(l.splits, split); i >= 0 {
		return l.books[i : i+1]
	}
	return l.books
}

// statistics sums a field up over the splits of list.
func (l *Ledger) statistics(i int, f Field, list []books) *Statistics {
	stats, labels := make([]moments.Moments, len(l.books[0].stats[i])), make([]int64, len(f.Classes))
	var all, lengths moments.Moments
	for _, b := range list {
		for c := range stats {
			stats[c].Merge(b.stats[i][c])
		}
		lengths.Merge(b.lengths[i])
		for class, n := range b.labels[i] {
			labels[class] += n
		}
	}
	s := new(Statistics)
	for _, c := range stats {
		all.Merge(c)
		if len(stats) > 1 {
			s.Channels = append(s.Channels, momentsOf(c, f.DType))
		}
	}
	s.Moments = momentsOf(all, f.DType)
	if f.Ragged {
		m := momentsOf(lengths, tensor.Float64)
		s.Lengths = &m
	}
	if len(f.Classes) > 0 {
		s.Labels = labels
	}
	return s
}

func (l *Ledger) id(fields []Field) string {
	id := NewIdentity(fields)
	for i := range l.books {
		if len(l.splits) > 0 {
			id.Split(l.splits[i])
		}
		for _, h := range l.books[i].ids {
			id.Field(h.Sum(nil))
		}
	}
	return id.String()
}

// Identity computes the ID of a dataset from the digests of its fields.
type Identity struct{ h hash.Hash }

// NewIdentity begins with the fields, as a manifest has them.
func NewIdentity(fields []Field) *Identity {
	id := &Identity{sha256.New()}
	text, err := json.Marshal(fields)
	if err != nil {
		panic("store: a valid schema has no JSON: " + err.Error())
	}
	id.h.Write(text)
	return id
}

// Split begins a split, whose fields come next.
func (id *Identity) Split(name string) { id.h.Write(append([]byte(name), 0)) }

// Field adds the digest of the next field: a SHA-256, see Ledger.
func (id *Identity) Field(digest []byte) { id.h.Write(digest) }

// String returns the ID: 32 hex digits.
func (id *Identity) String() string { return hex.EncodeToString(id.h.Sum(nil)[:16]) }
