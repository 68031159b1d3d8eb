package preprocess

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/internal/shell"
)

// newJob finds out what records will look like: like that of the first sample, in order,
// that can be used. It does not trust headers alone, as the header of a damaged image would
// then decide what is right for all others.
func (r *run) newJob(ctx context.Context, c Config) (*job, error) {
	if r.job != nil {
		return r.job, nil
	}
	fields, err := c.fieldJobs(r.info.Fields, r.base)
	if err != nil {
		return nil, err
	}
	if err := c.checkRecords(fields, r.info.Fields); err != nil {
		return nil, err
	}
	j := &job{source: r.info.Fields, fields: fields, digest: c.Split != nil || c.Dedup}
	w := newWorker(j)
	r.books = newBooks(c)
	for sample, err := range r.src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		s := &slot{sample: sample}
		if s.bad = w.probe(s); s.bad == nil {
			return j, j.schema.Validate()
		}
		if err := r.leaveOut(s); err != nil {
			return nil, err
		}
	}
	first := r.books.skipped[0]
	return nil, fmt.Errorf("no usable sample among %d; the first: %s: %s", len(r.books.skipped), shell.Line(first.Sample), shell.Line(first.Reason))
}
