package loader

import "github.com/penstock/penstock/internal/kernel"

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
type lead struct {
	src   [leadRecords][]byte // of the place i of the batch at i % leadRecords
	ahead int                 // how many places before its turn a record is asked for
	end   int                 // of the places
}

// leadOff asks for the first of places [lo, hi) of field f.
func (w *worker) leadOff(s *slot, f, lo, hi int) {
	l := &w.lead
	clear(l.src[:])
	l.end = hi
	l.ahead = min(max(1, leadBytes/max(1, w.ld.fields[f].stored)), leadRecords-1)
	for i := lo; i < min(lo+l.ahead, hi); i++ {
		w.ask(f, i, s.indices[i])
	}
}

// leadOn asks for the record whose turn comes some places after i, if there is one.
func (w *worker) leadOn(s *slot, f, i int) {
	if next := i + w.lead.ahead; next < w.lead.end {
		w.ask(f, next, s.indices[next])
	}
}

// take returns what was asked for the place i of the batch, if anything.
func (l *lead) take(i int) []byte {
	src := l.src[i%leadRecords]
	l.src[i%leadRecords] = nil
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
		w.lead.src[i%leadRecords] = src
	}
}
