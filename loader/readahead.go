package loader

import (
	"slices"
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
// of records; so none is given while the reads are as fast as memory, nor for long records that are
// gathered: the Source has enough reads of those under way by itself, and pages that are announced as well
// made it slower.
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
	for room := max(1, prefetchBytes/size); len(indices) > 0 && room > 0; {
		n := runLength(indices)
		first := indices[0]
		for f := range w.ld.fields {
			if fd := &w.ld.fields[f]; !fd.made() && (n > 1 || fd.stored < longRecord || !w.ld.gathers(fd, first, w.cold)) {
				// The read that follows reports what is wrong.
				_ = w.ld.src.Prefetch(fd.in.Name, first, first+min(n, room))
			}
		}
		indices, room = indices[n:], room-n
	}
}

// longRecord is the size from which a record is worth a read of its own.
const longRecord = 64 << 10

// gathers reports whether a record that is stored as it is, is read by Gather together with others: those that are
// copied, and those that are transformed while batches are cold. Where a Timeout is to name the record that hangs,
// they are read one by one; so are those that are longer than what a worker may stage.
func (c *setup) gathers(fd *field, record int, cold bool) bool {
	return c.can.Mapped != nil && c.can.Contiguous(fd.in.Name, record, record+1) &&
		(fd.transform == nil || cold && !fd.in.Ragged && c.opts.Timeout == 0 && fd.stored <= c.stage)
}

// mostStaged is how many bytes of stored records all workers stage together: 32 reads of 2 MiB, which keep storage busy.
const mostStaged = 64 << 20

// stage returns how many bytes each worker may stage, and the loop itself: a share of mostStaged, or of what Budget leaves.
func (o Options) stage(fields []field, stride int) int {
	room := mostStaged
	if o.Budget > 0 {
		room = min(room, o.Budget-o.mostSlots()*stride)
		if slices.ContainsFunc(fields, func(f field) bool { return f.ragged }) { // whose rows have the rest
			room = 0
		}
	}
	return room / (o.maxWorkers() + 1)
}

// stage gathers the first of places [lo, hi) of field f before they are transformed, if the last batch was cold: the
// Source reads many of them at once, where transforms would wait for each record by itself. It returns the end of those
// that it looked at. Records that cannot be gathered are read one by one, for the error of that record.
func (w *worker) stage(p *pass, s *slot, f, lo, hi int) (end int, staged bool) {
	fd, l := &w.ld.fields[f], &w.queue
	l.staged = nil
	if !w.ld.gathers(fd, s.indices[lo], w.cold) {
		return hi, false
	}
	n := min(hi-lo, w.ld.stage/max(1, fd.stored))
	dst := w.scratch.room(n * fd.stored)
	if w.gather(p.ctx, fd.in.Name, s.indices[lo:lo+n], dst) != nil {
		return lo + n, false
	}
	l.staged, l.first, l.size, l.end = dst, lo, fd.stored, 0
	return lo + n, true
}

// scratch is memory for stored records, which grows to what is asked for.
type scratch []byte

// room returns n bytes, valid until the next call.
func (b *scratch) room(n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
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

	staged []byte // records of the places, from the first on; nil unless they were gathered
	first  int
	size   int // of a record there
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
	if l.staged != nil {
		at := (i - l.first) * l.size
		return l.staged[at : at+l.size : at+l.size]
	}
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
