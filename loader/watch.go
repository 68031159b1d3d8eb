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

// mark notes what w works on. It costs nothing without Options.Timeout.
func (w *worker) mark(s *slot, field, record int) {
	if w.ld.opts.Timeout == 0 {
		return
	}
	at := -1
	if s != nil {
		at = s.index
	}
	w.onField.Store(int64(field))
	w.onRecord.Store(int64(record))
	w.onSlot.Store(int64(at))
}

// watch has a waiting consumer woken when the Timeout is over, or no more. The caller holds
// mu.
func (ld *Loader) watch(on bool) {
	switch {
	case ld.opts.Timeout == 0:
	case !on:
		if ld.alarm != nil {
			ld.alarm.Stop()
		}
	case ld.alarm == nil:
		ld.alarm = time.AfterFunc(ld.opts.Timeout, func() {
			ld.mu.Lock()
			defer ld.mu.Unlock()
			ld.tell()
		})
	default:
		ld.alarm.Reset(ld.opts.Timeout)
	}
}

// overdue reports whether the Timeout is over.
func (ld *Loader) overdue(since time.Duration) bool {
	return ld.opts.Timeout > 0 && ld.now()-since >= ld.opts.Timeout
}

// stuck describes what hangs: the record that a worker of the next batch is at. The caller
// holds mu.
func (ld *Loader) stuck(p *pass) *Error {
	t := p.parts[0]
	e := &Error{Epoch: t.number, Batch: t.step(p.low), Record: -1, Err: fmt.Errorf("%w: not there after %v", ErrTimeout, ld.opts.Timeout)}
	s := ld.window[p.low%len(ld.window)]
	if s == nil {
		e.Err = fmt.Errorf("%w: not begun after %v", ErrTimeout, ld.opts.Timeout)
		return e
	}
	for _, w := range ld.workers {
		if w.onSlot.Load() != int64(s.index) {
			continue
		}
		if f := w.onField.Load(); f >= 0 {
			e.Field, e.Record, e.Location = ld.fields[f].in.Name, int(w.onRecord.Load()), ""
			if !ld.fields[f].in.Ragged { // whose place is to be read, which might hang too
				ld.place(e)
			}
		}
	}
	return e
}
