package loader

import (
	"context"
	"errors"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"time"

	"github.com/penstock/penstock/tensor"
)

// worker fills slots. Each is used by one goroutine at a time.
type worker struct {
	ld       *Loader
	id       int
	plain    bool         // panics pass through
	funcs    []RecordFunc // of the fields that have a Transform
	collate  CollateFunc  // nil if there is none
	draft    MutableBatch
	single   single
	ends     [2]int64 // offsets of a ragged record
	scratch  scratch  // stored records: one where the Source has no memory to show, or those that are staged
	queue    readQueue
	upcoming []int   // record numbers of a batch to come
	slots    []*slot // of batches that the loop makes together
	stopwatch
	mark mark
}

// newWorker returns a worker with its own state of Transforms and Collate.
func (ld *Loader) newWorker(id int) (*worker, error) {
	w := &worker{ld: ld, id: id, plain: ld.opts.Workers == Synchronous, funcs: make([]RecordFunc, len(ld.fields))}
	w.stopwatch = stopwatch{set: &ld.setup, fresh: true, slow: true, pace: slices.Repeat([]time.Duration{pieceTime}, len(ld.fields))}
	w.mark.on = ld.opts.Timeout > 0
	w.upcoming = make([]int, ld.opts.BatchSize)
	w.mark.set(nil, -1, -1)
	for i := range ld.fields {
		f := &ld.fields[i]
		if f.transform == nil {
			continue
		}
		var err error
		if w.funcs[i], err = f.transform.Worker(f.in, id); err != nil {
			return nil, &Error{Batch: -1, Field: f.in.Name, Record: -1, Err: err}
		}
	}
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
		w.at = 0
		switch t.kind {
		case batchTask:
			w.serve(t.p, t.s)
		case pieceTask:
			w.servePiece(t)
		case endTask:
			ended = true
			return
		}
	}
}

// serve makes the batch of s and hands it over, or splits it among the workers.
func (w *worker) serve(p *pass, s *slot) {
	defer trace.StartRegion(p.ctx, "loader: batch").End()
	split, err := false, errGoexit
	defer func() {
		if !split { // else s is not ours any more
			s.err = err
			w.ld.filled(p, s, w)
		}
	}()
	defer w.catch(&err) // of what is not caught nearer to a record: Report, Allocator
	split, err = w.makeBatch(p, s)
}

// makeBatch makes the batch of s, or splits it: then s is not the caller's any more.
func (w *worker) makeBatch(p *pass, s *slot) (split bool, err error) {
	if err := w.prepare(p, s); err != nil {
		return false, err
	}
	if s.opens && s.viewOnly() {
		w.ld.open(p)
	}
	if err := w.views(p, s); err != nil {
		return false, err
	}
	if err := s.room(); err != nil {
		return false, err
	}
	if s.opens && !s.viewOnly() && w.ld.divide(p, s) {
		return true, nil
	}
	if err := w.fillRange(p, s, 0, len(s.indices)); err != nil {
		return false, err
	}
	return false, w.seal(p, s)
}

// servePiece fills a piece of a batch. The worker that fills the last piece hands the batch over.
func (w *worker) servePiece(t task) {
	s, n := t.s, len(t.s.indices)
	lo, hi := t.piece*n/s.pieces.n, (t.piece+1)*n/s.pieces.n
	err := errGoexit
	defer func() {
		if !w.ld.pieceDone(t.p, s, lo, err, w) {
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
		w.times.collate += w.lap()
	}
	if !s.anyView() {
		s.unlease()
	}
	return err
}
