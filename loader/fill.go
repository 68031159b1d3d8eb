package loader

import (
	"context"
	"fmt"
	"time"
)

// prepare chooses the records of s, and which of its fields shall be views. It reads nothing.
func (w *worker) prepare(p *pass, s *slot) (err error) {
	defer w.catch(&err)
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if err := w.choose(s); err != nil {
		return err
	}
	w.hint(s)
	w.slow = false
	if err := w.ld.src.Retain(); err != nil {
		return err
	}
	s.leased = true
	w.plan(s)
	return nil
}

// choose sets the records of s.
func (w *worker) choose(s *slot) error {
	pos, n, pad := s.part.slice(s.step)
	s.position, s.indices, s.valid = pos, s.all[:n], s.allValid[:n]
	if first, is := s.part.runAt(pos, n, pad); is {
		s.run = n
		consecutive(first, s.indices)
	} else {
		w.begin()
		s.part.choose(pos, pad, s.indices)
		w.spent.order += w.lap()
		s.run = runLength(s.indices)
	}
	copy(s.valid, w.ld.allValid[:n-pad])
	clear(s.valid[n-pad:])
	if i := s.outside(w.ld.src.Len()); i >= 0 {
		return fmt.Errorf("the Sampler puts record %d at position %d, but the Source has %d records", s.indices[i], pos+i, w.ld.src.Len())
	}
	return nil
}

// fillRange fills places [lo, hi) of all fields that are no views.
func (w *worker) fillRange(p *pass, s *slot, lo, hi int) error {
	err := w.readRange(p, s, lo, hi)
	if err != nil && w.ld.opts.OnError != Fail && p.ctx.Err() == nil {
		err = w.mend(p, s, lo, hi)
	}
	return err
}

// readRange is fillRange that fails.
func (w *worker) readRange(p *pass, s *slot, lo, hi int) error {
	if s.viewOnly() {
		return nil
	}
	w.begin()
	for f := range w.ld.fields {
		fd := &w.ld.fields[f]
		if s.viewing[f] || fd.made() || fd.ragged {
			continue
		}
		var err error
		dst := s.buffer(f)[lo*fd.size : hi*fd.size]
		if fd.transform != nil {
			err = w.convert(p, s, f, lo, hi, dst)
		} else {
			err = w.copy(p, s, f, lo, hi, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copy gathers places [lo, hi) of field f.
func (w *worker) copy(p *pass, s *slot, f, lo, hi int, dst []byte) error {
	fd := &w.ld.fields[f]
	step := hi - lo
	if w.ld.opts.Timeout > 0 {
		step = 1
	}
	for i := lo; i < hi; i += step {
		w.mark(s, f, s.indices[i])
		if err := w.gather(p.ctx, fd.in.Name, s.indices[i:i+step], dst[(i-lo)*fd.size:(i-lo+step)*fd.size]); err != nil {
			return w.locate(p, s, f, lo, hi, err)
		}
	}
	w.read(w.lap(), s.indices[lo:hi], len(dst))
	return nil
}

// read notes how long it took to read a field of some records.
func (w *worker) read(took time.Duration, indices []int, bytes int) {
	if w.ld.uncounted {
		return
	}
	w.spent.read += took
	w.spent.bytes += int64(bytes)
	if took > time.Duration(bytes/warmSpeed) && took > warmTime(indices, bytes) {
		w.slow = true
		w.spent.slow += took
	}
}

// gather has the Source copy records.
func (w *worker) gather(ctx context.Context, field string, indices []int, dst []byte) (err error) {
	defer w.catch(&err)
	return w.ld.src.Gather(ctx, field, indices, dst)
}
