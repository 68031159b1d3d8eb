package preprocess

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// runPart makes the part of the dataset that c.World says. It may be killed, run again and
// run twice: it keeps a part that is complete, and continues one that was begun.
func runPart(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	begin := time.Now()
	if err := checkPartPlaces(c); err != nil {
		return nil, err
	}
	progress.Note(c.World.note())
	src, err := openSource(ctx, c, progress)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r := &run{config: c, src: src, info: src.Info(), progress: progress, noList: true, stageName: fmt.Sprintf("part %d of %d", c.World.Rank, c.World.Size)}
	if c.World.Rank == 0 {
		progress.Note(r.types())
	}
	m, err := r.makePart(ctx)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return newPartSummary(r, m, time.Since(begin))
}

// note says what was taken from the environment.
func (w World) note() string {
	if w.From == "" {
		return ""
	}
	return fmt.Sprintf("rank %d of %d, from %s\n", w.Rank, w.Size, w.From)
}

// checkPartPlaces finds out what is wrong with source and destination. The destination itself
// is for the merge to write.
func checkPartPlaces(c Config) error {
	if err := source.Check(c.Source, c.From); err != nil {
		return err
	}
	for _, dest := range []string{c.Dest, partsDir(c.Dest)} {
		if err := checkApart(c.Source, dest); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(c.Dest); err == nil && !c.Overwrite {
		return fmt.Errorf("%s %w already; choose another name, or use --overwrite", c.Dest, store.ErrExist)
	}
	return makeParts(partsDir(c.Dest))
}

// makeParts makes the folder of the parts. One that is there must be a folder of this user.
func makeParts(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	parent, name, err := private.Parent(path)
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := parent.Mkdir(name, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	folder, err := private.Own(parent, name)
	if err != nil {
		return err
	}
	return folder.Close()
}

// makePart makes the part, or finds it made. The manifest is nil where it has no records.
func (r *run) makePart(ctx context.Context) (*store.Manifest, error) {
	ordered, err := r.orderSamples(ctx)
	if err != nil {
		return nil, err
	}
	j, err := r.newJob(ctx, r.config)
	if err == nil {
		err = r.needsFigures(j)
	}
	if err != nil {
		return nil, err
	}
	if err := r.refuseOwnFigures(j); err != nil {
		return nil, err
	}
	if err := r.setNormalizeSplit(); err != nil {
		return nil, err
	}
	plan, err := r.newPlan(ctx, j, ordered)
	if err != nil {
		return nil, err
	}
	w := r.config.World
	p := &part{Plan: plan, Rank: w.Rank, path: filepath.Join(partsDir(r.config.Dest), partName(w.Rank, w.Size))}
	p.From, p.To = w.run(r.info.Count)
	for _, path := range r.config.partPlaces(p) {
		if old, err := p.same(path); err != nil || old != nil {
			return r.made(old, err)
		}
	}
	j.schema.Fields = append(append([]store.Field(nil), j.schema.Fields...), newTraceField())
	r.job, r.part = j, p
	return r.writePart(ctx)
}

// needsFigures refuses what depends on all samples.
func (r *run) needsFigures(j *job) error {
	n := r.config.Normalize
	if r.measures() {
		return errFigures
	}
	if !n.Dataset || n.Fields == nil && slices.ContainsFunc(r.info.Fields, ofPixels) {
		return nil
	}
	list, err := r.config.ownFigures(j)
	if err == nil && len(list) > 0 {
		err = errFigures
	}
	return err
}

// partPlaces lists where a part may be already; nothing if it is to be made in any case.
func (c Config) partPlaces(p *part) (list []string) {
	if c.Overwrite {
		return nil
	}
	if list = []string{p.path}; c.partsAt != "" {
		list = append(list, filepath.Join(c.partsAt, filepath.Base(p.path)))
	}
	return list
}

// orderSamples makes the order of the samples that of the dataset, where the source can be
// read in any; otherwise the merge does.
func (r *run) orderSamples(ctx context.Context) (ordered bool, err error) {
	indexed, ok := r.src.(source.Indexed)
	if !r.config.Shuffle.Set || !ok {
		return false, nil
	}
	if err := r.verify(ctx); err != nil {
		return false, err
	}
	r.src = shuffled{indexed, newOrder(r.info.Count, r.config.Shuffle.Seed)}
	return true, nil
}

// made makes r describe a part that was there, and returns its manifest.
func (r *run) made(p *part, err error) (*store.Manifest, error) {
	if err != nil {
		return nil, err
	}
	r.part, r.books = p, newBooks(r.config)
	r.books.samples, r.books.bytes = p.To-p.From, p.Bytes
	r.info.Hints = append(r.info.Hints, completeHint)
	if !vfs.Mounted(p.path) {
		if err := tidy(partFile(p.path)); err != nil {
			return nil, err
		}
	}
	return p.manifest()
}

// manifest returns that of the part's dataset, nil if there is none.
func (p *part) manifest() (*store.Manifest, error) {
	if p.Records == 0 {
		return nil, nil
	}
	d, err := source.FlatDataset(p.path)
	if err != nil {
		return nil, err
	}
	return d.Manifest, nil
}

// writePart makes the records of the part, and its file when they are there.
func (r *run) writePart(ctx context.Context) (*store.Manifest, error) {
	p, c := r.part, &r.config
	if err := os.Remove(partFile(p.path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	c.MaxErrors = c.MaxErrors.of(r.info.Count)
	r.inputs = fmt.Sprintf("samples %d to %d of %d for %s", p.From, p.To, r.info.Count, c.format())
	c.Split, c.Stratify, c.Dedup, c.Shuffle = nil, false, false, Seed{}
	c.Dest, c.Format = p.path, formatFlat
	c.Resume, c.Overwrite = !c.Overwrite, true
	r.src = span{r.src, p.From, p.To}
	r.info.Count, r.info.Splits = p.To-p.From, nil
	m, err := r.write(ctx)
	if err != nil {
		return nil, err
	}
	if m == nil {
		if err := errors.Join(r.discard(), private.RemoveOwn(p.path)); err != nil {
			return nil, err
		}
	} else {
		p.ID, p.Records = m.ID, m.Records
	}
	if r.books.samples != p.To-p.From {
		return nil, fmt.Errorf("the source has fewer samples than the %d that it had when it was looked at", p.Plan.Source.Samples)
	}
	p.Bytes, p.Tail = r.books.bytes, r.books.takeLeft(nil)
	return m, p.write()
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
