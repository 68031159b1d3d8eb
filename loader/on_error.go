package loader

import (
	"fmt"

	"github.com/penstock/penstock/internal/permute"
)

// attempts is how many records Backfill draws for one place before it gives up.
const attempts = 16

// backfillKey is the number of the key of those draws.
const backfillKey = 1<<16 + 4

// repair fills places [lo, hi) record by record, and puts other records in the places of
// those that fail.
func (w *worker) repair(p *pass, s *slot, lo, hi int) error {
	for i := lo; i < hi; i++ {
		err := w.readRange(p, s, i, i+1)
		if err == nil {
			continue
		}
		if p.ctx.Err() != nil {
			return err
		}
		w.at = 0
		failed := err.(*Error) // as readRange returns no other
		w.passOver(failed)
		s.mask[i] = false
		if err := w.substitute(p, s, i, failed); err != nil {
			return err
		}
	}
	return nil
}

// passOver counts and reports a record that was.
func (w *worker) passOver(e *Error) {
	w.times.skipped++
	if w.ld.opts.Report != nil {
		w.ld.opts.Report(e)
	}
}

// substitute fills place i, whose own record failed.
func (w *worker) substitute(p *pass, s *slot, i int, failed *Error) error {
	if w.ld.opts.OnError == Blank {
		s.blank(i)
		return nil
	}
	key := permute.Mix64(permute.Key(w.ld.opts.Seed, s.part.number, backfillKey) + uint64(s.position+i))
	for k := range uint64(attempts) {
		s.part.seq.Fill(int(permute.Below(permute.Mix64(key+k*0x9e3779b97f4a7c15), uint64(s.part.records))), s.indices[i:i+1])
		if outside(s.indices[i:i+1], w.ld.src.Len()) < 0 && w.readRange(p, s, i, i+1) == nil {
			return nil
		}
	}
	all := *failed
	all.Err = fmt.Errorf("%w (nor can any of %d records that were drawn in its place)", failed.Err, attempts)
	return &all
}

// blank clears place i of all fields.
func (s *slot) blank(i int) {
	for f := range s.ld.fields {
		size := s.ld.fields[f].size
		clear(s.buffer(f)[i*size : (i+1)*size])
	}
}
