package datasetarg

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/prepare/source"
)

// samples are raw samples that are being opened in the background. The samples of a URL are opened
// while the dataset at the same URL is looked for, because each look at a bucket takes a round
// trip. The caller of lookForSamples ends the opening with exactly one of keep and leave.
type samples struct {
	cache    *Cache
	fields   []string
	options  Options
	progress *cli.Progress
	cancel   context.CancelFunc
	left     atomic.Bool   // leave was called: nothing is printed any more
	done     chan struct{} // closed when source or err is set
	source   *raw.Source
	err      error
}

// lookForSamples begins to open raw samples and returns at once.
func (c *Cache) lookForSamples(ctx context.Context, path string, fields []string, split string, o Options) *samples {
	s := &samples{cache: c, fields: fields, options: o, done: make(chan struct{}), progress: c.progress()}
	ctx, s.cancel = context.WithCancel(ctx) // the source reads with this context, so keep leaves it alive
	if o.Verify != nil && (o.Prepare == rawcache.Off || o.Prepare == "") {
		s.err = fmt.Errorf("%s: verify: raw samples that are not prepared have no checksums to compare with; "+
			"leave verify out", path)
		close(s.done)
		return s
	}
	seen := listing{samples: s}
	go func() {
		defer close(s.done)
		s.source, s.err = raw.Open(ctx, path, raw.Options{Fields: fields, Split: split, Shares: o.Shares, Warn: s.warn,
			Seen: seen.add, Bucket: c.bucket})
	}()
	return s
}

// leave ends the search, because there is a dataset, or nothing that can be read. It waits until
// the search has ended, so that no request runs on behind the command.
func (s *samples) leave() {
	s.left.Store(true)
	s.cancel()
	<-s.done
	s.progress.End()
	if s.err == nil {
		_ = s.source.Close() // nothing of it was used
	}
}

// keep waits for the samples and returns them as a Source, which reads its records from a cached
// dataset of the samples where rawcache.Keep has one, and otherwise from the raw files.
func (s *samples) keep(ctx context.Context) (views.Part, error) {
	<-s.done
	s.progress.End()
	if s.err != nil {
		s.cancel()
		return nil, s.err
	}
	o := s.options
	choice, err := rawcache.Keep(ctx, s.source, rawcache.Options{Dir: s.cache.Dir, Limit: s.cache.Size, Mode: o.Prepare,
		Tolerant: o.Tolerant, Warn: s.progress.Print, Progress: s.progress, Head: o.Head,
		Verify: o.Verify})
	if err != nil {
		s.cancel()
		return nil, errors.Join(err, s.source.Close())
	}
	if choice != nil && o.Chosen != nil {
		o.Chosen(choice)
	}
	return s.source, nil
}

// warn prints a warning of the search, unless its result is not needed any more.
func (s *samples) warn(text string) {
	if !s.left.Load() {
		s.progress.Warn(text)
	}
}

// listing shows how many samples have been found so far. Nothing is shown for fewer than
// source.QuickScan samples, which are listed before anybody could read the line.
type listing struct {
	samples *samples
	found   int64
}

func (l *listing) add(n int64) {
	before, progress := l.found, l.samples.progress
	l.found += n
	switch {
	case l.found < source.QuickScan || l.samples.left.Load():
	case before < source.QuickScan:
		progress.Begin("listing", -1, "samples")
		progress.Add(l.found)
	default:
		progress.Add(n)
	}
}
