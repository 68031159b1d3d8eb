package loader

import "time"

// What reading from memory takes at most: a look-up per run of records, and the copying.
const (
	warmRun   = 5 * time.Microsecond
	warmSpeed = 4 // bytes per nanosecond
)

// warmTime returns the longest that reading s should take if its records are in memory.
func (w *worker) warmTime(s *slot) time.Duration {
	runs := 0
	for rest := s.indices; len(rest) > 0; rest = rest[runLength(rest):] {
		runs++
	}
	copied := time.Duration((s.copied + s.viewed) / warmSpeed)
	return copied + time.Duration(runs*len(w.ld.specs))*warmRun
}

// hint asks the Source to start reading the batch that this worker will fill after s, so
// that storage works on it while s is copied. A hint costs a system call per run of
// records; so none is given while the reads are as fast as memory.
//
// The first batches of an epoch have nobody to hint them, and do it for themselves.
func (w *worker) hint(e *epoch, s *slot) {
	if !w.slow {
		return
	}
	if s.step < w.ld.opts.Workers {
		w.prefetch(s.indices)
	}
	pos := (s.step + w.ld.opts.Workers) * w.ld.opts.BatchSize
	if pos < e.records {
		next := w.ahead[:min(len(w.ahead), e.records-pos)]
		e.seq.Fill(pos, next)
		if outside(next, w.ld.src.Len()) < 0 {
			w.prefetch(next)
		}
	}
}

// prefetch hints each run of records in each field.
func (w *worker) prefetch(indices []int) {
	for len(indices) > 0 {
		n := runLength(indices)
		for f := range w.ld.specs {
			// The read that follows reports what is wrong.
			_ = w.ld.src.Prefetch(w.ld.specs[f].Name, indices[0], indices[0]+n)
		}
		indices = indices[n:]
	}
}
