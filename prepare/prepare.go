// Package prepare turns a source of raw samples into a dataset. The command preprocess calls it.
//
//	source -> workers (draw, read, decode, transform, summarize, commit) -> store.Writer
//
// A [Plan] is a source and a [Config] that were checked; [Plan.Run] makes the dataset.
// Each image is the work of one goroutine. Records are committed in the order of the source, so
// any number of workers makes the same bytes.
//
// Other ways to run are the same pass with another source or destination: one of several ranks makes a part (rank.go), [Merge]
// joins the parts, a program gives the records on stdin (produce.go), and a dataset in a bucket is built in a local folder
// and uploaded (remote.go). A journal beside the dataset has what is complete, for a run that continues after a kill
// (checkpoint.go, log.go). Splits, duplicates and the digests by which they are decided are in content.go, and the passes
// that measure mean and deviation first in measure.go.
//
// The package writes into the destination, hidden folders beside it, and the spool. Sources are opened by package
// source/kinds, and records are written by the store.Writer of a container.
package prepare

import (
	"context"

	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/prepare/source/producer"
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

// setup is a Config with the services that its run uses, and with the places that only the program knows.
type setup struct {
	Config
	progress Progress
	producer *producer.Producer // sends the samples, where Source is StreamName
	attempt  string             // where a rank builds its part, see part.Turn.Attempt
	partsAt  string             // where parts may exist already, besides the folder that they are built in
	appendTo *appendTarget      // of a dataset in a bucket that is appended to
	uploader *upload.Uploader   // of a dataset that goes to a bucket; nil: nothing of it goes there while it is built
}

// Run makes the dataset. Nothing new appears under c.Dest before Run returns
// nil. After an error, it leaves no files or folders, unless it was a
// long run, which Config.Resume can continue. It needs the memory of
// some records a worker.
//
// Without c.Skip, the first sample, in the order of the source, that cannot be used is the
// error. With it, the manifest lists such samples, and the error is returned only if no sample can be used. A
// source whose images do not have one size after the transforms is an error in any case.
func Run(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	return setup{Config: c, progress: progress}.run(ctx)
}

// run makes the dataset, as [Run] says.
func (c setup) run(ctx context.Context) (*Summary, error) {
	p, err := c.plan(ctx)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(ctx)
}
