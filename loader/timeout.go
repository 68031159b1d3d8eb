package loader

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimeout is wrapped by the Error of a batch that was not there after Options.Timeout.
// The read that hangs is cancelled through its context and waited for as long again. If it
// hangs still, the loop ends without it; the Loader then starts no other epoch until the
// read returns, and Close does not wait for it.
var ErrTimeout = errors.New("timeout")

// watchLocked has a waiting consumer woken when the Timeout is over, or no more.
func (c *scheduler) watchLocked(on bool) {
	switch {
	case c.set.opts.Timeout == 0:
	case !on:
		if c.alarm != nil {
			c.alarm.Stop()
		}
	case c.alarm == nil:
		c.alarm = time.AfterFunc(c.set.opts.Timeout, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.tellLocked()
		})
	default:
		c.alarm.Reset(c.set.opts.Timeout)
	}
}

// overdue reports whether the Timeout is over.
func (c *scheduler) overdue(since time.Duration) bool {
	return c.set.opts.Timeout > 0 && c.set.now()-since >= c.set.opts.Timeout
}

// stuckLocked describes what hangs: the record that a worker of the next batch is at.
func (ld *Loader) stuckLocked(p *pass) *Error {
	t := p.parts[0]
	e := &Error{Epoch: t.order.Number, Batch: t.step(p.low), Record: -1, Err: fmt.Errorf("%w: not there after %v", ErrTimeout, ld.opts.Timeout)}
	s := ld.window[p.low%len(ld.window)]
	if s == nil {
		e.Err = fmt.Errorf("%w: not begun after %v", ErrTimeout, ld.opts.Timeout)
		return e
	}
	for _, w := range ld.workers {
		slot, f, record := w.filler.Progress()
		if slot != s.index {
			continue
		}
		if f >= 0 {
			e.Field, e.Record, e.Location = ld.plan.Fields[f].In.Name, record, ""
			if !ld.plan.Fields[f].In.Ragged { // whose place is to be read, which might hang too
				ld.place(e)
			}
		}
	}
	return e
}
