package loader

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/tensor"
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
	w.cold = w.slow && !w.fresh
	w.prefetchNext(s)
	w.slow, w.fresh = false, false
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
	s.position, s.indices, s.mask = pos, s.all[:n], s.allMask[:n]
	if first, is := s.part.runAt(pos, n, pad); is {
		s.run = n
		consecutive(first, s.indices)
	} else {
		w.begin()
		s.part.choose(pos, pad, s.indices)
		w.times.order += w.lap()
		s.run = runLength(s.indices)
	}
	copy(s.mask, w.ld.allValid[:n-pad])
	clear(s.mask[n-pad:])
	if i := s.outside(w.ld.src.Len()); i >= 0 {
		return fmt.Errorf("the Sampler puts record %d at position %d, but the Source has %d records", s.indices[i], pos+i, w.ld.src.Len())
	}
	return nil
}

// fillRange fills places [lo, hi) of all fields that are not views.
func (w *worker) fillRange(p *pass, s *slot, lo, hi int) error {
	err := w.readRange(p, s, lo, hi)
	if err != nil && w.ld.opts.OnError != Fail && p.ctx.Err() == nil {
		err = w.repair(p, s, lo, hi, err.(*Error), func(i int) error { return w.readRange(p, s, i, i+1) })
	}
	return err
}

// readRange is fillRange that fails. Its error is an *Error.
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
		w.mark.set(s, f, s.indices[i])
		if err := w.gather(p.ctx, fd.in.Name, s.indices[i:i+step], dst[(i-lo)*fd.size:(i-lo+step)*fd.size]); err != nil {
			return w.locate(p, s, f, lo, hi, err)
		}
	}
	w.read(w.lap(), s.indices[lo:hi], len(dst))
	return nil
}

// read notes how long it took to read a field of some records.
func (w *stopwatch) read(took time.Duration, indices []int, bytes int) {
	w.times.read += took
	w.times.bytes += int64(bytes)
	if took > time.Duration(bytes/warmSpeed) && took > warmTime(indices, bytes) {
		w.slow = true
		w.times.slow += took
	}
}

// gather has the Source copy records.
func (w *worker) gather(ctx context.Context, field string, indices []int, dst []byte) (err error) {
	defer w.catch(&err)
	return w.ld.src.Gather(ctx, field, indices, dst)
}

// Looking at the clock takes as long as a small record. So it is looked at twice for as many
// records as should take pieceTime, a hundred times as long as two looks: when the first of them
// was read, and when all are done.
const (
	pieceTime = 16 * time.Microsecond
	mostTimed = 64 // records at most: any of them may be the slow one
)

// together returns how many records of field f are timed as one, by what the last ones took.
func (w *stopwatch) together(f int) int {
	return min(mostTimed, int(max(1, pieceTime/max(1, w.pace[f]))))
}

// convert transforms places [lo, hi) of field f from the Source's memory, or as many at a time as are staged.
func (w *worker) convert(p *pass, s *slot, f, lo, hi int, dst []byte) error {
	size := w.ld.fields[f].size
	for from := lo; from < hi; {
		began := w.at
		to, staged := w.stage(p, s, f, from, hi)
		if !staged {
			w.leadOff(s, f, from, to)
		}
		if err := w.convertAll(p, s, f, from, to, dst[(from-lo)*size:(to-lo)*size], began); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// convertAll transforms places [lo, hi), for which something was done since began.
func (w *worker) convertAll(p *pass, s *slot, f, lo, hi int, dst []byte, began time.Duration) error {
	fd, step := &w.ld.fields[f], w.together(f)
	reading := w.lap()
	for from := lo; from < hi; from += step {
		to := min(from+step, hi)
		read, err := w.convertSome(p, s, f, from, to, dst[(from-lo)*fd.size:(to-lo)*fd.size])
		if err != nil {
			return err
		}
		read -= w.at
		took := w.lap()
		reading += min(took, read*time.Duration(to-from))
		w.times.record(f, s.indices[from], to-from, took)
	}
	took := w.at - began
	w.pace[f] = took / time.Duration(max(1, hi-lo))
	w.times.transform += took - reading
	w.read(reading, s.indices[lo:hi], int(s.rowsOf(f, lo, hi))*fd.stored)
	return nil
}

// rowsOf returns how many rows the Source has of places [lo, hi) of field f: one a record, or of
// variable length as many as offsets says, which are lengths until seal.
func (s *slot) rowsOf(f, lo, hi int) int64 {
	if !s.ld.fields[f].in.Ragged {
		return int64(hi - lo)
	}
	rows := int64(0)
	for _, n := range s.offsets[f][lo+1 : hi+1] {
		rows += n
	}
	return rows
}

// convertSome transforms places [lo, hi) and returns when the first record was there.
func (w *worker) convertSome(p *pass, s *slot, f, lo, hi int, dst []byte) (first time.Duration, err error) {
	size := w.ld.fields[f].size
	r := Record{Epoch: s.part.number, Seed: w.ld.opts.Seed, repeats: w.ld.repeats}
	for i := lo; i < hi; i++ {
		r.Index, r.Position = s.indices[i], s.position+i
		w.mark.set(s, f, r.Index)
		src := w.queue.take(i)
		w.leadOn(s, f, i)
		read, err := w.convertOne(p.ctx, f, dst[(i-lo)*size:(i-lo+1)*size], src, r, i == lo)
		if err != nil {
			return 0, w.ld.name(p.ctx, w.ld.place(&Error{Epoch: r.Epoch, Batch: s.step, Field: w.ld.fields[f].in.Name, Record: r.Index, Err: err}))
		}
		if i == lo {
			first = read
		}
		if w.ld.fields[f].in.Ragged {
			s.offsets[f][i+1] = w.ends[1] // lengths, until seal adds them up
		}
	}
	return first, nil
}

// convertOne transforms a record, which it reads unless src has it, and returns when it was
// there if that is to be timed.
func (w *worker) convertOne(ctx context.Context, f int, dst, src []byte, r Record, timed bool) (read time.Duration, err error) {
	defer w.catch(&err)
	if err := ctx.Err(); err != nil {
		return read, err
	}
	if src == nil {
		if src, err = w.stored(ctx, &w.ld.fields[f], r.Index); err != nil {
			return read, err
		}
	}
	if timed {
		read = w.ld.now()
	}
	if err := w.funcs[f](dst, src, r); err != nil {
		return read, fmt.Errorf("transform: %w", err)
	}
	return read, nil
}

// stored returns the bytes of a record: the Source's memory, or a copy where it has none.
func (w *worker) stored(ctx context.Context, fd *field, record int) ([]byte, error) {
	ld, name := w.ld, fd.in.Name
	if ld.can.Contiguous(name, record, record+1) {
		v, err := w.ld.show(fd, record, record+1, w.ends[:])
		return v.Bytes(), err
	}
	if fd.in.Ragged {
		var err error
		w.scratch, err = ld.can.Ragged.GatherRagged(ctx, name, w.single.of(record), w.ends[:], w.scratch)
		return w.scratch, err
	}
	src := w.scratch.room(fd.stored)
	return src, ld.src.Gather(ctx, name, w.single.of(record), src)
}

// plan chooses the fields that can be views: if the records are one run of the Source, and
// nobody wants them in memory of his own.
func (w *worker) plan(s *slot) {
	ld, n, a := w.ld, len(s.indices), s.indices[0]
	if s.own != nil || !ld.mayView || ld.opts.OnError != Fail && !ld.viewable || s.run < n {
		return
	}
	for f := range ld.fields {
		fd := &ld.fields[f]
		s.viewing[f] = fd.viewable() && ld.can.Contiguous(fd.in.Name, a, a+n)
	}
	if ld.opts.OnError != Fail && !s.viewOnly() {
		clear(s.viewing) // what repair puts in the place of a record, it puts there in all fields
	}
}

// views makes the views of s.
func (w *worker) views(p *pass, s *slot) error {
	if !s.anyView() {
		return nil
	}
	a, n, bytes := s.indices[0], len(s.indices), 0
	w.begin()
	for f, viewing := range s.viewing {
		if !viewing {
			continue
		}
		if err := w.view(p, s, f, a, a+n); err != nil {
			if w.ld.opts.OnError == Fail {
				return w.locate(p, s, f, 0, n, err)
			}
			clear(s.viewing) // repair gathers the good records
			return nil
		}
		bytes += len(s.views[f].Bytes())
	}
	w.read(w.lap(), s.indices[:1], bytes) // of one run
	return nil
}

// view makes field f of s a view of records [a, b) of the Source.
func (w *worker) view(p *pass, s *slot, f, a, b int) (err error) {
	defer w.catch(&err)
	w.mark.set(s, f, a)
	if w == w.ld.hands && p.warm { // the loop has looked
		s.views[f], err = w.ld.slice(&w.ld.fields[f], a, b, s.offsets[f])
	} else {
		s.views[f], err = w.ld.show(&w.ld.fields[f], a, b, s.offsets[f])
	}
	return err
}

// show returns records [a, b) as memory of the Source that is warm, and the offsets of a
// ragged field.
func (c *setup) show(fd *field, a, b int, offsets []int64) (v tensor.View, err error) {
	name := fd.in.Name
	if c.can.Mapped != nil {
		if err := c.can.Mapped.Warm(name, a, b); err != nil {
			return v, err
		}
	}
	return c.slice(fd, a, b, offsets)
}

// slice is show for memory that is warm.
func (c *setup) slice(fd *field, a, b int, offsets []int64) (v tensor.View, err error) {
	name := fd.in.Name
	if fd.in.Ragged {
		return c.can.Ragged.SliceRagged(name, a, b, offsets[:b-a+1])
	}
	v, err = c.src.Slice(name, a, b)
	if err == nil && v.Len() != b-a {
		err = fmt.Errorf("the Source's Slice returned %d records, not %d", v.Len(), b-a)
	}
	return v, err
}

// viewOnly reports whether nothing is left to fill.
func (s *slot) viewOnly() bool {
	for f := range s.viewing {
		if !s.viewing[f] {
			return false
		}
	}
	return true
}

// anyView reports whether a field is memory of the Source.
func (s *slot) anyView() bool {
	for _, v := range s.viewing {
		if v {
			return true
		}
	}
	return false
}

// single is room for the list of one record.
type single [1]int

// of returns the list, valid until the next call.
func (l *single) of(record int) []int {
	l[0] = record
	return l[:]
}
