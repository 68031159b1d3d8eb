package loader

import (
	"time"

	"github.com/penstock/penstock/internal/kernel"
)

// Upper bounds of reading from memory: a look-up per run of records, and the copying.
const (
	warmRun   = 5 * time.Microsecond
	warmSpeed = 4 // bytes per nanosecond
)

// warmTime returns the longest that reading the given bytes of records should take if they
// are in memory.
func warmTime(indices []int, bytes int) time.Duration {
	runs := 0
	for ; len(indices) > 0; indices = indices[runLength(indices):] {
		runs++
	}
	return time.Duration(bytes/warmSpeed) + time.Duration(runs)*warmRun
}

// prefetchBytes is the largest size that one call asks for. It keeps storage busy until the worker gets to
// that batch, which asks for the rest; many reads at once keep the kernel, and so other
// goroutines, from their processors.
const prefetchBytes = 2 << 20

// prefetchNext asks the Source to start reading the front of the batch that this worker will fill
// after s, so that storage works on it while s is filled. It costs a system call per run
// of records; so none is given while the reads are as fast as memory.
//
// The first batches of a pass have nobody to announce them, and do it for themselves.
func (w *worker) prefetchNext(s *slot) {
	if !w.slow {
		return
	}
	defer func() { w.at = w.ld.now() }() // not part of a read
	workers := max(1, w.ld.opts.maxWorkers())
	if s.tick < workers {
		w.prefetch(s.indices)
	}
	if s.step+workers < s.part.steps {
		w.prefetch(w.foresee(s.part, s.step+workers))
	}
}

// foresee returns the records of a batch to come. If they or the Sampler have an error, foresee
// returns none: the worker that makes that batch reports the error.
func (w *worker) foresee(t *part, step int) (next []int) {
	defer func() {
		if recover() != nil {
			next = nil
		}
	}()
	pos, n, pad := t.slice(step)
	next = w.upcoming[:n]
	t.choose(pos, pad, next)
	if outside(next, w.ld.src.Len()) >= 0 {
		return nil
	}
	return next
}

// prefetch announces each run of records in each field, up to prefetchBytes.
func (w *worker) prefetch(indices []int) {
	size := 1
	for f := range w.ld.fields {
		size += w.ld.fields[f].stored
	}
	indices = indices[:min(len(indices), max(1, prefetchBytes/size))]
	for len(indices) > 0 {
		n := runLength(indices)
		for f := range w.ld.fields {
			if fd := &w.ld.fields[f]; !fd.made() {
				// The read that follows reports what is wrong.
				_ = w.ld.src.Prefetch(fd.in.Name, indices[0], indices[0]+n)
			}
		}
		indices = indices[n:]
	}
}

// Limits of what is prefetched from memory: bytes of records, number of records, and bytes from the
// front of each record. The processor prefetches the rest of a long record by itself.
const (
	queueBytes   = 4 << 10
	queueRecords = 8
	leadFront    = 1 << 10
)

// readQueue holds the stored bytes of records that are about to be transformed, which are under way
// to the processor's cache meanwhile.
type readQueue struct {
	src   [queueRecords][]byte // of the place i of the batch at i % queueRecords
	depth int                  // how many places before its turn a record is asked for
	end   int                  // of the places
}

// leadOff asks for the first of places [lo, hi) of field f.
func (w *worker) leadOff(s *slot, f, lo, hi int) {
	l := &w.queue
	clear(l.src[:])
	l.end = hi
	l.depth = min(max(1, queueBytes/max(1, w.ld.fields[f].stored)), queueRecords-1)
	for i := lo; i < min(lo+l.depth, hi); i++ {
		w.ask(f, i, s.indices[i])
	}
}

// leadOn asks for the record whose turn comes some places after i, if there is one.
func (w *worker) leadOn(s *slot, f, i int) {
	if next := i + w.queue.depth; next < w.queue.end {
		w.ask(f, next, s.indices[next])
	}
}

// take returns what was asked for the place i of the batch, if anything.
func (l *readQueue) take(i int) []byte {
	src := l.src[i%queueRecords]
	l.src[i%queueRecords] = nil
	return src
}

// ask has a record of field f, whose place in the batch is i, loaded to the cache if its memory
// is warm. All else, and what fails, is read when it is its turn, so that nothing is taken for
// the time or the fault of another record.
func (w *worker) ask(f, i, record int) {
	name := w.ld.fields[f].in.Name
	if w.ld.can.Mapped == nil || w.ld.fields[f].in.Ragged {
		return
	}
	var err error
	defer w.catch(&err)
	if !w.ld.can.Mapped.IsWarm(name, record, record+1) {
		return
	}
	if v, err := w.ld.src.Slice(name, record, record+1); err == nil && v.Len() == 1 {
		src := v.Bytes()
		kernel.Prefetch(src[:min(len(src), leadFront)])
		w.queue.src[i%queueRecords] = src
	}
}
