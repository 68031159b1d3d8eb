package requests

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// watch ends the context of an attempt when no byte has come for some time.
type watch struct {
	ctx     context.Context
	cancel  context.CancelFunc
	limit   time.Duration
	timer   *time.Timer
	stalled atomic.Bool
}

// newWatch returns a context that is cancelled when no byte has come for the limit. A time limit for the whole request
// would end large objects on slow links, and none at all waits for ever on a connection that a router has forgotten.
func newWatch(ctx context.Context, limit time.Duration) *watch {
	w := &watch{limit: limit}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.timer = time.AfterFunc(limit, func() {
		w.stalled.Store(true)
		w.cancel()
	})
	return w
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel()
}

// explain says of an error that it came of a stall, if it did.
func (w *watch) explain(err error) error {
	if err != nil && w.stalled.Load() {
		return fmt.Errorf("no byte came for %v", w.limit)
	}
	return err
}

// reader returns r, watched, whose bytes are counted when they come.
func (w *watch) reader(r io.Reader, count *atomic.Int64) io.Reader { return watched{w, r, count} }

type watched struct {
	watch *watch
	r     io.Reader
	count *atomic.Int64
}

// Read counts bytes and restarts the clock of the watch.
func (r watched) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.watch.timer.Reset(r.watch.limit)
		r.count.Add(int64(n))
	}
	return n, err
}
