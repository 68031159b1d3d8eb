package loader

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrTimeout is wrapped by the Error of a batch that was not there after Options.Timeout.
// The read that hangs is cancelled through its context and waited for as long again. If it
// hangs still, the loop ends without it; the Loader then starts no other epoch until the
// read returns, and Close does not wait for it.
var ErrTimeout = errors.New("timeout")

// mark says what a worker works on, for a loop that has waited for Options.Timeout; -1 is nothing.
type mark struct {
	on                  bool // there is a Timeout
	slot, field, record atomic.Int64
}

// set notes a record of a field of s. It costs nothing without Options.Timeout.
func (m *mark) set(s *slot, field, record int) {
	if !m.on {
		return
	}
	at := -1
	if s != nil {
		at = s.index
	}
	m.field.Store(int64(field))
	m.record.Store(int64(record))
	m.slot.Store(int64(at))
}

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
	e := &Error{Epoch: t.number, Batch: t.step(p.low), Record: -1, Err: fmt.Errorf("%w: not there after %v", ErrTimeout, ld.opts.Timeout)}
	s := ld.window[p.low%len(ld.window)]
	if s == nil {
		e.Err = fmt.Errorf("%w: not begun after %v", ErrTimeout, ld.opts.Timeout)
		return e
	}
	for _, w := range ld.workers {
		if w.mark.slot.Load() != int64(s.index) {
			continue
		}
		if f := w.mark.field.Load(); f >= 0 {
			e.Field, e.Record, e.Location = ld.fields[f].in.Name, int(w.mark.record.Load()), ""
			if !ld.fields[f].in.Ragged { // whose place is to be read, which might hang too
				ld.place(e)
			}
		}
	}
	return e
}
