package prepare

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/kinds"
	"github.com/penstock/penstock/store"
)

// runPart makes the part c.World of the dataset. It may be killed, run again and
// run twice: it keeps a part that is complete, and continues one that was begun.
func runPart(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	if err := checkPartPlaces(c); err != nil {
		return nil, err
	}
	progress.Note(c.Rank.Note())
	turn, err := takeTurn(ctx, c, progress)
	if err != nil {
		return nil, err
	}
	defer turn.End()
	return makePart(ctx, c, turn, progress)
}

// makePart is runPart in its turn.
func makePart(ctx context.Context, c Config, turn *part.Turn, progress Progress) (*Summary, error) {
	begin := time.Now()
	c.attempt = turn.Attempt(c.Rank.Path(c.Dest))
	if c.producer != nil {
		if s, err := producedBefore(c, turn, progress); s != nil || err != nil {
			return s, err
		}
	}
	src, err := openSource(ctx, c, progress)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r := &rankRun{run: newRun(c, src, progress), turn: turn}
	r.run.task = task{stage: fmt.Sprintf("part %d of %d", c.Rank.Index, c.Rank.Size), quiet: true}
	if c.Rank.Index == 0 {
		progress.Note(fieldReport{r.run.config, r.run.info}.String())
	}
	m, err := r.makePart(ctx)
	if err != nil {
		return nil, r.run.explain(ctx, err)
	}
	return newPartSummary(r.run, r.part, m, time.Since(begin))
}

// rankRun makes one part. It commits the traces of samples with the records; the merge decides
// which of these the dataset has.
type rankRun struct {
	run    *run
	turn   *part.Turn
	part   *part.Part
	traces part.TraceLog
}

// takeTurn waits until no other process of this machine makes the part.
func takeTurn(ctx context.Context, c Config, progress Progress) (*part.Turn, error) {
	folder, name := part.Folder(c.Dest), part.Name(c.Rank.Index, c.Rank.Size)
	return part.Take(ctx, folder, name, func() {
		progress.Warn(fmt.Sprintf("another process makes part %d of %d; waiting for it", c.Rank.Index, c.Rank.Size))
	})
}

// add implements committer.
func (r *rankRun) add(j *execute.Job, w store.Writer, s *execute.Slot) error {
	last := len(j.Schema.Fields) - 1
	t, d := traceOf(s), digest.Of(s.Record)
	for i := range last {
		t.Values = append(t.Values, part.Value{CRC32C: d.Value(i).CRC32C, Rows: int64(d.Rows(i, j.Schema.Fields[i].Spec))})
	}
	s.Record.Values[last] = r.traces.Record(s.Record.Values[last][:0], t)
	d.Summarize(last, j.Schema.Fields[last].Spec)
	s.Record.Split = ""
	return w.Append(s.Record)
}

// skip implements committer.
func (r *rankRun) skip(s *execute.Slot) {
	t := traceOf(s)
	t.Bad = &part.SkipReason{Kind: kindOf(s.Err), Text: s.Err.Error()}
	r.traces.Skip(t)
}

// allowsEmpty implements committer: the samples of one rank may all be bad.
func (r *rankRun) allowsEmpty() bool { return true }

func traceOf(s *execute.Slot) part.Trace {
	return part.Trace{Name: s.Sample.Name, Split: s.Sample.Split, Size: s.Size, CRC: s.CRC, Digest: s.Digest}
}

// checkPartPlaces checks source and destination. The merge writes the
// destination itself.
func checkPartPlaces(c Config) error {
	if c.producer == nil {
		if err := kinds.Check(c.Source, c.From); err != nil {
			return err
		}
		for _, dest := range []string{c.Dest, part.Folder(c.Dest)} {
			if err := checkApart(c.Source, dest); err != nil {
				return err
			}
		}
	}
	if _, err := os.Lstat(c.Dest); err == nil && !c.Overwrite {
		return fmt.Errorf("%s %w already; choose another name, or use --overwrite", c.Dest, store.ErrExist)
	}
	return part.MakeFolder(part.Folder(c.Dest))
}

// makePart makes the part, or finds it complete. The manifest is nil if it has no records.
func (r *rankRun) makePart(ctx context.Context) (*store.Manifest, error) {
	ordered, err := planning{r.run}.orderSamples(ctx)
	if err != nil {
		return nil, err
	}
	j, err := r.run.newJob(ctx, r.run.config)
	if err == nil {
		err = measuring{r.run}.needsFigures(j)
	}
	if err != nil {
		return nil, err
	}
	if err := (measuring{r.run}).setNormalizeSplit(); err != nil {
		return nil, err
	}
	plan, err := planning{r.run}.newPlan(ctx, j, ordered)
	if err != nil {
		return nil, err
	}
	w := r.run.config.Rank
	p := &part.Part{Plan: plan, Rank: w.Index, Path: w.Path(r.run.config.Dest)}
	p.From, p.To = w.Span(r.run.info.Count)
	for _, path := range r.run.config.partPlaces(p) {
		if old, err := p.Same(path); err != nil || old != nil {
			return r.made(old, err)
		}
	}
	j.Schema.Fields = append(append([]store.Field(nil), j.Schema.Fields...), part.TraceField())
	r.run.task.job, r.run.task.first, r.part, r.run.commits = j, p.From, p, r
	return r.writePart(ctx)
}

// needsFigures refuses options that depend on all samples.
func (m measuring) needsFigures(j *execute.Job) error {
	n := m.run.config.Images.Normalize
	if m.measures() {
		return errFigures
	}
	if !n.Dataset || n.Fields == nil && slices.ContainsFunc(m.run.info.Fields, field.HasPixels) {
		return nil
	}
	list, err := m.run.config.Images.Measures(j.Fields, j.Source, j.Schema)
	if err == nil && len(list) > 0 {
		err = errFigures
	}
	return err
}

// partPlaces lists the places where a part may exist; none if it is to be made in any case.
func (c Config) partPlaces(p *part.Part) (list []string) {
	if c.Overwrite {
		return nil
	}
	if list = []string{p.Path}; c.partsAt != "" {
		list = append(list, filepath.Join(c.partsAt, filepath.Base(p.Path)))
	}
	return list
}

// orderSamples puts the samples into the order of the dataset, if the source can be
// read in any; otherwise the merge does.
func (p planning) orderSamples(ctx context.Context) (ordered bool, err error) {
	indexed, ok := p.run.src.(source.Indexed)
	if !p.run.config.Shuffle.Set || !ok {
		return false, nil
	}
	if err := verifySource(ctx, p.run.src, p.run.progress); err != nil {
		return false, err
	}
	p.run.src = shuffled{indexed, newOrder(p.run.info.Count, p.run.config.Shuffle.Seed)}
	return true, nil
}

// made makes r describe a part that existed already, and returns its manifest.
func (r *rankRun) made(p *part.Part, err error) (*store.Manifest, error) {
	if err != nil {
		return nil, err
	}
	r.part, r.run.log = p, newRunLog(r.run.config)
	r.run.log.samples, r.run.log.bytes = p.To-p.From, p.Bytes
	r.run.info.Hints = append(r.run.info.Hints, completeHint)
	if !vfs.Mounted(p.Path) {
		if err := r.turn.Tidy(p.Path); err != nil {
			return nil, err
		}
	}
	return p.Manifest()
}

// writePart makes the records of the part, under a name that no other machine uses, and publishes it when they are
// there.
func (r *rankRun) writePart(ctx context.Context) (*store.Manifest, error) {
	p, c := r.part, &r.run.config
	overwrite, dest := c.Overwrite, c.Dest
	c.MaxErrors = c.MaxErrors.of(r.run.info.Count)
	r.run.task.inputs = fmt.Sprintf("samples %d to %d of %d for %s", p.From, p.To, r.run.info.Count, c.DatasetFormat())
	c.Split, c.Stratify, c.Dedup, c.Shuffle = nil, field.Strata{}, false, Seed{}
	c.Dest, c.Format = c.attempt, part.Flat
	c.uploader.Build(c.Dest)
	c.Resume, c.Overwrite = !overwrite, true
	if r.run.config.producer == nil { // one sends the samples of the part, and no others
		r.run.src = span{r.run.src, p.From, p.To}
	}
	r.run.info.Count, r.run.info.Splits = p.To-p.From, nil
	m, err := r.run.write(ctx)
	if err == nil && m == nil {
		err = r.run.config.discard()
	}
	c.Dest = dest
	if err != nil {
		return nil, err
	}
	if m != nil {
		p.ID, p.Records = m.ID, m.Records
	}
	if r.run.log.samples != p.To-p.From {
		return nil, fmt.Errorf("the source has fewer samples than the %d that it had when it was looked at",
			p.Plan.Source.Samples)
	}
	p.Bytes, p.Tail = r.run.log.bytes, r.traces.Tail(nil)
	return m, p.Publish(r.turn, overwrite)
}

// span is the samples [from, to) of a source.
type span struct {
	source.Source
	from, to int64
}

// Samples implements source.Source.
func (s span) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		if s.from == s.to {
			return
		}
		i := s.from
		for sample, err := range source.From(s.Source, s.from) {
			if !yield(sample, err) || err != nil {
				return
			}
			if i++; i == s.to {
				return
			}
		}
	}
}

// newPartSummary describes the part that r has made, or found.
func newPartSummary(r *run, p *part.Part, m *store.Manifest, took time.Duration) (*Summary, error) {
	c, dest := r.config, r.config.Dest
	c.Dest, c.Format = p.Path, part.Flat
	s, err := newSummary(c, r, m, took)
	if err != nil {
		return nil, err
	}
	if n := len(s.Fields); n > 0 && s.Fields[n-1].Name == part.TraceFieldName {
		s.Fields = s.Fields[:n-1]
	}
	s.Part = &PartSummary{p.Rank, p.Plan.Size, p.From, p.To, p.Plan.Source.Samples, dest}
	return s, nil
}
