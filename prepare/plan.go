package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Plan is a source and a Config that fit each other: errors that can be found before any work are returned by
// [NewPlan]. It runs once. Close it.
type Plan struct {
	setup   setup
	parents []string // folders above Dest that did not exist

	// For a source and a destination on this machine, and a whole dataset:
	src        source.Source
	found      *Summary // of a dataset that an earlier run has finished
	unfinished bool     // a run before this one has left something
	took       time.Duration
}

// NewPlan checks a Config, opens its source and looks at its destination, and writes nothing. For places in buckets and
// for the parts of ranks, it checks only the Config; Run does the rest. A nil Progress reports nothing.
func NewPlan(ctx context.Context, c Config, progress Progress) (*Plan, error) {
	return setup{Config: c, progress: progress}.plan(ctx)
}

// plan is [NewPlan].
func (c setup) plan(ctx context.Context) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.progress == nil {
		c.progress = noProgress{}
	}
	c.Config = c.withRecords()
	p := &Plan{setup: c}
	if c.remote() || c.Rank.Size > 0 { // Run looks at source and destination
		return p, nil
	}
	p.parents = missingParents(c.Dest)
	begin := time.Now()
	if err := p.look(ctx); err != nil {
		p.Close()
		return nil, err
	}
	p.took = time.Since(begin)
	return p, nil
}

// remote reports whether the source or the destination is named by a URL.
func (c Config) remote() bool { return remote.IsURL(c.Source) || remote.IsURL(c.Dest) }

// look finds the dataset complete, or opens the source.
func (p *Plan) look(ctx context.Context) (err error) {
	c := p.setup
	if c.producer != nil && c.Resume {
		awaitStage(c.Dest)
	}
	if p.found, err = complete(c); p.found != nil || err != nil {
		return err
	}
	p.unfinished = write.Unfinished(c.Dest)
	err = checkPlaces(c)
	if errors.Is(err, store.ErrCommitted) && c.producer == nil { // and what was left of that is removed
		p.unfinished, err = false, checkPlaces(c)
	}
	if err != nil {
		return err
	}
	src, err := openSource(ctx, c)
	if err == nil {
		p.src = src
	} else if ctx.Err() != nil {
		err = fmt.Errorf("%w; nothing was written to %s", context.Cause(ctx), c.Dest)
	}
	return err
}

// Close closes the source.
func (p *Plan) Close() {
	if p.src != nil {
		_ = p.src.Close()
		p.src = nil
	}
	removeEmpty(p.parents)
}

// Run makes the dataset, as [Run] says.
func (p *Plan) Run(ctx context.Context) (*Summary, error) {
	c := p.setup
	var s *Summary
	var err error
	switch {
	case c.remote():
		s, err := runRemote(ctx, c)
		return s, c.Rank.Named(err)
	case c.Rank.Size > 0:
		p.parents = missingParents(c.Dest)
		s, err = runPart(ctx, c)
	case p.found != nil:
		s = p.found
	case p.src == nil:
		return nil, errors.New("prepare: this Plan has run, or was closed")
	default:
		s, err = p.runWhole(ctx)
	}
	if err != nil {
		removeEmpty(p.parents)
		return nil, c.Rank.Named(err)
	}
	if len(p.parents) > 1 && p.found == nil {
		s.Hints = append(slices.Clip(s.Hints), fmt.Sprintf("folders above %s were made, as %s did not exist; if the path is "+
			"mistyped, move the dataset", c.Dest, p.parents[len(p.parents)-1]))
	}
	return s, writeView(c)
}

// runWhole builds the whole dataset on this machine.
func (p *Plan) runWhole(ctx context.Context) (*Summary, error) {
	begin := time.Now()
	defer p.Close()
	r := newRun(p.setup, p.src)
	r.info.Hints = append(slices.Clip(r.info.Hints), p.setup.hints()...)
	p.setup.progress.Note(fieldReport{r.Config, r.info}.String())
	manifest, done, err := r.all(ctx, p.unfinished)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	if done {
		return p.setup.found(manifest, r.info)
	}
	return r.summary(manifest, p.took+time.Since(begin))
}

// all carries out the run once the source is open. unfinished says that an earlier
// run has left records to continue. done reports that an earlier run has appended
// all records.
func (r *run) all(ctx context.Context, unfinished bool) (m *store.Manifest, done bool, err error) {
	if r.Append {
		if r.base, err = baseManifest(r.setup); err == nil {
			r.Images = r.Images.For(r.info.Fields, r.base)
		}
		if err == nil && !unfinished {
			done, err = r.appended(ctx)
		}
	}
	switch {
	case err != nil || done:
		return r.base, done, err
	case r.Shuffle.Set:
		m, err = r.runShuffled(ctx)
	default:
		m, err = r.run(ctx)
	}
	return m, false, err
}

// noProgress is a Progress that says nothing.
type noProgress struct{}

func (noProgress) Begin(string, int64, string) {}
func (noProgress) Add(int64)                   {}
func (noProgress) End()                        {}
func (noProgress) Note(string)                 {}
func (noProgress) Warn(string)                 {}
