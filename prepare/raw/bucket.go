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

// place is where a source is read: a path here or, of a URL, where its bucket is mounted.
type place struct {
	text    string // as it was given
	path    string
	buckets *upload.Buckets
	fsys    *bucketfs.FS  // nil of what is on this machine
	early   bool          // what is read stays in memory for a while, so that it can be read before it is needed
	ahead   chan struct{} // holds a value for each record that is read before it is needed
	waiting atomic.Int64  // records that will be
	reading sync.WaitGroup
	closing atomic.Bool // those that wait are not read any more
}

// mostAhead is how many records of a bucket are read at a time before they are needed: at 50 ms a request, and
// 100 KB an image, that is 128 MB/s.
const mostAhead = 64

// mostWaiting is how many wait for that. A loader names the records of the next batch of each worker.
const mostWaiting = 4096

// openPlace mounts the bucket of a URL. Folders are listed at once.
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

// name returns the place for people, without secrets.
func (p *place) name() string {
	if p.fsys == nil {
		return p.text
	}
	return remote.Redact(p.text)
}

// fetch calls read in a separate goroutine, when fewer than mostAhead are under way. If mostWaiting wait for that
// already, it leaves the work to the read that follows.
func (p *place) fetch(read func()) {
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

// stop ends what is fetched before it is needed.
func (p *place) stop() {
	p.closing.Store(true)
	p.reading.Wait()
}

func (p *place) close() {
	p.stop()
	p.buckets.Close()
}

// hold has what is read of archives in a bucket stay in memory, if all of them fit: they are read from beginning to
// end to find their headers, and then their members in another order.
func (p *place) hold() {
	if p.fsys == nil {
		return
	}
	if n, err := sourceBytes(p.path); err == nil && n <= mostHeld {
		p.fsys.Hold(n)
	}
}

// keep has what is fetched of a bucket stored in a folder.
func (p *place) keep(root *os.Root) {
	if p.fsys != nil {
		p.fsys.Keep(root)
	}
}
