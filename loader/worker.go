package loader

import (
	"context"
	"errors"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
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
	draft   Draft
	single  [1]int
	ends    [2]int64 // offsets of a ragged record
	scratch []byte   // a stored record, where the Source has no memory to show
	ahead   []int    // record numbers of a batch to come
	slow    bool     // the last batch was not read at the speed of memory
	spent   spent

	// What it works on, for the watchdog; -1 is nothing.
	onSlot, onField, onRecord atomic.Int64
}

// newWorker returns a worker with its own state of Transforms and Collate.
func (ld *Loader) newWorker(id int) (*worker, error) {
	w := &worker{ld: ld, id: id, plain: ld.opts.Workers == Synchronous, slow: true, funcs: make([]RecordFunc, len(ld.fields))}
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
		if !ended { // the Source called runtime.Goexit: go on in a new goroutine
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
		if t.piece >= 0 {
			w.servePiece(t)
		} else {
			w.serve(t.p, t.s)
		}
	}
	ended = true
}

// task is a batch to make, or a piece of one to fill.
type task struct {
	p     *pass
	s     *slot
	piece int // -1 is the whole batch
}

// assign waits for a task; without a slot it means that the Loader is closed. Steps are
// assigned in order, so that all before p.next have a slot: whatever is kept, the step that
// the consumer waits for gets done.
func (ld *Loader) assign(w *worker) task {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	ld.add(&w.spent)
	var since time.Time
	for {
		t, ok := ld.task(w)
		if ok {
			if !since.IsZero() {
				ld.stats.Idle += time.Since(since)
			}
			return t
		}
		if since.IsZero() {
			since = time.Now()
		}
		ld.work.Wait()
	}
}

// task returns what there is to do, if anything. The caller holds mu.
func (ld *Loader) task(w *worker) (task, bool) {
	p := ld.pass
	switch {
	case p != nil && p.split != nil:
		return p.piece(), true
	case ld.closed:
		return task{}, true
	case p == nil || p.opening && p.next > 0 || w.id >= ld.active:
		return task{}, false
	}
	s := ld.assignStep(p)
	return task{p, s, -1}, s != nil
}

// piece hands out a piece of the batch that is split. The caller holds mu.
func (p *pass) piece() task {
	t := task{p, p.split, p.split.given}
	p.split.given++
	if p.split.given == p.split.pieces {
		p.split = nil
	}
	return t
}

// assignStep gives the next step a slot, or returns nil if there is no step or no slot. The
// caller holds mu.
func (ld *Loader) assignStep(p *pass) *slot {
	p.skip()
	if p.next >= p.end || len(ld.free) == 0 || p.next-p.low >= len(ld.window) {
		return nil
	}
	last := len(ld.free) - 1
	s := ld.free[last]
	ld.free = ld.free[:last]
	s.tick, s.part = p.next, p.partOf(p.next)
	s.step = s.part.step(s.tick)
	s.opens = p.opening
	ld.window[s.tick%len(ld.window)] = s
	p.next++
	p.filling++
	return s
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

// opened lets the other workers begin.
func (ld *Loader) opened(p *pass) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	p.opening = false
	ld.work.Broadcast()
}

// divide lets the other workers begin with the first batch of a pass: it splits that into
// pieces, so that all make it together and the consumer has it as soon as it can be. It
// reports whether there is something to split.
func (ld *Loader) divide(p *pass, s *slot) bool {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	p.opening = false
	ld.work.Broadcast()
	pieces := min(ld.active, len(s.indices))
	if pieces < 2 {
		return false
	}
	s.pieces, s.given, s.left = pieces, 0, pieces
	p.split = s
	p.filling += pieces - 1
	return true
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
	defer trace.StartRegion(t.p.ctx, "loader: piece of the first batch").End()
	w.slow = false
	err = w.fillRange(t.p, s, lo, hi)
}

// pieceDone reports whether all pieces of s are. The error of the first record stays.
func (ld *Loader) pieceDone(p *pass, s *slot, lo int, err error) bool {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if err != nil && (s.err == nil || lo < s.errAt) {
		s.err, s.errAt = err, lo
	}
	if s.left--; s.left == 0 {
		return true
	}
	p.filling--
	return false
}

// errGoexit is what a batch fails with if its filling neither returned nor panicked.
var errGoexit = errors.New("the Source called runtime.Goexit")

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
	if s.tick == p.low || p.filling == 0 || ld.opts.AsCompleted {
		ld.ready.Signal()
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
	return &Error{s.part.number, s.step, "", -1, s.err}
}

// seal ends the filling of s: all its fields are there but those of variable length.
func (w *worker) seal(p *pass, s *slot) (err error) {
	defer w.catch(&err)
	if w.ld.ragged != nil {
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
		began := time.Now()
		w.draft.s = s
		err = w.collate(&w.draft)
		w.spent.collate += time.Since(began)
	}
	if !s.anyView() {
		s.unlease()
	}
	return err
}
