package loader

import (
	"context"
	"errors"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"

	"github.com/penstock/penstock/loader/internal/fill"
)

// worker makes the batches that the scheduler assigns to it. Each is used by one goroutine at a time.
type worker struct {
	id     int
	filler *fill.Filler
}

// newWorker returns a worker with its own state of Transforms and Collate.
func (ld *Loader) newWorker(id int) (*worker, error) {
	funcs := make([]fill.RecordFunc, len(ld.plan.Fields))
	for i := range ld.plan.Fields {
		f := &ld.plan.Fields[i]
		if !f.Converts {
			continue
		}
		do, err := ld.opts.Transforms[f.In.Name].Worker(f.In, id)
		if err != nil {
			return nil, &Error{Batch: -1, Field: f.In.Name, Record: -1, Err: err}
		}
		funcs[i] = ld.recordFunc(do)
	}
	collate, err := ld.collate(id)
	if err != nil {
		return nil, &Error{Batch: -1, Record: -1, Err: err}
	}
	panics := fill.Errors
	if ld.opts.Workers == Synchronous {
		panics = fill.PassThrough
	}
	return &worker{id, ld.plan.NewFiller(funcs, collate, panics)}, nil
}

// recordFunc returns do as a Filler calls it.
func (c *setup) recordFunc(do RecordFunc) fill.RecordFunc {
	seed, repeats := c.opts.Seed, c.repeats
	return func(dst, src []byte, r fill.Record) error {
		return do(dst, src, Record{Index: r.Index, Position: r.Position, Epoch: r.Epoch, Seed: seed, repeats: repeats})
	}
}

// collate returns the function for whole batches of a worker, or nil.
func (c *setup) collate(id int) (func(b *fill.Batch) error, error) {
	if c.opts.Collate.Worker == nil {
		return nil, nil
	}
	do, err := c.opts.Collate.Worker(id)
	if err != nil {
		return nil, err
	}
	draft := &MutableBatch{seed: c.opts.Seed, world: c.opts.World}
	return func(b *fill.Batch) error {
		draft.b = b
		return do(draft)
	}, nil
}

// run has w make batches until the Loader is closed.
func (ld *Loader) run(w *worker) {
	ended := false
	defer func() {
		if !ended { // runtime.Goexit: continue in a new goroutine
			ld.goroutines.Go(func() { ld.run(w) })
		}
	}()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("loader", "worker")))
	// A fault in mapped memory becomes a panic, which a Filler turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for {
		t := ld.assign(w)
		w.filler.Start(0)
		switch t.kind {
		case batchTask:
			ld.serve(w, t.p, t.s)
		case pieceTask:
			ld.servePiece(w, t)
		case endTask:
			ended = true
			return
		}
	}
}

// serve makes the batch of s and hands it over, or splits it among the workers.
func (ld *Loader) serve(w *worker, p *pass, s *slot) {
	defer trace.StartRegion(p.ctx, "loader: batch").End()
	split, err := false, errGoexit
	defer func() {
		if !split { // else s is not ours any more
			s.err = err
			ld.filled(p, s, w)
		}
	}()
	defer w.filler.Catch(&err) // of what is not caught nearer to a record: Report, Allocator
	split, err = ld.makeBatch(w, p, s)
	err = ld.located(p.ctx, s.batch, err)
}

// makeBatch makes the batch of s, or splits it: then s is not the caller's any more.
func (ld *Loader) makeBatch(w *worker, p *pass, s *slot) (split bool, err error) {
	b := s.batch
	if err := w.filler.Choose(p.ctx, b, s.part.order, s.step, s.tick); err != nil {
		return false, err
	}
	if s.opens && b.IsView() {
		ld.open(p)
	}
	warmth := fill.Unknown
	if s.inline && p.warm {
		warmth = fill.Warm // the loop has looked
	}
	if err := w.filler.View(p.ctx, b, warmth); err != nil {
		return false, err
	}
	if s.opens && !b.IsView() && ld.divide(p, s) {
		return true, nil
	}
	if err := w.filler.Fill(p.ctx, b, 0, b.Len()); err != nil {
		return false, err
	}
	return false, w.filler.Seal(p.ctx, b)
}

// servePiece fills a piece of a batch. The worker that fills the last piece hands the batch over.
func (ld *Loader) servePiece(w *worker, t task) {
	s, n := t.s, t.s.batch.Len()
	lo, hi := t.piece*n/s.pieces.n, (t.piece+1)*n/s.pieces.n
	err := errGoexit
	defer func() {
		if !ld.pieceDone(t.p, s, lo, err, w) {
			return
		}
		defer ld.filled(t.p, s, w)
		if s.err == nil {
			s.err = errGoexit
			s.err = ld.seal(w, t.p, s)
		}
	}()
	defer w.filler.Catch(&err)
	defer trace.StartRegion(t.p.ctx, "loader: piece of the first batch").End()
	w.filler.Join()
	err = w.filler.Fill(t.p.ctx, s.batch, lo, hi)
	err = ld.located(t.p.ctx, s.batch, err)
}

// seal ends the filling of a batch that several workers made.
func (ld *Loader) seal(w *worker, p *pass, s *slot) (err error) {
	defer w.filler.Catch(&err)
	return ld.located(p.ctx, s.batch, w.filler.Seal(p.ctx, s.batch))
}

// errGoexit is what a batch fails with if its filling neither returned nor panicked.
var errGoexit = errors.New("runtime.Goexit was called by the Source, a Transform or Collate")
