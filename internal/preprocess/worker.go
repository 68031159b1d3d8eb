package preprocess

import (
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/internal/decode"
	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// slot carries one sample from the source through a worker to the committer. Its record is
// reused for other samples.
type slot struct {
	sample source.Sample
	record *store.Record
	size   int64  // bytes of the sample
	crc    uint32 // of these bytes
	bad    error  // why the sample cannot be used; then record holds nothing
	fatal  error  // why the whole run cannot go on
	done   chan struct{}
}

// worker makes records of samples, one at a time. It serves one goroutine.
type worker struct {
	job     *job
	decoder *decode.Decoder
	runner  *transforms.Runner
	buf     []byte
	checked transforms.Info // the last input whose output was found to fit
}

// job is what the workers of a pass have in common.
type job struct {
	pipeline *transforms.Pipeline
	decoder  decode.Options
	schema   store.Schema
	out      transforms.Info // of every image
	first    shaped          // the sample that out comes from
}

// shaped is a sample and the size of its image, for messages.
type shaped struct {
	name string
	w, h int
}

func newWorker(j *job) *worker {
	return &worker{job: j, decoder: decode.New(j.decoder), runner: j.pipeline.Runner()}
}

func (w *worker) close() { w.decoder.Close() }

// open reads and opens the sample of s.
func (w *worker) open(s *slot) (src transforms.Source, err error) {
	w.buf, err = s.sample.Data.Read(w.buf)
	s.size, s.crc = int64(len(w.buf)), store.CRC32C(w.buf)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return w.decoder.Open(w.buf)
}

// do makes the record of the sample of s.
func (w *worker) do(s *slot) {
	s.bad, s.fatal = nil, nil
	src, err := w.open(s)
	if err != nil {
		s.bad = err
		return
	}
	if s.bad, s.fatal = w.check(s.sample.Name, transforms.InfoOf(src)); s.bad != nil || s.fatal != nil {
		return
	}
	if err := w.runner.Do(s.record.Values[0], src); err != nil {
		s.bad = err
		return
	}
	if len(s.record.Values) > 1 {
		binary.LittleEndian.PutUint64(s.record.Values[1], uint64(s.sample.Label))
	}
	s.record.Summarize(w.job.schema)
}

// check makes sure that an image of that kind becomes a record like all others. One that
// the transforms cannot work with is bad; one that would be of another size is fatal, as it
// is no fault of the image.
func (w *worker) check(name string, in transforms.Info) (bad, fatal error) {
	if in == w.checked {
		return nil, nil
	}
	out, err := w.job.pipeline.Output(in)
	if err != nil {
		return err, nil
	}
	if out.W != w.job.out.W || out.H != w.job.out.H || out.C != w.job.out.C {
		return nil, &sizeError{w.job.first, shaped{name, in.W, in.H}, w.job.out, out}
	}
	w.checked = in
	return nil, nil
}

// sizeError says that two images do not fit into one array.
type sizeError struct {
	a, b       shaped
	outA, outB transforms.Info
}

func (e *sizeError) Error() string {
	text := fmt.Sprintf("images of several sizes do not make one array: %s is %dx%d pixels, %s is %dx%d",
		e.a.name, e.a.w, e.a.h, e.b.name, e.b.w, e.b.h)
	if e.outA.W != e.a.w || e.outA.H != e.a.h {
		text += fmt.Sprintf(" (%dx%d and %dx%d after --resize)", e.outA.W, e.outA.H, e.outB.W, e.outB.H)
	}
	return text + "; bring all to one size, for example with --resize 256 --crop 224, or --resize 224x224"
}
