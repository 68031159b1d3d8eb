package prepare

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/kinds"
	"github.com/penstock/penstock/prepare/source/producer"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// run is one run of the command.
type run struct {
	config   Config
	src      source.Source
	info     source.Info // with the meanings that the Config declares
	progress Progress

	undeclared error // why it has not these
	commits    committer
	task       task

	base      *store.Manifest    // of the dataset that is appended to
	there     *samples.DigestSet // what the records of base hold, where duplicates are looked for
	placed    *samples.Splitter  // with the records of base, for --stratify
	collected *store.Manifest    // of the records before they were shuffled
	collector *runLog            // of the pass before the records were shuffled, whose samples were left out too

	log     *runLog // of the last pass
	skip    int64   // samples that the pass before left out
	space   space   // that writing takes
	kept    int64   // records after which a later run can continue
	resumed int64   // records of a run before this one
}

// task configures a run for a larger job, such as a shuffle, a rank or a merge. The zero value is a stand-alone run.
type task struct {
	stage  string                       // what writing is called; "" for the usual
	quiet  bool                         // write no list of skipped samples
	first  int64                        // place of its first sample in the source
	inputs string                       // what else a run must have in common with one that it continues
	job    *execute.Job                 // what records look like, where that is known beforehand
	recipe *store.Recipe                // of the job
	adopt  func() (store.Writer, error) // builds the dataset from existing files; nil: from records
}

// committer decides whether each sample becomes a record, in the order of the source.
type committer interface {
	// add gives a good record to the writer, or leaves it out.
	add(j *execute.Job, w store.Writer, s *execute.Slot) error
	// skip records a sample that cannot be used.
	skip(s *execute.Slot)
	// allowsEmpty reports whether a run without records is a success.
	allowsEmpty() bool
}

// newRun returns a run that makes a whole dataset.
func newRun(c Config, src source.Source, p Progress) *run {
	r := &run{config: c, src: src, progress: p}
	r.info, r.undeclared = kinds.Declare(src.Info(), c.Fields, c.Instances)
	if r.info.Records != "" && c.Records == "" && c.Align == "" {
		r.config.Records = r.info.Records // so that the recipe says what was found out
	}
	if !c.Append { // which makes records as those that are there were made
		r.config.Images = c.Images.For(r.info.Fields, nil)
	}
	r.commits = datasetCommitter{r}
	return r
}

// run measures before it writes where --normalize dataset asks for it: mean and deviation are part of how a record is
// made, so the source is read twice.
func (r *run) run(ctx context.Context) (*store.Manifest, error) {
	if err := (measuring{r}).setNormalizeSplit(); err != nil {
		return nil, err
	}
	if (measuring{r}).measures() {
		n, err := measuring{r}.measure(ctx)
		if err != nil {
			return nil, err
		}
		r.config.Images.Normalize.Mean, r.config.Images.Normalize.Std = n.Mean, n.Std
		r.config.Images.Normalize.Dataset = false
	}
	if err := (measuring{r}).measureArrays(ctx); err != nil {
		return nil, err
	}
	return r.write(ctx)
}

// write runs over the source and commits the dataset.
func (r *run) write(ctx context.Context) (*store.Manifest, error) {
	j, err := r.newJob(ctx, r.config)
	if err != nil {
		return nil, err
	}
	if err := (placing{r}).knowBase(ctx, j); err != nil {
		return nil, err
	}
	r.space = spaceOf(r.config, r.base, r.task.adopt != nil, r.info.Count-r.skip, j.Schema)
	if !r.config.Resume { // nothing is on the disk
		if err := r.space.check(0); err != nil {
			return nil, err
		}
	}
	w, err := writing{r}.create(j)
	if err != nil {
		return nil, err
	}
	m, err := r.fill(ctx, j, w)
	return m, errors.Join(err, writing{r}.leave(w, err))
}

// fill appends all records and commits.
func (r *run) fill(ctx context.Context, j *execute.Job, w store.Writer) (*store.Manifest, error) {
	r.log = newRunLog(r.config)
	if r.log.stratum = j.Stratum.Name; r.placed != nil {
		r.log.splitter = r.placed
	}
	if r.config.Resume && r.config.DatasetFormat() != part.HDF5 { // which has its space
		if err := r.space.check(w.Kept().Records); err != nil {
			return nil, err
		}
	}
	samples, err := r.samples(j, w)
	if err != nil {
		return nil, err
	}
	keep := newCheckpointer(r, w)
	err = r.pass(ctx, j, r.stage(), samples, func(s *execute.Slot) error {
		if s.Block != nil {
			return errors.Join(write.AppendBlock(w, s.Block.Records), keep.now())
		}
		if err := r.commits.add(j, w, s); err != nil {
			return err
		}
		return keep.now()
	})
	if errors.Is(err, producer.ErrGone) && r.log.records() > 0 { // all that it has sent is worth keeping
		err = errors.Join(err, keep.save())
	}
	if err != nil {
		return nil, err
	}
	recipe, err := r.recipeOf(j)
	if err != nil {
		return nil, err
	}
	if r.log.records() == 0 && r.commits.allowsEmpty() {
		return nil, nil // all of them were left out, and an empty dataset cannot be
	}
	if err := (writing{r}).writeSkipped(); err != nil {
		return nil, err
	}
	stopWith(ctx, w)
	m, err := w.Commit(r.manifestInfo(recipe))
	if err != nil && r.kept == 0 && r.resumed == 0 {
		err = errors.Join(err, r.config.removeSkipped())
	}
	return m, err
}

// manifestInfo returns the metadata that the manifest has about the records.
func (r *run) manifestInfo(recipe *store.Recipe) store.Info {
	info := store.Info{
		Recipe: recipe, Source: r.log.source(r.info), Skipped: r.log.listed(),
		NormalizeByStatistics: r.config.Images.Normalize.OfImages(), NormalizeSplit: r.config.NormalizeSplit,
	}
	if r.collected != nil {
		info.Recipe, info.Source, info.Skipped = r.collected.Recipe, r.collected.Source, r.collected.Skipped
		info.Recipe.Options["shuffle"] = r.config.Shuffle.String()
	}
	return info
}

// datasetCommitter commits the records of a dataset.
type datasetCommitter struct{ run *run }

// add implements committer: it leaves out a record if an earlier one has its content.
func (c datasetCommitter) add(j *execute.Job, w store.Writer, s *execute.Slot) error {
	if repeated, err := placing(c).duplicate(s); repeated {
		return err
	}
	split, err := placing(c).splitOf(j, s)
	if err != nil {
		return err
	}
	s.Record.Split = split
	return w.Append(s.Record)
}

func (datasetCommitter) skip(*execute.Slot) {}
func (datasetCommitter) allowsEmpty() bool  { return false }

// samples returns the samples of the run, in blocks if that makes no difference.
func (r *run) samples(j *execute.Job, w store.Writer) (iter.Seq2[source.Sample, error], error) {
	if blocks, ok := r.blocks(j); ok && !w.Kept().Resumed {
		return blocks, nil
	}
	samples, err := r.resume(w)
	return ahead(j, r.config.Source, samples), err
}

// ahead has samples of the source at path read before workers want them, where that takes its time.
func ahead(j *execute.Job, path string, samples iter.Seq2[source.Sample, error]) iter.Seq2[source.Sample, error] {
	if !vfs.Mounted(path) || len(j.Source) == 0 {
		return samples
	}
	return source.Prefetch(samples, len(j.Source), readAhead)
}

// stage names the pass that writes, for the progress.
func (r *run) stage() string {
	switch {
	case r.task.stage != "":
		return r.task.stage
	case r.config.Images.Own != nil, r.config.Images.Normalize.Name == "dataset" && !r.config.Images.Normalize.Dataset:
		return "writing (2 of 2)"
	}
	return "writing"
}

// pass sends every sample through the workers and the good ones, in order, to add. r.log
// begins with the work of an earlier run.
func (r *run) pass(ctx context.Context, j *execute.Job, what string, samples iter.Seq2[source.Sample, error],
	add func(*execute.Slot) error) error {
	r.progress.Begin(what, r.info.Count, r.info.Unit)
	defer r.progress.End()
	r.progress.Add(r.log.samples)
	commit := func(s *execute.Slot) error {
		if s.Block != nil {
			return r.commitBlock(s, add)
		}
		r.progress.Add(1)
		r.log.enter(s)
		if s.Err == nil {
			return add(s)
		}
		return r.leaveOut(s)
	}
	return execute.Run(ctx, j, r.config.Workers, r.config.Memory, samples, commit)
}

// LeaveOut ends the error of a sample that cannot be used: it says how such samples are left out.
const LeaveOut = "; use --on-error skip to leave out such samples"

// leaveOut enters a sample that cannot be used, or makes it the error.
func (r *run) leaveOut(s *execute.Slot) error {
	missing := errors.Is(s.Err, source.ErrMissing)
	switch {
	case r.config.Skip, missing && r.config.Missing == column.MissingSkip:
	case errors.Is(s.Err, source.ErrNoImage):
		return fmt.Errorf("%s: %w; use --missing skip to leave out such samples, or the type :images in "+
			"--fields, of which a record may have none", called(s.Sample.Name), s.Err)
	case missing:
		return fmt.Errorf("%s: %w; use --missing nan, a value or skip: they fill in such values, or leave out such samples",
			called(s.Sample.Name), s.Err)
	default:
		return fmt.Errorf("%s: %w%s", called(s.Sample.Name), s.Err, LeaveOut)
	}
	r.log.skip(s)
	r.commits.skip(s)
	if n := int64(len(r.log.skipped)); r.config.MaxErrors.exceeded(n, r.log.samples, r.info.Count) {
		return fmt.Errorf("%d of %d samples so far cannot be used, more than --max-errors %v; the last: %s: %w", n,
			r.log.samples, r.config.MaxErrors, called(s.Sample.Name), s.Err)
	}
	return nil
}

// called returns the name of a sample for a sentence, because some names are only numbers.
func called(name string) string {
	if strings.Trim(name, "0123456789") == "" {
		return "sample " + name
	}
	return shell.Line(name)
}

// explain adds to an error what only the run as a whole knows.
func (r *run) explain(ctx context.Context, err error) error {
	what := "nothing was written to " + r.config.Dest
	if r.kept > 0 {
		what = fmt.Sprintf("%d records are kept, and --resume continues after them", r.kept)
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		done := int64(0)
		if r.log != nil {
			done = r.log.samples
		}
		of := ""
		if r.info.Count >= 0 {
			of = fmt.Sprintf("of %d ", r.info.Count)
		}
		return fmt.Errorf("%w after %d %s%s; %s", err, done, of, r.info.Unit, what)
	}
	err = explainSpace(err, r.config.Dest, r.space.room)
	if r.kept > 0 {
		return fmt.Errorf("%w; %s", err, what)
	}
	return err
}

// newJob determines the shape of records from the first sample, in order, that can be used. It decodes the sample and
// does not trust headers alone, as the header of a corrupt image would then decide the size of all others.
func (r *run) newJob(ctx context.Context, c Config) (*execute.Job, error) {
	if r.task.job != nil {
		return r.task.job, nil
	}
	if r.undeclared != nil {
		return nil, r.undeclared
	}
	read := field.Read(r.info.Fields)
	fields, joints, err := c.Images.Jobs(read, r.base)
	if err != nil {
		return nil, err
	}
	if err := field.CheckSizes(fields, read, c.Memory); err != nil {
		return nil, err
	}
	field.LimitDecoding(fields, c.Memory)
	j := &execute.Job{Source: r.info.Fields, Fields: fields, Joints: joints, Options: c.Images, Digest: c.Split != nil ||
		c.Dedup}
	if j.Named, err = (writing{r}).storesNames(c); err != nil {
		return nil, err
	}
	w := execute.NewWorker(j)
	r.log = newRunLog(c)
	for sample, err := range r.src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		s := &execute.Slot{Sample: sample}
		if s.Err = w.Probe(s); s.Err == nil {
			j.Stratum, err = c.Stratify.Find(j.Schema, c.labels())
			return j, errors.Join(j.Schema.Validate(), err)
		}
		if err := r.leaveOut(s); err != nil {
			return nil, err
		}
	}
	if kept, err := keptSchema(&r.config); err != nil || len(kept.Fields) > 0 && len(r.log.skipped) == 0 {
		j.Schema = kept
		if err == nil {
			j.Stratum, err = c.Stratify.Find(j.Schema, c.labels())
		}
		return j, err
	}
	if w := r.config.Rank; r.config.producer != nil && w.Size > 0 {
		if err := j.Guess(r.info.Name); err != nil {
			return nil, err
		}
		j.Stratum, err = c.Stratify.Find(j.Schema, c.labels())
		return j, err
	}
	if len(r.log.skipped) == 0 {
		return nil, errors.New("there are no samples")
	}
	first := r.log.skipped[0]
	return nil, fmt.Errorf("no usable sample among %d; the first: %s: %s", len(r.log.skipped), shell.Line(first.Sample),
		shell.Line(first.Reason))
}
