// Package preprocess turns a source of raw samples into a dataset. It is the command of that
// name: Command is its face, Run what it does.
//
//	source -> workers (draw, read, decode, transform, summarise, commit) -> store.Writer
//
// Each image is the work of one goroutine. Records are committed in the order of the source, so
// any number of workers makes the same bytes.
package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Progress receives the progress of Run. *cli.Progress implements it.
type Progress interface {
	Begin(what string, total int64, unit string)
	Add(n int64)
	End()

	// Note prints lines that are worth knowing before the work is done.
	Note(text string)

	// Warn prints a line that cannot wait. It is called at any time, from any goroutine.
	Warn(text string)
}

// Run makes the dataset. Before it returns nil, nothing is found under c.Dest that was not
// there. With an error, neither files nor folders that it made are left, unless it was a
// long run, which Config.Resume can continue. Its memory is that of
// some records a worker.
//
// Without c.Skip the first sample, in the order of the source, that cannot be used is the
// error. With it, such samples are in the manifest, and an error only if all are such. A
// source whose images do not have one size after the transforms is an error in any case.
func Run(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if remote.IsURL(c.Source) || remote.IsURL(c.Dest) {
		s, err := runRemote(ctx, c, progress)
		return s, c.Rank.Named(err)
	}
	parents := missingParents(c.Dest)
	s, err := runIn(ctx, c, progress)
	if err != nil {
		removeEmpty(parents)
		return nil, c.Rank.Named(err)
	}
	return s, writeView(c)
}

func runIn(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	if c.Rank.Size > 0 {
		return runPart(ctx, c, progress)
	}
	begin := time.Now()
	if c.producer != nil && c.Resume {
		awaitStage(c.Dest)
	}
	if s, err := complete(c); s != nil || err != nil {
		return s, err
	}
	unfinished := write.Unfinished(c.Dest)
	err := checkPlaces(c)
	if errors.Is(err, store.ErrCommitted) && c.producer == nil { // and what was left of that is removed
		unfinished, err = false, checkPlaces(c)
	}
	if err != nil {
		return nil, err
	}
	src, err := openSource(ctx, c, progress)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w; nothing was written to %s", context.Cause(ctx), c.Dest)
		}
		return nil, err
	}
	defer src.Close()
	r := newRun(c, src, progress)
	r.info.Hints = append(slices.Clip(r.info.Hints), c.hints()...)
	progress.Note(fieldReport{c, r.info}.String())
	manifest, done, err := r.all(ctx, unfinished)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	if done {
		return c.found(manifest, r.info)
	}
	return newSummary(c, r, manifest, time.Since(begin))
}

// all does everything once the source is open; unfinished says that a run before this one
// has left something. done reports that a run before this one has appended all.
func (r *run) all(ctx context.Context, unfinished bool) (m *store.Manifest, done bool, err error) {
	if r.config.Append {
		if r.base, err = openManifest(r.config.Dest); err == nil && !unfinished {
			done, err = r.appended(ctx)
		}
	}
	switch {
	case err != nil || done:
		return r.base, done, err
	case r.config.Shuffle.Set:
		m, err = r.runShuffled(ctx)
	default:
		m, err = r.run(ctx)
	}
	return m, false, err
}
