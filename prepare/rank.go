package prepare

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
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

// runPart makes the part c.Rank of the dataset. It may be killed, run again and
// run twice: it keeps a part that is complete, and continues one that was begun.
func runPart(ctx context.Context, c setup) (*Summary, error) {
	if err := checkPartPlaces(c); err != nil {
		return nil, err
	}
	c.progress.Note(c.Rank.Note())
	turn, err := part.Take(ctx, part.Folder(c.Dest), part.Name(c.Rank.Index, c.Rank.Size), func() {
		c.progress.Warn(fmt.Sprintf("another process makes part %d of %d; waiting for it", c.Rank.Index, c.Rank.Size))
	})
	if err != nil {
		return nil, err
	}
	defer turn.End()
	return makePart(ctx, c, turn)
}

// makePart is runPart in its turn.
func makePart(ctx context.Context, c setup, turn *part.Turn) (*Summary, error) {
	begin := time.Now()
	c.attempt = turn.Attempt(c.Rank.Path(c.Dest))
	if c.producer != nil {
		if s, err := producedBefore(c, turn); s != nil || err != nil {
			return s, err
		}
	}
	src, err := openSource(ctx, c)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r := &partRun{run: newRun(c, src), turn: turn}
	r.task = task{stage: fmt.Sprintf("part %d of %d", c.Rank.Index, c.Rank.Size), quiet: true}
	if c.Rank.Index == 0 {
		c.progress.Note(fieldReport{r.Config, r.info}.String())
	}
	m, err := r.makePart(ctx)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return r.summary(m, time.Since(begin))
}

// partRun makes one part. It commits the traces of samples with the records; the merge decides
// which of these the dataset has.
type partRun struct {
	*run
	turn   *part.Turn
	part   *part.Part
	traces part.TraceLog
}

// commit implements committer.
func (r *partRun) commit(j *execute.Job, w store.Writer, s *execute.Slot) error {
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

// omit implements committer.
func (r *partRun) omit(s *execute.Slot) {
	t := traceOf(s)
	t.Bad = &part.SkipReason{Kind: kindOf(s.Err), Text: s.Err.Error()}
	r.traces.Skip(t)
}

// allowsEmpty implements committer: the samples of one rank may all be bad.
func (r *partRun) allowsEmpty() bool { return true }

func traceOf(s *execute.Slot) part.Trace {
	return part.Trace{Name: s.Sample.Name, Split: s.Sample.Split, Size: s.Size, CRC: s.CRC, Digest: s.Digest}
}

// checkPartPlaces checks source and destination. The merge writes the
// destination itself.
func checkPartPlaces(c setup) error {
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
func (r *partRun) makePart(ctx context.Context) (*store.Manifest, error) {
	ordered, err := r.orderSamples(ctx)
	if err != nil {
		return nil, err
	}
	j, err := r.newJob(ctx, r.Images)
	if err == nil {
		err = r.needsFigures(j)
	}
	if err == nil {
		err = r.setNormalizeSplit()
	}
	if err != nil {
		return nil, err
	}
	plan, err := r.newPlan(ctx, j, ordered)
	if err != nil {
		return nil, err
	}
	p := &part.Part{Plan: plan, Rank: r.Rank.Index, Path: r.Rank.Path(r.Dest)}
	p.From, p.To = r.Rank.Span(r.info.Count)
	for _, path := range r.partPlaces(p) {
		if old, err := p.Same(path); err != nil || old != nil {
			return r.made(old, err)
		}
	}
	j.Schema.Fields = append(append([]store.Field(nil), j.Schema.Fields...), part.TraceField())
	r.task.job, r.task.first, r.part, r.commits = j, p.From, p, r
	return r.writePart(ctx)
}

// partPlaces lists the places where a part may exist; none if it is to be made in any case.
func (c setup) partPlaces(p *part.Part) (list []string) {
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
func (r *partRun) orderSamples(ctx context.Context) (ordered bool, err error) {
	if _, indexed := r.src.(source.Indexed); !r.Shuffle.Set || !indexed {
		return false, nil
	}
	return true, r.shuffle(ctx)
}

// made makes r describe a part that existed already, and returns its manifest.
func (r *partRun) made(p *part.Part, err error) (*store.Manifest, error) {
	if err != nil {
		return nil, err
	}
	r.part, r.log = p, newRunLog(r.Config)
	r.log.samples, r.log.bytes = p.To-p.From, p.Bytes
	r.info.Hints = append(r.info.Hints, completeHint)
	if !vfs.Mounted(p.Path) {
		if err := r.turn.Tidy(p.Path); err != nil {
			return nil, err
		}
	}
	return p.Manifest()
}

// writePart makes the records of the part, under a name that no other machine uses, and publishes it when they are
// there.
func (r *partRun) writePart(ctx context.Context) (*store.Manifest, error) {
	p, overwrite, dest := r.part, r.Overwrite, r.Dest
	r.MaxErrors = r.MaxErrors.of(r.info.Count)
	r.task.inputs = fmt.Sprintf("samples %d to %d of %d for %s", p.From, p.To, r.info.Count, r.DatasetFormat())
	r.Split, r.Stratify, r.Dedup, r.Shuffle = nil, field.Strata{}, false, Seed{}
	r.Dest, r.Format = r.attempt, part.Flat
	r.uploader.Build(r.Dest)
	r.Resume, r.Overwrite = !overwrite, true
	if r.producer == nil { // one sends the samples of the part, and no others
		r.src = span{r.src, p.From, p.To}
	}
	r.info.Count, r.info.Splits = p.To-p.From, nil
	m, err := r.write(ctx)
	if err == nil && m == nil {
		err = r.discard()
	}
	r.Dest = dest
	if err != nil {
		return nil, err
	}
	if m != nil {
		p.ID, p.Records = m.ID, m.Records
	}
	if r.log.samples != p.To-p.From {
		return nil, fmt.Errorf("the source has fewer samples than the %d that it had when it was looked at",
			p.Plan.Source.Samples)
	}
	p.Bytes, p.Tail = r.log.bytes, r.traces.Tail(nil)
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

// summary describes the part that was made, or found.
func (r *partRun) summary(m *store.Manifest, took time.Duration) (*Summary, error) {
	p, dest := r.part, r.Dest
	r.Dest, r.Format = p.Path, part.Flat
	s, err := r.run.summary(m, took)
	if err != nil {
		return nil, err
	}
	if n := len(s.Fields); n > 0 && s.Fields[n-1].Name == part.TraceFieldName {
		s.Fields = s.Fields[:n-1]
	}
	s.Part = &PartSummary{p.Rank, p.Plan.Size, p.From, p.To, p.Plan.Source.Samples, dest}
	return s, nil
}
