// Package preprocess turns a source of raw samples into a dataset. It is the command of that
// name: Command is its face, Run what it does.
//
//	source -> feeder -> workers (read, decode, transform, summarise) -> committer -> store.Writer
//
// Each image is the work of one goroutine. The committer takes records in the order of the
// source, so any number of workers makes the same bytes.
package preprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Progress is told how far Run is. *cli.Progress is one.
type Progress interface {
	Begin(what string, total int64, unit string)
	Add(n int64)
	End()
}

// Run makes the dataset. Before it returns nil, nothing is found under c.Dest that was not
// there; with an error, neither files nor folders that it made are left. Its memory is that
// of some records a worker.
//
// Without c.Skip the first sample, in the order of the source, that cannot be used is the
// error. With it, such samples are in the manifest, and an error only if all are such. A
// source whose images do not have one size after the transforms is an error in any case.
func Run(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	parents := missingParents(c.Dest)
	s, err := runIn(ctx, c, progress)
	if err != nil {
		removeEmpty(parents)
	}
	return s, err
}

func runIn(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	begin := time.Now()
	if err := checkPlaces(c); err != nil {
		return nil, err
	}
	src, err := openSource(ctx, c)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w; nothing was written to %s", context.Cause(ctx), c.Dest)
		}
		return nil, err
	}
	defer src.Close()
	r := &run{config: c, src: src, info: src.Info(), progress: progress}
	manifest, err := r.run(ctx)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return newSummary(c, r, manifest, time.Since(begin))
}

// run is one run of the command.
type run struct {
	config   Config
	src      source.Source
	info     source.Info
	progress Progress
	books    *books // of the last pass
	skip     int64  // samples that the pass before left out
	need     int64  // bytes of the whole dataset, once it is known
}

func (r *run) run(ctx context.Context) (*store.Manifest, error) {
	if r.config.Normalize.Dataset && r.config.DType != tensor.Uint8 {
		n, err := r.measure(ctx)
		if err != nil {
			return nil, err
		}
		r.config.Normalize.Mean, r.config.Normalize.Std = n.Mean, n.Std
		r.config.Normalize.Dataset = false
	}
	return r.write(ctx)
}

// measure runs over the source for the mean and deviation of its pixels as they would be
// stored in uint8.
func (r *run) measure(ctx context.Context) (*store.Normalization, error) {
	c := r.config
	c.DType = tensor.Uint8
	j, err := r.newJob(ctx, c)
	if err != nil {
		return nil, err
	}
	ledger, sums := store.NewLedger(j.schema), make([]uint32, len(j.schema.Fields))
	err = r.pass(ctx, j, "measuring (1 of 2)", func(rec *store.Record) error { return ledger.Add(rec, sums) })
	if err != nil {
		return nil, err
	}
	r.skip = int64(len(r.books.skipped))
	return ledger.Manifest(store.Info{NormalizeByStatistics: true}).Fields[0].Normalization, nil
}

// write runs over the source and commits the dataset.
func (r *run) write(ctx context.Context) (*store.Manifest, error) {
	c := r.config
	j, err := r.newJob(ctx, c)
	if err != nil {
		return nil, err
	}
	r.need = (r.info.Count - r.skip) * int64(j.schema.RecordBytes())
	w, err := r.create(j.schema)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := r.pass(ctx, j, r.stage(), w.Append); err != nil {
		return nil, err
	}
	recipe, err := c.recipe(j.pipeline)
	if err != nil {
		return nil, err
	}
	return w.Commit(store.Info{
		Recipe: recipe, Source: r.books.source(r.info), Skipped: r.books.skipped,
		NormalizeByStatistics: c.Normalize.Dataset,
	})
}

// stage names the pass that writes, for the progress.
func (r *run) stage() string {
	if r.config.Normalize.Name == "dataset" && r.config.DType != tensor.Uint8 {
		return "writing (2 of 2)"
	}
	return "writing"
}

func (r *run) create(s store.Schema) (store.Writer, error) {
	if r.config.format() == formatHDF5 {
		return hdf5.Create(r.config.Dest, s, hdf5.Options{Records: r.info.Count - r.skip, Overwrite: r.config.Overwrite})
	}
	return store.CreateFlat(r.config.Dest, s, store.FlatOptions{ShardBytes: r.config.ShardBytes, Overwrite: r.config.Overwrite})
}

// pass sends every sample through the workers and the good records, in order, to add.
func (r *run) pass(ctx context.Context, j *job, what string, add func(*store.Record) error) error {
	r.books = newBooks()
	workers := make([]*worker, r.config.Workers)
	for i := range workers {
		workers[i] = newWorker(j)
		defer workers[i].close()
	}
	r.progress.Begin(what, r.info.Count, "images")
	defer r.progress.End()
	return newRing(j.schema, len(workers)).run(ctx, r.src.Samples(), workers, func(s *slot) error {
		r.progress.Add(1)
		r.books.enter(s)
		if s.bad == nil {
			return add(s.record)
		}
		return r.leaveOut(s)
	})
}

// leaveOut enters a sample that cannot be used, or makes it the error.
func (r *run) leaveOut(s *slot) error {
	if !r.config.Skip {
		return fmt.Errorf("%s: %w; --on-error skip leaves such samples out", s.sample.Name, s.bad)
	}
	r.books.skip(s)
	return nil
}

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

// explain gives an error what only the run as a whole knows.
func (r *run) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		done := int64(0)
		if r.books != nil {
			done = r.books.samples
		}
		return fmt.Errorf("%w after %d of %d images; nothing was written to %s", err, done, r.info.Count, r.config.Dest)
	}
	return explainSpace(err, r.config.Dest, r.need)
}
