// Package prepare turns a source of raw samples into a dataset. The command preprocess is its face.
//
//	source -> workers (draw, read, decode, transform, summarise, commit) -> store.Writer
//
// A [Plan] is a source and a [Config] that were checked; [Plan.Run] makes the dataset.
// Each image is the work of one goroutine. Records are committed in the order of the source, so
// any number of workers makes the same bytes.
package prepare

import (
	"context"
)

// Progress receives the progress of Run. *cli.Progress implements it. All methods but Warn are called by one
// goroutine at a time.
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
	p, err := NewPlan(ctx, c, progress)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(ctx)
}
