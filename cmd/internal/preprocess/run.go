package preprocess

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/shell"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// run is one run of the command.
type run struct {
	config    Config
	src       source.Source
	info      source.Info
	progress  Progress
	collector *books              // of the pass before the records were shuffled, whose samples were left out too
	noList    bool                // write no list of skipped samples
	stageName string              // what writing is called; "" for the usual
	base      *store.Manifest     // of the dataset that is appended to
	collected *store.Manifest     // of the records before they were shuffled
	held      *os.Root            // where these are, see hold
	books     *books              // of the last pass
	skip      int64               // samples that the pass before left out
	need      int64               // bytes of the whole dataset, once it is known
	kept      int64               // records that a later run can go on behind
	resumed   int64               // records of a run before this one
	job       *job                // what records look like, where that is known beforehand
	recipe    *store.Recipe       // of the job
	part      *part               // that is made, instead of a dataset
	there     map[digest]struct{} // what the records of base hold, where duplicates are looked for
	inputs    string              // what else a run must have in common with one that it continues
}

func (r *run) run(ctx context.Context) (*store.Manifest, error) {
	if err := r.setNormalizeSplit(); err != nil {
		return nil, err
	}
	if r.measures() {
		n, err := r.measure(ctx)
		if err != nil {
			return nil, err
		}
		r.config.Normalize.Mean, r.config.Normalize.Std = n.Mean, n.Std
		r.config.Normalize.Dataset = false
	}
	if err := r.measureArrays(ctx); err != nil {
		return nil, err
	}
	return r.write(ctx)
}

// measures reports whether the figures of the dataset are needed before it is written.
func (r *run) measures() bool {
	c := r.config
	return c.Normalize.ofImages() && c.images().DType != tensor.Uint8 && c.Transforms == nil && slices.ContainsFunc(r.info.Fields, ofPixels)
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
		return nil, errors.New("--normalize dataset: --keep-encoded leaves the images as they are")
	}
	ledger, sums := store.NewLedger(j.schema), make([]uint32, len(j.schema.Fields))
	err = r.measurePass(ctx, j, func(rec *store.Record) error {
		rec.Split = ""
		return ledger.Add(rec, sums)
	})
	if err != nil {
		return nil, err
	}
	return ledger.Manifest(store.Info{NormalizeByStatistics: true}).Fields[at].Normalization, nil
}

// write runs over the source and commits the dataset.
func (r *run) write(ctx context.Context) (*store.Manifest, error) {
	j, err := r.newJob(ctx, r.config)
	if err != nil {
		return nil, err
	}
	if r.base != nil && r.config.Dedup {
		if r.there, err = r.contents(ctx); err != nil {
			return nil, err
		}
		j.stored = true
	}
	r.need = max(0, r.info.Count-r.skip) * int64(j.schema.RecordBytes())
	w, err := r.create(j)
	if err != nil {
		return nil, err
	}
	m, err := r.fill(ctx, j, w)
	return m, errors.Join(err, r.leave(w, err))
}

// fill appends all records and commits.
func (r *run) fill(ctx context.Context, j *job, w store.Writer) (*store.Manifest, error) {
	r.books = newBooks(r.config)
	samples, err := r.resume(w)
	if err != nil {
		return nil, err
	}
	keep := newKeeper(r, w)
	err = r.pass(ctx, j, r.stage(), samples, func(s *slot) error {
		if err := r.append(j, w, s); err != nil {
			return err
		}
		return keep.now()
	})
	if err != nil {
		return nil, err
	}
	recipe, err := r.recipeOf(j)
	if err != nil {
		return nil, err
	}
	if r.part != nil && r.books.records() == 0 {
		return nil, nil // all of them were left out, and an empty dataset cannot be
	}
	if err := r.writeSkipped(); err != nil {
		return nil, err
	}
	stopWith(ctx, w)
	m, err := w.Commit(r.manifestInfo(recipe))
	if err != nil && r.kept == 0 && r.resumed == 0 {
		err = errors.Join(err, r.removeSkipped())
	}
	return m, err
}

// manifestInfo returns what the manifest says beside the records.
func (r *run) manifestInfo(recipe *store.Recipe) store.Info {
	info := store.Info{
		Recipe: recipe, Source: r.books.source(r.info), Skipped: r.books.listed(),
		NormalizeByStatistics: r.config.Normalize.ofImages(), NormalizeSplit: r.config.NormalizeSplit,
	}
	if r.collected != nil {
		info.Recipe, info.Source, info.Skipped = r.collected.Recipe, r.collected.Source, r.collected.Skipped
		info.Recipe.Options["shuffle"] = r.config.Shuffle.String()
	}
	return info
}

// append gives a good record to the writer, unless its content was there before.
func (r *run) append(j *job, w store.Writer, s *slot) error {
	if r.part != nil {
		return r.appendTraced(j, w, s)
	}
	if repeated, err := r.duplicate(s); repeated {
		return err
	}
	s.record.Split = r.splitOf(j, s)
	return w.Append(s.record)
}

// splitOf returns the split of the next record, "" without splits.
func (r *run) splitOf(j *job, s *slot) string {
	if r.config.Split != nil {
		return r.books.splitter.choose(s.digest[:], j.class(s.record))
	}
	return s.sample.Split
}

// stage names the pass that writes, for the progress.
func (r *run) stage() string {
	switch {
	case r.stageName != "":
		return r.stageName
	case r.config.standardize != nil, r.config.Normalize.Name == "dataset" && !r.config.Normalize.Dataset:
		return "writing (2 of 2)"
	}
	return "writing"
}

// pass sends every sample through the workers and the good ones, in order, to add. r.books
// begins with what a run before this one has done.
func (r *run) pass(ctx context.Context, j *job, what string, samples iter.Seq2[source.Sample, error], add func(*slot) error) error {
	workers := make([]*worker, r.config.Workers)
	for i := range workers {
		workers[i] = newWorker(j)
	}
	r.progress.Begin(what, r.info.Count, r.info.Unit)
	defer r.progress.End()
	r.progress.Add(r.books.samples)
	if vfs.Mounted(r.config.Source) && len(j.source) > 0 {
		samples = source.Ahead(samples, len(j.source), readAhead)
	}
	commit := func(s *slot) error {
		r.progress.Add(1)
		r.books.enter(s)
		if s.bad == nil {
			return add(s)
		}
		return r.leaveOut(s)
	}
	return newRing(j.schema, len(workers), r.config.Memory, commit).run(ctx, samples, workers)
}

// leaveOut enters a sample that cannot be used, or makes it the error.
func (r *run) leaveOut(s *slot) error {
	if !r.config.Skip {
		return fmt.Errorf("%s: %w; --on-error skip leaves such samples out", called(s.sample.Name), s.bad)
	}
	r.books.skip(s)
	if r.part != nil {
		r.books.leave(s)
	}
	if n := int64(len(r.books.skipped)); r.config.MaxErrors.exceeded(n, r.books.samples, r.info.Count) {
		return fmt.Errorf("%d of %d samples so far cannot be used, more than --max-errors %v; the last: %s: %w", n, r.books.samples, r.config.MaxErrors, called(s.sample.Name), s.bad)
	}
	return nil
}

// called returns the name of a sample for a sentence, as some are but numbers.
func called(name string) string {
	if strings.Trim(name, "0123456789") == "" {
		return "sample " + name
	}
	return shell.Line(name)
}

// explain gives an error what only the run as a whole knows.
func (r *run) explain(ctx context.Context, err error) error {
	what := "nothing was written to " + r.config.Dest
	if r.kept > 0 {
		what = fmt.Sprintf("%d records are kept, and --resume goes on behind them", r.kept)
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		done := int64(0)
		if r.books != nil {
			done = r.books.samples
		}
		return fmt.Errorf("%w after %d of %d %s; %s", err, done, r.info.Count, r.info.Unit, what)
	}
	err = explainSpace(err, r.config.Dest, r.need)
	if r.kept > 0 {
		return fmt.Errorf("%w; %s", err, what)
	}
	return err
}
