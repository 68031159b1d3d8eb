package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"github.com/penstock/penstock/tensor"
)

// Record is one sample on its way into a Writer: the bytes of every field, in schema
// order, little endian, C order. Whoever fills it owns it; writers copy.
type Record struct {
	Values [][]byte

	sums   []digest
	filled bool
}

// digest is what a record adds to the books of one field.
type digest struct {
	crc      uint32
	channels []moments
}

// NewRecord returns a Record with memory for every field of s.
func NewRecord(s Schema) *Record {
	r := &Record{Values: make([][]byte, len(s.Fields)), sums: make([]digest, len(s.Fields))}
	for i, f := range s.Fields {
		channels, _ := f.Channels()
		// Through []uint64, so that every type finds its alignment.
		words := make([]uint64, (f.RecordBytes()+7)/8)
		r.Values[i] = bytesOf(words)[:f.RecordBytes()]
		r.sums[i].channels = make([]moments, channels)
	}
	return r
}

// Summarize computes checksums and statistics of the record's present values, so that
// Append has not to. It may run beside other records' Summarize; call it last, after every
// change of Values.
func (r *Record) Summarize(s Schema) {
	for i, f := range s.Fields {
		d := &r.sums[i]
		d.crc = CRC32C(r.Values[i])
		clear(d.channels)
		measure(f, r.Values[i], d.channels)
	}
	r.filled = true
}

// check panics where a Record does not fit, which only a programming error can bring about.
func (r *Record) check(s Schema) {
	if len(r.Values) != len(s.Fields) || len(r.sums) != len(s.Fields) {
		panic("store: record was not made by NewRecord for this schema")
	}
	for i, f := range s.Fields {
		if len(r.Values[i]) != f.RecordBytes() {
			panic("store: a record's value has not the length of its field")
		}
	}
}

// Ledger keeps the books of a dataset while it is written: statistics and identity. Both
// formats use it, so a dataset has the same ID in either.
//
// The ID is the first half of a SHA-256 over the fields as JSON and, field by field, the
// SHA-256 of the CRC32Cs (little endian) of its records in order. How records are spread
// over shards does not change it.
type Ledger struct {
	schema Schema
	count  int64
	ids    []hash.Hash
	stats  [][]moments
	labels [][]int64
}

// NewLedger returns the books of an empty dataset.
func NewLedger(s Schema) *Ledger {
	l := &Ledger{schema: s}
	for _, f := range s.Fields {
		channels, _ := f.Channels()
		l.ids = append(l.ids, sha256.New())
		l.stats = append(l.stats, make([]moments, channels))
		l.labels = append(l.labels, make([]int64, len(f.Classes)))
	}
	return l
}

// Add enters the next record, summarising it if that was not done, and returns the CRC32C
// of each value in sums, which is as long as the schema. A label outside its classes is an
// error, and then nothing was entered.
func (l *Ledger) Add(r *Record, sums []uint32) error {
	r.check(l.schema)
	for i, f := range l.schema.Fields {
		if label, ok := labelOf(f, r.Values[i]); ok && (label < 0 || label >= int64(len(f.Classes))) {
			return fmt.Errorf("field %q: label %d, but there are %d classes", f.Name, label, len(f.Classes))
		}
	}
	if !r.filled {
		r.Summarize(l.schema)
	}
	r.filled = false
	for i, f := range l.schema.Fields {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], r.sums[i].crc)
		l.ids[i].Write(b[:])
		sums[i] = r.sums[i].crc
		for c := range l.stats[i] {
			l.stats[i][c].merge(r.sums[i].channels[c])
		}
		if label, ok := labelOf(f, r.Values[i]); ok {
			l.labels[i][label]++
		}
	}
	l.count++
	return nil
}

// labelOf reads the label of a record, if the field is one: an int64 scalar with classes.
func labelOf(f Field, value []byte) (int64, bool) {
	if len(f.Classes) == 0 || f.DType != tensor.Int64 || len(f.Shape) != 0 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(value)), true
}

// Records returns how many records were added.
func (l *Ledger) Records() int64 { return l.count }

// Manifest returns the manifest of what was added, with no shards.
func (l *Ledger) Manifest(info Info) *Manifest {
	m := &Manifest{
		Format: FormatName, Version: FormatVersion, Generation: 1,
		Records: l.count, Fields: append([]Field(nil), l.schema.Fields...),
		Statistics: make(map[string]*Statistics),
		Recipe:     info.Recipe, Source: info.Source, Skipped: info.Skipped,
	}
	for i, f := range l.schema.Fields {
		s := l.statistics(i, f)
		m.Statistics[f.Name] = s
		if info.NormalizeByStatistics && f.DType == tensor.Uint8 && f.Layout != "" {
			m.Fields[i].Normalization = s.normalization()
		}
	}
	m.ID = l.id(m.Fields)
	return m
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

func (l *Ledger) statistics(i int, f Field) *Statistics {
	var all moments
	s := new(Statistics)
	for _, c := range l.stats[i] {
		all.merge(c)
		if len(l.stats[i]) > 1 {
			s.Channels = append(s.Channels, c.result(isByte(f.DType)))
		}
	}
	s.Moments = all.result(isByte(f.DType))
	if len(f.Classes) > 0 {
		s.Labels = l.labels[i]
	}
	return s
}

func (l *Ledger) id(fields []Field) string {
	h := sha256.New()
	text, err := json.Marshal(fields)
	if err != nil {
		panic("store: a valid schema has no JSON: " + err.Error())
	}
	h.Write(text)
	for _, f := range l.ids {
		h.Write(f.Sum(nil))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
