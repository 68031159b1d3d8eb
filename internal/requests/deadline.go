package requests

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/penstock/penstock/remote"
)

// maxAsked bounds the pauses that a store asks for, of one request together: the Hub of Hugging Face counts
// requests over five minutes.
const maxAsked = 10 * time.Minute

// deadline is the time that a request may take, with all its attempts.
type deadline struct {
	policy remote.Policy
	end    time.Time // zero is never
	asked  time.Duration
}

func newDeadline(p remote.Policy, limit time.Duration) *deadline {
	w := &deadline{policy: p}
	if limit > 0 {
		w.end = time.Now().Add(limit)
	}
	return w
}

// attempt calls do with the time that is left, and reports whether that is over then.
func (w *deadline) attempt(ctx context.Context, do func(context.Context) error) (over bool, err error) {
	if w.end.IsZero() {
		return false, do(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, w.end)
	defer cancel()
	err = do(ctx)
	return ctx.Err() != nil, err
}

// pause waits before the attempt that follows attempt n, as long as the store asks for, and reports false if ctx
// ended before, or the time will.
func (w *deadline) pause(ctx context.Context, n int, asked time.Duration) bool {
	d := pause(w.policy, n)
	if asked > d {
		if w.asked += asked; w.asked > maxAsked || w.asked < 0 {
			return false
		}
		d = asked + rand.N(d) // so that clients that were refused together do not come back together
		if !w.end.IsZero() {
			w.end = w.end.Add(d)
		}
	}
	if !w.end.IsZero() && time.Until(w.end) < d {
		return false
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
