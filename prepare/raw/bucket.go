package raw

import (
	"context"
	"os"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/vfs/bucketfs"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/remote"
)

// place is where a source is read: a local path, or the path at which its bucket is mounted.
type place struct {
	text    string // path or URL as it was given
	path    string
	buckets *upload.Buckets
	fsys    *bucketfs.FS  // nil for a local path
	early   bool          // what is read stays in memory for a while, so reading it ahead is useful
	ahead   chan struct{} // holds a value for each record that is being fetched ahead
	waiting atomic.Int64  // records that wait to be fetched ahead
	reading sync.WaitGroup
	closing atomic.Bool // records that still wait are not fetched
}

// mostAhead is the number of records of a bucket that are fetched at a time before they are needed: at 50 ms a
// request and 100 KB an image, 64 give 128 MB/s.
const mostAhead = 64

// mostWaiting is the number of records that may wait to be fetched ahead. A loader announces the next batch of each
// worker.
const mostWaiting = 4096

// openPlace mounts the bucket of a URL, which lists folders at once, or returns the place of a local path.
func openPlace(ctx context.Context, text string, o Options) (*place, error) {
	warn := o.Warn
	if warn == nil {
		warn = func(string) {}
	}
	p := &place{text: text, buckets: &upload.Buckets{Context: ctx, Warn: warn, Open: o.Bucket},
		ahead: make(chan struct{}, mostAhead)}
	var err error
	p.path, p.fsys, p.early, err = p.buckets.MountSource(text, upload.Naming)
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// name returns the path or URL for messages, without secrets.
func (p *place) name() string {
	if p.fsys == nil {
		return p.text
	}
	return remote.Redact(p.text)
}

// fetch calls read in a goroutine, as soon as fewer than mostAhead reads are under way. If mostWaiting reads are
// waiting already, it does nothing: prefetching is only a hint, and the read itself follows.
func (p *place) fetch(read func()) {
	// A loader that runs far ahead would otherwise start a goroutine for each record.
	if p.waiting.Add(1) > mostWaiting {
		p.waiting.Add(-1)
		return
	}
	p.reading.Go(func() {
		p.ahead <- struct{}{}
		p.waiting.Add(-1)
		defer func() { <-p.ahead }()
		if !p.closing.Load() {
			read()
		}
	})
}

// stop ends fetching ahead, and waits for the reads that are under way.
func (p *place) stop() {
	p.closing.Store(true)
	p.reading.Wait()
}

// close unmounts the bucket, after the reads that are under way.
func (p *place) close() {
	p.stop()
	p.buckets.Close()
}

// hold keeps the bytes of archives in a bucket in memory once they are read, if all of them fit: an archive is read
// once from front to back for its headers, and then again for members in any order.
func (p *place) hold() {
	if p.fsys == nil {
		return
	}
	if n, err := sourceBytes(p.path); err == nil && n <= mostHeld {
		p.fsys.Hold(n)
	}
}

// keep stores what is fetched from a bucket in a folder.
func (p *place) keep(root *os.Root) {
	if p.fsys != nil {
		p.fsys.Keep(root)
	}
}
