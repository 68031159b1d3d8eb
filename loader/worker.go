package loader

import (
	"context"
	"errors"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/tensor"
)

// worker fills slots. Each is used by one goroutine at a time.
type worker struct {
	ld      *Loader
	id      int
	plain   bool         // panics pass through
	funcs   []RecordFunc // of the fields that have a Transform
	collate CollateFunc  // nil if there is none
	draft   MutableBatch
	single  [1]int
	ends    [2]int64 // offsets of a ragged record
	scratch []byte   // a stored record, where the Source has no memory to show
	lead    lead
	ahead   []int           // record numbers of a batch to come
	pace    []time.Duration // by field: what the last records took each, to read and transform
	slow    bool            // the last batch was not read at the speed of memory
	spent   spent
	at      time.Duration // when it last looked at the clock; 0 if not yet for this batch

	// What it works on, for the watchdog; -1 is nothing.
	onSlot, onField, onRecord atomic.Int64
}

// newWorker returns a worker with its own state of Transforms and Collate.
func (ld *Loader) newWorker(id int) (*worker, error) {
	w := &worker{ld: ld, id: id, plain: ld.opts.Workers == Synchronous, slow: true, funcs: make([]RecordFunc, len(ld.fields))}
	w.pace = slices.Repeat([]time.Duration{pieceTime}, len(ld.fields))
	w.ahead = make([]int, ld.opts.BatchSize)
	w.mark(nil, -1, -1)
	largest := 0
	for i := range ld.fields {
		f := &ld.fields[i]
		if f.transform == nil {
			continue
		}
		var err error
		if w.funcs[i], err = f.transform.Worker(f.in, id); err != nil {
			return nil, &Error{Batch: -1, Field: f.in.Name, Record: -1, Err: err}
		}
		largest = max(largest, f.stored)
	}
	w.scratch = make([]byte, largest)
	if ld.opts.Collate.Worker != nil {
		var err error
		if w.collate, err = ld.opts.Collate.Worker(id); err != nil {
			return nil, &Error{Batch: -1, Record: -1, Err: err}
		}
	}
	return w, nil
}

// run fills slots until the Loader is closed.
func (w *worker) run() {
	ended := false
	defer func() {
		if !ended { // runtime.Goexit: go on in a new goroutine
			w.ld.goroutines.Go(w.run)
		}
	}()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("loader", "worker")))
	// A fault in mapped memory becomes a panic, which fill turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for {
		t := w.ld.assign(w)
		if t.s == nil {
			break
		}
		w.at = 0
		if t.piece >= 0 {
			w.servePiece(t)
		} else {
			w.serve(t.p, t.s)
		}
	}
	ended = true
}

// serve makes the batch of s and hands it over, or splits it.
func (w *worker) serve(p *pass, s *slot) {
	defer trace.StartRegion(p.ctx, "loader: batch").End()
	divided := false
	defer func() {
		if !divided { // else s is not ours any more
			w.ld.filled(p, s, w)
		}
	}()
	s.err = errGoexit
	defer w.catch(&s.err) // of what is not caught nearer to a record: Report, Allocator
	err := w.prepare(p, s)
	if s.opens && (err != nil || s.viewOnly()) {
		w.ld.opened(p)
	}
	if err == nil {
		err = w.viewAll(p, s)
	}
	if s.opens && err == nil && !s.viewOnly() {
		s.err = nil
		if divided = w.ld.divide(p, s); divided {
			return
		}
		s.err = errGoexit
	}
	if err == nil {
		err = w.fillRange(p, s, 0, len(s.indices))
	}
	if err == nil {
		err = w.seal(p, s)
	}
	s.err = err
}

// servePiece fills a piece of a batch. Whoever does the last of them hands the batch over.
func (w *worker) servePiece(t task) {
	s, n := t.s, len(t.s.indices)
	lo, hi := t.piece*n/s.pieces, (t.piece+1)*n/s.pieces
	err := errGoexit
	defer func() {
		if !w.ld.pieceDone(t.p, s, lo, err) {
			return
		}
		defer w.ld.filled(t.p, s, w)
		if s.err == nil {
			s.err = errGoexit
			s.err = w.seal(t.p, s)
		}
	}()
	defer w.catch(&err)
	defer trace.StartRegion(t.p.ctx, "loader: piece of the first batch").End()
	w.slow = false
	err = w.fillRange(t.p, s, lo, hi)
}

// errGoexit is what a batch fails with if its filling neither returned nor panicked.
var errGoexit = errors.New("runtime.Goexit was called by the Source, a Transform or Collate")

// filled marks s as done. After a failure no later step is begun.
func (ld *Loader) filled(p *pass, s *slot, w *worker) {
	ld.mu.Lock()
	w.mark(nil, -1, -1)
	ld.add(&w.spent)
	s.done = true
	p.filling--
	if s.opens && p.opening { // it ended before it began
		p.opening = false
		ld.work.Broadcast()
	}
	if s.err != nil {
		s.err = errorOf(s)
		p.end = min(p.end, p.next)
	}
	if s.tick == p.low || p.filling == 0 || ld.opts.Unordered {
		ld.tell()
	}
	returned := p.abandoned && p.filling == 0
	ld.mu.Unlock()
	if returned {
		ld.sweep(p)
	}
}

// errorOf returns why s could not be filled, with its place.
func errorOf(s *slot) error {
	if located, ok := s.err.(*Error); ok {
		return located
	}
	return &Error{Epoch: s.part.number, Batch: s.step, Record: -1, Err: s.err}
}

// seal ends the filling of s: all its fields are there but those of variable length.
func (w *worker) seal(p *pass, s *slot) (err error) {
	defer w.catch(&err)
	if w.ld.ragged {
		if err := w.fillRagged(p, s); err != nil {
			return err
		}
	}
	for f := range w.ld.fields {
		if fd := &w.ld.fields[f]; !s.viewing[f] && !fd.ragged {
			s.views[f] = tensor.Of(fd.out, len(s.indices), s.buffer(f))
		}
	}
	if w.collate != nil {
		w.lap()
		w.draft.s = s
		err = w.collate(&w.draft)
		w.spent.collate += w.lap()
	}
	if !s.anyView() {
		s.unlease()
	}
	return err
}
