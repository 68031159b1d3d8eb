package prepare

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"reflect"
	"slices"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// slot carries one sample from the source through a worker to its commit. Its record is
// reused for other samples.
type slot struct {
	number int64 // of the sample, in the order of the source
	sample source.Sample
	record *store.Record
	size   int64          // bytes of the sample
	crc    uint32         // of these bytes
	digest samples.Digest // of the content, if the job asks for it
	stored samples.Digest // of the record's content, likewise
	bad    error          // why the sample cannot be used; then record holds nothing
	fatal  error          // why the whole run cannot go on
	many   *filled        // instead of all that, where sample is manySamples
}

// bytes returns what a slot that is filled takes.
func (s *slot) bytes() int64 {
	n := s.size
	if s.many != nil {
		n += s.many.bytes()
	}
	if s.record != nil {
		for _, v := range s.record.Values {
			n += int64(len(v))
		}
	}
	return n
}

// trim lets go of the sample, and of values of any length that take more than most bytes.
func (s *slot) trim(schema store.Schema, most int64) {
	s.sample = source.Sample{}
	if s.record == nil {
		return
	}
	for i, v := range s.record.Values {
		if schema.Fields[i].Ragged && int64(cap(v)) > most {
			s.record.Values[i] = nil
		}
	}
}

// worker makes records of samples, one at a time. It serves one goroutine.
type worker struct {
	job    *job
	values *source.Values
	fields []field.Worker
}

// job is what the workers of a pass have in common.
type job struct {
	source  []source.Field
	fields  []field.Job // of the dataset, in the order of source
	schema  store.Schema
	digest  bool // samples get one
	stored  bool // and so do records
	named   bool // the last field of the schema is the names of the samples
	stratum field.Stratum
}

func newWorker(j *job) *worker {
	w := &worker{job: j, values: source.NewValues(len(j.source))}
	for _, f := range j.fields {
		w.fields = append(w.fields, f.NewWorker())
	}
	return w
}

// read reads the values of the sample of s and enters what they are.
func (w *worker) read(s *slot) error {
	w.values.Clear()
	err := s.sample.Data.Read(w.values)
	s.size, s.crc = 0, 0
	for i, f := range w.job.source {
		if !f.Derived {
			s.size += int64(len(w.values.Get(i)))
			s.crc = kernel.CRC32C(s.crc, w.values.Get(i))
		}
	}
	if err != nil && !errors.Is(err, source.ErrValue) {
		err = fmt.Errorf("cannot be read: %w", err)
	}
	return err
}

// do makes the record of the sample of s.
func (w *worker) do(s *slot) {
	if m, ok := s.sample.Data.(part.Finished); ok {
		w.take(m, s)
		return
	}
	if b, ok := s.sample.Data.(manySamples); ok {
		w.doBlock(b.Block, s)
		return
	}
	s.bad, s.fatal = w.read(s), nil
	if s.bad != nil {
		return
	}
	for i, f := range w.fields {
		s.record.Values[i], s.bad, s.fatal = f.Do(s.sample.Name, s.record.Values[i], w.values.Get(i))
		if s.bad != nil || s.fatal != nil {
			return
		}
	}
	if w.job.named {
		last := len(w.fields)
		s.record.Values[last] = append(s.record.Values[last][:0], s.sample.Name...)
	}
	if w.job.digest {
		s.digest = w.content()
	}
	if w.job.stored {
		s.stored = storedContent(w.job.schema, s.record.Values)
	}
	s.record.Summarize(w.job.schema)
}

// content returns the digest of what a sample is known by.
func (w *worker) content() samples.Digest {
	f := w.job.source
	return samples.Content(len(f), func(i int) bool { return f[i].Image() }, func(i int) bool { return !f[i].Derived }, w.values.Get)
}

// probe tries a sample and, if it can be used, makes it the measure for all.
func (w *worker) probe(s *slot) error {
	if err := w.read(s); err != nil {
		return err
	}
	var schema store.Schema
	for i, f := range w.fields {
		field, err := f.Probe(s.sample.Name, w.values.Get(i))
		if err != nil {
			return err
		}
		schema.Fields = append(schema.Fields, field)
	}
	if w.job.named {
		schema.Fields = append(schema.Fields, nameField())
	}
	w.job.schema = schema
	return nil
}

// take makes the slot that of a sample which a rank has worked on.
func (w *worker) take(m part.Finished, s *slot) {
	j := w.job
	s.bad, s.fatal, s.size, s.crc, s.digest = nil, nil, m.Trace.Size, m.Trace.CRC, m.Trace.Digest
	if m.Trace.Bad != nil {
		s.bad = m.Trace.Bad
		return
	}
	v := source.NewValues(len(m.Fields) + 1)
	if s.fatal = m.Values.Read(v); s.fatal != nil {
		return
	}
	for i, k := 0, 0; i < len(s.record.Values); i++ {
		if k < len(m.Fields) && m.Fields[k] == i {
			s.record.Values[i] = append(slices.Grow(s.record.Values[i][:0], len(v.Get(k))), v.Get(k)...)
			k++
			continue
		}
		digest.Of(s.record).SetStored(i, m.Trace.Values[i].CRC32C, m.Trace.Values[i].Rows)
	}
	s.record.Summarize(j.schema)
}

// guess finds out what records look like without a sample that can be used: a rank may have none, and its
// part must be of the plan of the others. It makes up two samples with images of different sizes. If their
// records are alike, those of all samples are.
func (j *job) guess(name string) error {
	var schemas []store.Schema
	for _, size := range []image.Point{{64, 48}, {300, 500}} {
		file, err := pictureOf(size)
		if err != nil {
			return err
		}
		w := newWorker(j)
		s := &slot{sample: source.Sample{Name: name, Data: madeUp{j.source, file}}}
		if err := w.probe(s); err != nil {
			return err
		}
		schemas = append(schemas, j.schema)
	}
	if !reflect.DeepEqual(schemas[0], schemas[1]) {
		return errors.New("no sample of this rank can be used, and the size of the records' images is that of the first one; give --resize and --crop, or use fewer ranks")
	}
	return j.schema.Validate()
}

func pictureOf(size image.Point) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, image.NewNRGBA(image.Rectangle{Max: size}))
	return b.Bytes(), err
}

// madeUp is a sample of zeros, and of a file for each field of such.
type madeUp struct {
	fields []source.Field
	file   []byte
}

// Read implements source.Data.
func (m madeUp) Read(to *source.Values) error {
	for i, f := range m.fields {
		switch {
		case f.Content == tensor.Image:
			to.Borrow(i, m.file)
		case f.Ragged:
			to.Make(i, 0)
		default:
			clear(to.Make(i, f.RecordBytes()))
		}
	}
	return nil
}
