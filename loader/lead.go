package loader

import "github.com/penstock/penstock/internal/vec"

// How much is asked for from memory before its turn: so many bytes of records, of at most so
// many, and of each so much of its front. Of a long record the processor asks for the rest by
// itself once it has seen that.
const (
	leadBytes   = 4 << 10
	leadRecords = 8
	leadFront   = 1 << 10
)

// lead holds the stored bytes of records that are about to be transformed, which are under way
// to the processor's cache meanwhile.
type lead [leadRecords][]byte

// start returns how many records of a size are asked for ahead.
func (l *lead) start(size int) int {
	clear(l[:])
	return min(max(1, leadBytes/max(1, size)), leadRecords-1)
}

// take returns what was asked for the place i of the batch, if anything.
func (l *lead) take(i int) []byte {
	src := l[i%leadRecords]
	l[i%leadRecords] = nil
	return src
}

// ask has a record of field f, whose place in the batch is i, loaded to the cache if its memory
// is warm. All else, and what fails, is read when it is its turn, so that nothing is taken for
// the time or the fault of another record.
func (w *worker) ask(f, i, record int) {
	name := w.ld.fields[f].in.Name
	if w.ld.warmth == nil || w.ld.fields[f].in.Ragged {
		return
	}
	var err error
	defer w.catch(&err)
	if !w.ld.warmth.IsWarm(name, record, record+1) {
		return
	}
	if v, err := w.ld.src.Run(name, record, record+1); err == nil && v.Len() == 1 {
		src := v.Bytes()
		vec.Prefetch(src[:min(len(src), leadFront)])
		w.lead[i%leadRecords] = src
	}
}
