package loader

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/penstock/penstock/tensor"
)

// worker is a goroutine that fills slots.
type worker struct {
	ld    *Loader
	ahead []int // record numbers of a batch to come
	slow  bool  // the last batch was not read at the speed of memory
}

// start starts the workers, once. The caller holds mu.
func (ld *Loader) start() {
	if ld.started {
		return
	}
	ld.started = true
	for range ld.opts.Workers {
		ld.workers.Go(ld.newWorker().run)
	}
}

func (ld *Loader) newWorker() *worker {
	return &worker{ld: ld, ahead: make([]int, ld.opts.BatchSize), slow: true}
}

// run fills slots until the Loader is closed.
func (w *worker) run() {
	ended := false
	defer func() {
		if !ended { // the Source called runtime.Goexit: go on in a new goroutine
			w.ld.workers.Go(w.run)
		}
	}()
	// A fault in mapped memory becomes a panic, which fill turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for {
		e, s := w.ld.assign()
		if e == nil {
			break
		}
		w.serve(e, s)
	}
	ended = true
}

// assign waits for a step to fill and a free slot for it; nil means that the Loader is
// closed. Steps are assigned in order, so that all before e.next have a slot: whatever is
// kept, the step that the consumer waits for gets done.
func (ld *Loader) assign() (*epoch, *slot) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	for {
		e := ld.epoch
		switch {
		case ld.closed:
			return nil, nil
		case e != nil && e.next < e.end && len(ld.free) > 0:
			last := len(ld.free) - 1
			s := ld.free[last]
			ld.free = ld.free[:last]
			s.step = e.next
			ld.window[s.step%len(ld.window)] = s
			e.next++
			e.filling++
			return e, s
		}
		ld.work.Wait()
	}
}

// serve fills s and hands it over.
func (w *worker) serve(e *epoch, s *slot) {
	s.err = errGoexit
	defer w.ld.filled(e, s)
	s.err = w.fill(e, s)
}

// errGoexit is what a batch fails with if its filling neither returned nor panicked.
var errGoexit = errors.New("the Source called runtime.Goexit")

// filled marks s as done. After a failure no later step is begun.
func (ld *Loader) filled(e *epoch, s *slot) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	s.done = true
	e.filling--
	if s.err != nil {
		s.err = e.errorOf(s)
		e.end = min(e.end, e.next)
	}
	if s.step == e.deliver || e.filling == 0 {
		ld.ready.Signal()
	}
}

// errorOf returns why s could not be filled, with its place.
func (e *epoch) errorOf(s *slot) error {
	if located, ok := s.err.(*Error); ok {
		return located
	}
	return &Error{e.number, s.step, "", -1, s.err}
}

// catch is deferred around code of the Source and the Order: a panic becomes an error with
// the stack that led to it. A fault in mapped memory is such a panic.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// fill makes batch s.step in s.
func (w *worker) fill(e *epoch, s *slot) (err error) {
	defer catch(&err)
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if err := w.choose(e, s); err != nil {
		return err
	}
	w.hint(e, s)
	began := time.Now()
	if err := w.read(e, s); err != nil {
		return err
	}
	w.slow = time.Since(began) > w.warmTime(s)
	return nil
}

// choose sets the records of s.
func (w *worker) choose(e *epoch, s *slot) error {
	pos := s.step * w.ld.opts.BatchSize
	s.indices = s.all[:min(w.ld.opts.BatchSize, e.records-pos)]
	e.seq.Fill(pos, s.indices)
	if i := outside(s.indices, w.ld.src.Len()); i >= 0 {
		return fmt.Errorf("the Order puts record %d at position %d, but the Source has %d records", s.indices[i], pos+i, w.ld.src.Len())
	}
	return nil
}

// outside returns the position of the first index that is not in [0, n), or -1.
func outside(indices []int, n int) int {
	for i, r := range indices {
		if uint(r) >= uint(n) {
			return i
		}
	}
	return -1
}

// read fills the fields of s.
func (w *worker) read(e *epoch, s *slot) error {
	if err := w.ld.src.Retain(); err != nil {
		return err
	}
	s.leased = true
	s.viewed, s.copied = 0, 0
	run := runLength(s.indices) == len(s.indices)
	for f := range w.ld.specs {
		if err := w.readField(e, s, f, run); err != nil {
			return w.locate(e, s, f, err)
		}
	}
	if s.viewed == 0 {
		s.unlease()
	}
	return nil
}

// readField fills field f of s: with a view if the records are one run of the Source.
func (w *worker) readField(e *epoch, s *slot, f int, run bool) error {
	ld, n, a := w.ld, len(s.indices), s.indices[0]
	spec := &ld.specs[f]
	if run && (ld.pieces == nil || ld.pieces.Contiguous(spec.Name, a, a+n)) {
		return w.view(s, f, a, a+n)
	}
	dst, err := s.buffer(f, n)
	if err != nil {
		return err
	}
	if err := w.gather(e, spec.Name, s.indices, dst); err != nil {
		return err
	}
	s.views[f] = tensor.Of(*spec, n, dst)
	s.copied += int64(len(dst))
	return nil
}

// view makes field f of s a view of records [a, b) of the Source.
func (w *worker) view(s *slot, f, a, b int) (err error) {
	defer catch(&err)
	ld, name := w.ld, w.ld.specs[f].Name
	if ld.warmer != nil {
		if err := ld.warmer.Warm(name, a, b); err != nil {
			return err
		}
	}
	v, err := ld.src.Run(name, a, b)
	if err != nil {
		return err
	}
	if v.Len() != b-a {
		return fmt.Errorf("the Source's Run returned %d records, not %d", v.Len(), b-a)
	}
	s.views[f] = v
	s.viewed += int64(len(v.Bytes()))
	return nil
}

// gather has the Source copy records.
func (w *worker) gather(e *epoch, field string, indices []int, dst []byte) (err error) {
	defer catch(&err)
	return w.ld.src.Gather(e.ctx, field, indices, dst)
}

// locate finds the record that reading field f failed on, by reading them one by one unless
// cause names it.
func (w *worker) locate(e *epoch, s *slot, f int, cause error) error {
	found := &Error{e.number, s.step, w.ld.specs[f].Name, -1, cause}
	var named recordError
	if errors.As(cause, &named) {
		found.Record = named.Record()
		return found
	}
	one := make([]byte, w.ld.bytes[f])
	for i := range s.indices {
		err := w.gather(e, found.Field, s.indices[i:i+1], one)
		if e.ctx.Err() != nil {
			break
		}
		if err != nil {
			found.Record, found.Err = s.indices[i], err
			break
		}
	}
	return found
}

// runLength returns how many records from the first on follow each other in the Source.
func runLength(indices []int) int {
	n := 1
	for n < len(indices) && indices[n] == indices[0]+n {
		n++
	}
	return n
}
