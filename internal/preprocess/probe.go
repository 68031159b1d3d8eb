package preprocess

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// newJob finds out what records will look like: like that of the first sample, in order,
// that can be used. It does not trust headers alone, as the header of a damaged image would
// then decide what is right for all others.
func (r *run) newJob(ctx context.Context, c Config) (*job, error) {
	pipeline, err := c.pipeline()
	if err != nil {
		return nil, err
	}
	j := &job{pipeline: pipeline, decoder: c.decoder()}
	w := newWorker(j)
	defer w.close()
	r.books = newBooks()
	for sample, err := range r.src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		s := &slot{sample: sample}
		if s.bad = w.probe(s); s.bad == nil {
			j.schema = c.schema(j.out, r.info.Classes)
			return j, nil
		}
		if err := r.leaveOut(s); err != nil {
			return nil, err
		}
	}
	first := r.books.skipped[0]
	return nil, fmt.Errorf("no readable image among %d samples; the first: %s: %s", len(r.books.skipped), first.Sample, first.Reason)
}

// probe tries a sample and, if it can be used, makes it the measure for all.
func (w *worker) probe(s *slot) error {
	src, err := w.open(s)
	if err != nil {
		return err
	}
	in := transforms.InfoOf(src)
	out, err := w.job.pipeline.Output(in)
	if err != nil {
		return err
	}
	rec := store.NewRecord(store.Schema{Fields: []store.Field{store.NewField(imagesField, out.DType, out.Shape()...)}})
	if err := w.runner.Do(rec.Values[0], src); err != nil {
		return err
	}
	w.job.out, w.job.first = out, shaped{s.sample.Name, in.W, in.H}
	return nil
}
