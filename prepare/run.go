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

// run makes one dataset of a source.
type run struct {
	setup
	src  source.Source
	info source.Info // with the meanings that the Config declares
	task task

	undeclared error     // why it has not these
	commits    committer // the run, or the part that it makes

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
	// commit gives a good record to the writer, or leaves it out.
	commit(j *execute.Job, w store.Writer, s *execute.Slot) error
	// omit records a sample that cannot be used.
	omit(s *execute.Slot)
	// allowsEmpty reports whether a run without records is a success.
	allowsEmpty() bool
}

// newRun returns a run that makes a whole dataset.
func newRun(c setup, src source.Source) *run {
	r := &run{setup: c, src: src}
	r.commits = r
	r.info, r.undeclared = kinds.Declare(src.Info(), c.Fields, c.Instances)
	if r.info.Records != "" && c.Records == "" && c.Align == "" {
		r.Records = r.info.Records // so that the recipe says what was found out
	}
	if !c.Append { // which makes records as those that are there were made
		r.Images = c.Images.For(r.info.Fields, nil)
	}
	return r
}

// run measures before it writes where --normalize dataset asks for it: mean and deviation are part of how a record is
// made, so the source is read twice.
func (r *run) run(ctx context.Context) (*store.Manifest, error) {
	if err := r.setNormalizeSplit(); err != nil {
		return nil, err
	}
	if err := r.measurePixels(ctx); err != nil {
		return nil, err
	}
	if err := r.measureArrays(ctx); err != nil {
		return nil, err
	}
	return r.write(ctx)
}

// write plans the records, opens the writer, executes the samples, and commits the dataset. The manifest is nil if
// there are no records and the run may end without records.
func (r *run) write(ctx context.Context) (m *store.Manifest, err error) {
	j, err := r.planRecords(ctx)
	if err != nil {
		return nil, err
	}
	w, err := r.open(j)
	if err != nil {
		return nil, err
	}
	if err = r.execute(ctx, j, w); err == nil {
		m, err = r.publish(ctx, j, w)
	}
	return m, errors.Join(err, r.leave(w, err))
}

// planRecords determines what records look like, and makes sure that there is space for them.
func (r *run) planRecords(ctx context.Context) (*execute.Job, error) {
	j, err := r.newJob(ctx, r.Images)
	if err != nil {
		return nil, err
	}
	if err := r.knowBase(ctx, j); err != nil {
		return nil, err
	}
	r.setSpace(j.Schema)
	if !r.Resume { // nothing is on the disk
		err = r.space.check(0)
	}
	return j, err
}

// execute appends all records.
func (r *run) execute(ctx context.Context, j *execute.Job, w store.Writer) error {
	r.log = newRunLog(r.Config)
	if r.log.stratum = j.Stratum.Name; r.placed != nil {
		r.log.splitter = r.placed
	}
	if r.Resume && r.DatasetFormat() != part.HDF5 { // which has its space
		if err := r.space.check(w.Kept().Records); err != nil {
			return err
		}
	}
	samples, err := r.samples(j, w)
	if err != nil {
		return err
	}
	keep := newCheckpointer(r, w)
	err = r.pass(ctx, j, r.stage(), samples, func(s *execute.Slot) error {
		if s.Block != nil {
			return errors.Join(write.AppendBlock(w, s.Block.Records), keep.now())
		}
		if err := r.commits.commit(j, w, s); err != nil {
			return err
		}
		return keep.now()
	})
	if errors.Is(err, producer.ErrGone) && r.log.records() > 0 { // all that it has sent is worth keeping
		err = errors.Join(err, keep.save())
	}
	return err
}

// publish commits the dataset, unless all samples were left out: an empty dataset cannot be.
func (r *run) publish(ctx context.Context, j *execute.Job, w store.Writer) (*store.Manifest, error) {
	recipe, err := r.recipeOf(j)
	if err != nil || r.log.records() == 0 && r.commits.allowsEmpty() {
		return nil, err
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

// manifestInfo returns the metadata that the manifest has about the records.
func (r *run) manifestInfo(recipe *store.Recipe) store.Info {
	info := store.Info{
		Recipe: recipe, Source: r.log.source(r.info), Skipped: r.log.listed(),
		NormalizeByStatistics: r.Images.Normalize.OfImages(), NormalizeSplit: r.NormalizeSplit,
	}
	if r.collected != nil {
		info.Recipe, info.Source, info.Skipped = r.collected.Recipe, r.collected.Source, r.collected.Skipped
		info.Recipe.Options["shuffle"] = r.Shuffle.String()
	}
	return info
}

// commit implements committer: it leaves out a record if an earlier record has the same content.
func (r *run) commit(j *execute.Job, w store.Writer, s *execute.Slot) error {
	if repeated, err := r.duplicate(s); repeated {
		return err
	}
	split, err := r.splitOf(j, s)
	if err != nil {
		return err
	}
	s.Record.Split = split
	return w.Append(s.Record)
}

func (*run) omit(*execute.Slot) {}
func (*run) allowsEmpty() bool  { return false }

// samples returns the samples of the run, in blocks if that makes no difference.
func (r *run) samples(j *execute.Job, w store.Writer) (iter.Seq2[source.Sample, error], error) {
	if blocks, ok := r.blocks(j); ok && !w.Kept().Resumed {
		return blocks, nil
	}
	samples, err := r.resume(w)
	return r.ahead(j, samples), err
}

// ahead has samples read before workers want them, where the source takes its time.
func (r *run) ahead(j *execute.Job, samples iter.Seq2[source.Sample, error]) iter.Seq2[source.Sample, error] {
	if !vfs.Mounted(r.Source) || len(j.Source) == 0 {
		return samples
	}
	return source.Prefetch(samples, len(j.Source), readAhead)
}

// stage names the pass that writes, for the progress.
func (r *run) stage() string {
	switch {
	case r.task.stage != "":
		return r.task.stage
	case r.Images.Own != nil, r.Images.Normalize.Name == "dataset" && !r.Images.Normalize.Dataset:
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
	return execute.Run(ctx, j, r.Workers, r.Memory, samples, commit)
}

// LeaveOut ends the error of a sample that cannot be used: it says how such samples are left out.
const LeaveOut = "; use --on-error skip to leave out such samples"

// leaveOut enters a sample that cannot be used, or makes it the error.
func (r *run) leaveOut(s *execute.Slot) error {
	missing := errors.Is(s.Err, source.ErrMissing)
	switch {
	case r.Skip, missing && r.Missing == column.MissingSkip:
	case errors.Is(s.Err, source.ErrNoImage):
		return fmt.Errorf("%s: %w; use --missing skip to leave out such samples; of the type images, a record may have none: "+
			"%s", called(s.Sample.Name), s.Err, column.WithImages(r.info.Fields))
	case missing:
		return fmt.Errorf("%s: %w; use --missing nan, a value or skip: they fill in such values, or leave out such samples",
			called(s.Sample.Name), s.Err)
	default:
		return fmt.Errorf("%s: %w%s", called(s.Sample.Name), s.Err, LeaveOut)
	}
	r.log.skip(s)
	r.commits.omit(s)
	if n := int64(len(r.log.skipped)); r.MaxErrors.exceeded(n, r.log.samples, r.info.Count) {
		return fmt.Errorf("%d of %d samples so far cannot be used, more than --max-errors %v; the last: %s: %w", n,
			r.log.samples, r.MaxErrors, called(s.Sample.Name), s.Err)
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
	what := "nothing was written to " + r.Dest
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
	err = explainSpace(err, r.Dest, r.space.room)
	if r.kept > 0 {
		return fmt.Errorf("%w; %s", err, what)
	}
	return err
}

// newJob returns the work on every sample of the source, which makes records of one schema.
func (r *run) newJob(ctx context.Context, images Images) (*execute.Job, error) {
	if r.task.job != nil {
		return r.task.job, nil
	}
	if r.undeclared != nil {
		return nil, r.undeclared
	}
	read := field.Read(r.info.Fields)
	fields, joints, err := images.Jobs(read, r.base)
	if err != nil {
		return nil, err
	}
	if err := field.CheckSizes(fields, read, r.Memory); err != nil {
		return nil, err
	}
	field.LimitDecoding(fields, r.Memory)
	j := &execute.Job{Source: r.info.Fields, Fields: fields, Joints: joints, Options: images,
		Digest: r.Split != nil || r.Dedup}
	if j.Named, err = r.storesNames(); err != nil {
		return nil, err
	}
	if err = r.setSchema(ctx, j); err == nil {
		j.Stratum, err = r.Stratify.Find(j.Schema, r.labels())
	}
	return j, err
}

// setSchema takes the shape of records from the first sample, in order, that can be used. It decodes the sample and
// does not trust headers alone, as the header of a corrupt image would then decide the size of all other images.
func (r *run) setSchema(ctx context.Context, j *execute.Job) error {
	w := execute.NewWorker(j)
	r.log = newRunLog(r.Config)
	for sample, err := range r.src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		s := &execute.Slot{Sample: sample}
		if s.Err = w.Probe(s); s.Err == nil {
			return j.Schema.Validate()
		}
		if err := r.leaveOut(s); err != nil {
			return err
		}
	}
	kept, err := keptSchema(r.setup)
	switch skipped := r.log.skipped; {
	case err != nil || len(kept.Fields) > 0 && len(skipped) == 0:
		j.Schema = kept
		return err
	case r.producer != nil && r.Rank.Size > 0:
		return j.Guess(r.info.Name)
	case len(skipped) == 0:
		return errors.New("there are no samples")
	default:
		return fmt.Errorf("no usable sample among %d; the first: %s: %s", len(skipped), shell.Line(skipped[0].Sample),
			shell.Line(skipped[0].Reason))
	}
}
