package execute

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Worker turns samples into records. It serves one goroutine.
type Worker struct {
	job    *Job
	values *source.Values
	fields []field.Worker
	joints []*field.JointWorker
	led    []bool        // by field: one of joints makes it
	places *field.Places // nil if no boxes or keypoints need conversion
}

// Job says how samples become records. The workers of a pass share it; Probe sets Schema before they run.
type Job struct {
	Source  []source.Field
	Fields  []field.Job // of the dataset, in the order of Source
	Joints  []*field.Joint
	Options field.Options
	Schema  store.Schema
	Digest  bool // compute Slot.Digest
	Stored  bool // compute Slot.Stored
	Named   bool // the last field of the schema is the name of the sample
	Stratum field.Stratum
}

// NewWorker returns a worker for one goroutine.
func NewWorker(j *Job) *Worker {
	w := &Worker{job: j, values: source.NewValues(len(j.Source))}
	for _, f := range j.Fields {
		w.fields = append(w.fields, f.NewWorker())
	}
	w.led = make([]bool, len(j.Fields))
	for _, t := range j.Joints {
		w.joints = append(w.joints, t.NewWorker())
		for _, k := range t.Follows {
			w.led[k] = true
		}
	}
	w.places = j.Options.NewPlaces(j.Source)
	return w
}

// read reads the values of the sample of s; [Worker.prepare] says what an error of read means.
func (w *Worker) read(s *Slot) error {
	w.values.Clear()
	return s.Sample.Data.Read(w.values)
}

// enter sets the size and checksum of a sample from the values that were read, also of a sample that fails. Derived
// values do not count: they follow from the name.
func (w *Worker) enter(s *Slot) {
	// Also for a sample with an error: a bad sample is part of the fingerprint, with the values that could be read.
	s.Size, s.CRC = 0, 0
	for i, f := range w.job.Source {
		if !f.Derived {
			s.Size += int64(len(w.values.Get(i)))
			s.CRC = kernel.CRC32C(s.CRC, w.values.Get(i))
		}
	}
}

// prepare readies the values for the fields, unless reading them failed with err.
func (w *Worker) prepare(err error) error {
	if err != nil && !errors.Is(err, source.ErrValue) {
		err = fmt.Errorf("cannot be read: %w", err)
	}
	if err == nil && w.places != nil {
		err = w.places.Convert(w.values)
	}
	if err != nil {
		return &field.SampleError{Err: err}
	}
	return nil
}

// Load makes the values of the record of the sample of s, or sets its error. The record has no checksums and statistics,
// which take a tenth of the time of small records and which only a writer needs.
func (w *Worker) Load(s *Slot) {
	if s.Err = w.prepare(w.read(s)); s.Err == nil {
		s.Err = w.fill(s)
	}
}

// Do makes the record of the sample in s, or sets s.Err.
func (w *Worker) Do(s *Slot) {
	if m, ok := s.Sample.Data.(part.Finished); ok {
		w.take(m, s)
		return
	}
	if b, ok := s.Sample.Data.(blockData); ok {
		w.doBlock(b.Block, s)
		return
	}
	err := w.read(s)
	w.enter(s)
	if s.Err = w.prepare(err); s.Err != nil {
		return
	}
	if s.Err = w.fill(s); s.Err != nil {
		return
	}
	if w.job.Digest {
		s.Digest = w.content()
	}
	if w.job.Stored {
		s.Stored = StoredContent(w.job.Schema, s.Record.Values)
	}
	// Checksums and statistics are computed here, in the worker, while the values are in its cache.
	s.Record.Summarize(w.job.Schema)
}

// fill makes the values of the record of s from the values that were read.
func (w *Worker) fill(s *Slot) (err error) {
	for i, f := range w.fields {
		// A Joint sets the value below.
		if w.led[i] {
			continue
		}
		s.Record.Values[i], err = f.Do(s.Sample.Name, s.Record.Values[i], w.values.Get(i))
		if err != nil {
			return err
		}
	}
	for _, t := range w.joints {
		if err = t.Do(w.values.Get, s.Record.Values); err != nil {
			return err
		}
	}
	if err = w.checkInstances(s.Record.Values); err != nil {
		return err
	}
	if w.job.Named {
		last := len(w.fields)
		s.Record.Values[last] = append(s.Record.Values[last][:0], s.Sample.Name...)
	}
	return nil
}

// content returns the digest by which a sample is known again. Classes count by their names, as their numbers
// depend on the other classes of the source.
func (w *Worker) content() samples.Digest {
	f := w.job.Source
	return samples.Content(len(f), func(i int) bool {
		return f[i].Image()
	}, func(i int) bool { return !f[i].Derived }, w.named)
}

// named returns the value of field i, with the names of classes in place of their numbers.
func (w *Worker) named(i int) []byte {
	value, f := w.values.Get(i), w.job.Source[i]
	if len(f.Classes) == 0 {
		return value
	}
	var names []byte
	for number := range slices.Chunk(value, f.DType.Size()) {
		n, ok := f.DType.Read(number).Int64()
		if !ok || n < 0 || n >= int64(len(f.Classes)) {
			return value // it is refused elsewhere
		}
		names = append(append(names, f.Classes[n]...), 0)
	}
	return names
}

// Probe reads a sample and, if it is usable, makes the job's schema from it. All other samples must fit that
// schema.
func (w *Worker) Probe(s *Slot) error {
	err := w.read(s)
	w.enter(s)
	if err = w.prepare(err); err != nil {
		return err
	}
	var schema store.Schema
	for i, f := range w.fields {
		if w.led[i] {
			schema.Fields = append(schema.Fields, store.Field{})
			continue
		}
		probed, err := f.Probe(s.Sample.Name, w.values.Get(i))
		if err != nil {
			return &field.SampleError{Err: err}
		}
		schema.Fields = append(schema.Fields, probed)
	}
	for i, t := range w.joints {
		at := w.job.Joints[i]
		follow, err := t.Probe(schema.Fields[at.Image], w.values.Get)
		if err != nil {
			return &field.SampleError{Err: err}
		}
		for k, f := range follow {
			schema.Fields[at.Follows[k]] = f
		}
	}
	if w.job.Named {
		schema.Fields = append(schema.Fields, nameField())
	}
	w.job.Schema = placed(schema)
	return nil
}

// placed fills in the name of the image that a field is on, where the field leaves it out.
func placed(schema store.Schema) store.Schema {
	for i, f := range schema.Fields {
		if at, err := schema.ImageOf(f.Spec); f.OnImage() && err == nil && at >= 0 {
			schema.Fields[i].Image = schema.Fields[at].Name
		}
	}
	return schema
}

// checkInstances returns an error if fields of one list of instances differ in the number of rows.
func (w *Worker) checkInstances(values [][]byte) error {
	fields := w.job.Schema.Fields
	err := w.job.Schema.CheckInstances(func(i int) int { return len(values[i]) / fields[i].RecordBytes() })
	if err != nil {
		return &field.SampleError{Err: source.ValueError("%w", err)}
	}
	return nil
}

// take fills the slot with a record that a rank has made already.
func (w *Worker) take(m part.Finished, s *Slot) {
	j := w.job
	s.Err, s.Size, s.CRC, s.Digest = nil, m.Trace.Size, m.Trace.CRC, m.Trace.Digest
	if m.Trace.Bad != nil {
		s.Err = &field.SampleError{Err: m.Trace.Bad}
		return
	}
	v := source.NewValues(len(m.Fields) + 1)
	if s.Err = m.Values.Read(v); s.Err != nil {
		return
	}
	for i, k := 0, 0; i < len(s.Record.Values); i++ {
		if k < len(m.Fields) && m.Fields[k] == i {
			s.Record.Values[i] = append(slices.Grow(s.Record.Values[i][:0], len(v.Get(k))), v.Get(k)...)
			k++
			continue
		}
		digest.Of(s.Record).SetStored(i, m.Trace.Values[i].CRC32C, m.Trace.Values[i].Rows)
	}
	s.Record.Summarize(j.Schema)
}

// StoredContent returns the digest by which a record is known again: of the record's images, or of all values
// if it has no images.
func StoredContent(s store.Schema, values [][]byte) samples.Digest {
	f := s.Fields
	image := func(i int) bool { return f[i].Content == tensor.Image || f[i].Layout != "" && !f[i].OnImage() }
	counts := func(i int) bool { return f[i].Content != tensor.SourceName }
	return samples.Content(len(f), image, counts, func(i int) []byte { return values[i] })
}

// nameField returns the field of sample names.
func nameField() store.Field {
	f := store.NewRagged(layout.SourceNameField, tensor.Uint8)
	f.Content = tensor.SourceName
	return f
}
