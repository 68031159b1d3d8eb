package loader

import "time"

// What reading from memory takes at most: a look-up per run of records, and the copying.
const (
	warmRun   = 5 * time.Microsecond
	warmSpeed = 4 // bytes per nanosecond
)

// warmTime returns the longest that reading so many bytes of records should take if they
// are in memory.
func warmTime(indices []int, bytes int) time.Duration {
	runs := 0
	for ; len(indices) > 0; indices = indices[runLength(indices):] {
		runs++
	}
	return time.Duration(bytes/warmSpeed) + time.Duration(runs)*warmRun
}

// hintBytes is the most that one hint asks for. It keeps storage busy until the worker gets to
// that batch, which asks for the rest; many reads at once keep the kernel, and so other
// goroutines, from their processors.
const hintBytes = 2 << 20

// hint asks the Source to start reading the front of the batch that this worker will fill
// after s, so that storage works on it while s is filled. A hint costs a system call per run
// of records; so none is given while the reads are as fast as memory.
//
// The first batches of a pass have nobody to hint them, and do it for themselves.
func (w *worker) hint(s *slot) {
	if !w.slow {
		return
	}
	defer func() { w.at = w.ld.now() }() // it is no part of a read
	crew := max(1, w.ld.opts.crew())
	if s.tick < crew {
		w.prefetch(s.indices)
	}
	if s.step+crew < s.part.steps {
		w.prefetch(w.foresee(s.part, s.step+crew))
	}
}

// foresee returns the records of a batch to come. What is wrong with these, or with the Sampler, whoever
// makes that batch will tell: here there are none then.
func (w *worker) foresee(t *part, step int) (next []int) {
	defer func() {
		if recover() != nil {
			next = nil
		}
	}()
	pos, n, pad := t.slice(step)
	next = w.ahead[:n]
	t.choose(pos, pad, next)
	if outside(next, w.ld.src.Len()) >= 0 {
		return nil
	}
	return next
}

// prefetch hints each run of records in each field, up to hintBytes.
func (w *worker) prefetch(indices []int) {
	size := 1
	for f := range w.ld.fields {
		size += w.ld.fields[f].stored
	}
	indices = indices[:min(len(indices), max(1, hintBytes/size))]
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
