package preprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
)

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
	if r.config.Normalize.Dataset && r.config.images().DType != tensor.Uint8 {
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
	at := slices.IndexFunc(j.schema.Fields, func(f store.Field) bool { return f.Layout != "" })
	if at < 0 {
		return nil, errors.New("--normalize dataset: the source has no images")
	}
	ledger, sums := store.NewLedger(j.schema), make([]uint32, len(j.schema.Fields))
	err = r.pass(ctx, j, "measuring (1 of 2)", func(rec *store.Record) error { return ledger.Add(rec, sums) })
	if err != nil {
		return nil, err
	}
	r.skip = int64(len(r.books.skipped))
	return ledger.Manifest(store.Info{NormalizeByStatistics: true}).Fields[at].Normalization, nil
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
	recipe, err := c.recipe(j)
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
	if r.config.Normalize.Name == "dataset" && r.config.images().DType != tensor.Uint8 {
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
	r.progress.Begin(what, r.info.Count, r.info.Unit)
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

// explain gives an error what only the run as a whole knows.
func (r *run) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		done := int64(0)
		if r.books != nil {
			done = r.books.samples
		}
		return fmt.Errorf("%w after %d of %d %s; nothing was written to %s", err, done, r.info.Count, r.info.Unit, r.config.Dest)
	}
	return explainSpace(err, r.config.Dest, r.need)
}
