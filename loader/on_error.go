package loader

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/permute"
)

// attempts is how many records Backfill draws for one place before it gives up.
const attempts = 16

// backfillKey is the number of the key of those draws.
const backfillKey = 1<<16 + 4

// repair reads places [lo, hi) one by one, and puts other records in the places of those that fail. The record that
// failed first counts as failed, also if it can be read now.
func (w *worker) repair(p *pass, s *slot, lo, hi int, first *Error, read func(i int) error) error {
	for i := lo; i < hi; i++ {
		failed := first
		if s.indices[i] != first.Record {
			err := read(i)
			if err == nil {
				continue
			}
			failed = err.(*Error)
		}
		if err := w.replace(p, s, i, failed); err != nil {
			return err
		}
	}
	return nil
}

// probeRagged reads those fields of place i that are gathered when all places are settled. Its error is an *Error.
func (w *worker) probeRagged(p *pass, s *slot, i int) error {
	for f := range w.ld.fields {
		if w.ld.fields[f].ragged {
			if err := w.probe(p, f, s.indices[i]); err != nil {
				return w.locate(p, s, f, i, i+1, err)
			}
		}
	}
	return nil
}

// replace decides, for all fields, what is in place i, whose own record failed.
func (w *worker) replace(p *pass, s *slot, i int, failed *Error) error {
	if p.ctx.Err() != nil {
		return failed
	}
	w.at = 0
	w.passOver(failed)
	s.mask[i] = false
	if w.ld.opts.OnError == Blank {
		s.blank(i)
		return nil
	}
	key := permute.Mix64(permute.Key(w.ld.opts.Seed, s.part.number, backfillKey) + uint64(s.position+i))
	for k := range uint64(attempts) {
		s.part.seq.Fill(int(permute.Below(permute.Mix64(key+k*0x9e3779b97f4a7c15), uint64(s.part.records))), s.indices[i:i+1])
		if outside(s.indices[i:i+1], w.ld.src.Len()) < 0 && w.readRange(p, s, i, i+1) == nil && w.probeRagged(p, s, i) == nil {
			return nil
		}
	}
	all := *failed
	all.Err = fmt.Errorf("%w (nor can any of %d records that were drawn in its place)", failed.Err, attempts)
	return &all
}

// passOver counts and reports a record that was.
func (w *stopwatch) passOver(e *Error) {
	w.times.skipped++
	if w.set.opts.Report != nil {
		w.set.opts.Report(e)
	}
}

// blank clears place i of all fields, each of which has one length. A record of variable length that a Transform would
// have made one of has no rows.
func (s *slot) blank(i int) {
	for f := range s.ld.fields {
		size := s.ld.fields[f].size
		clear(s.buffer(f)[i*size : (i+1)*size])
		if s.offsets[f] != nil {
			s.offsets[f][i+1] = 0 // a length, until seal adds them up
		}
	}
}

// has reports whether the batch has the record of an error.
func (s *slot) has(e *Error) bool { return e.Record >= 0 && slices.Contains(s.indices, e.Record) }
