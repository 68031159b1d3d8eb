package loader

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/penstock/penstock/tensor"
)

// catch is deferred around code of the Source, the Order and the caller: a panic becomes an
// error with the stack that led to it. A fault in mapped memory is such a panic.
func (w *worker) catch(err *error) {
	if w.plain {
		return
	}
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

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
	s.part.choose(pos, pad, s.indices)
	for i := range s.valid {
		s.valid[i] = i < n-pad
	}
	if i := outside(s.indices, w.ld.src.Len()); i >= 0 {
		return fmt.Errorf("the Order puts record %d at position %d, but the Source has %d records", s.indices[i], pos+i, w.ld.src.Len())
	}
	return nil
}

// outside returns the position of the first index that is not in [0, n), or -1.
func outside(indices []int, n int) int {
	for i, r := range indices {
		if uint(r) >= uint(n) {
			return i
		}
	}
	return -1
}

// plan chooses the fields that can be views: if the records are one run of the Source, and
// nobody wants them in memory of his own.
func (w *worker) plan(s *slot) {
	ld, n, a := w.ld, len(s.indices), s.indices[0]
	if s.own != nil || ld.opts.Memory != nil || ld.opts.OnError != Fail && !ld.viewable || runLength(s.indices) < n {
		return
	}
	for f := range ld.fields {
		fd := &ld.fields[f]
		s.viewing[f] = fd.viewable() && (ld.pieces == nil || ld.pieces.Contiguous(fd.in.Name, a, a+n))
	}
}

// viewAll makes the views of s, and has room for the rest.
func (w *worker) viewAll(p *pass, s *slot) error {
	if err := w.views(p, s); err != nil {
		return err
	}
	return s.room()
}

func (w *worker) views(p *pass, s *slot) error {
	if !s.anyView() {
		return nil
	}
	a, n, bytes, began := s.indices[0], len(s.indices), 0, time.Now()
	for f, viewing := range s.viewing {
		if !viewing {
			continue
		}
		if err := w.view(s, f, a, a+n); err != nil {
			if w.ld.opts.OnError == Fail {
				return w.locate(p, s, f, 0, n, err)
			}
			clear(s.viewing) // mend gathers what is well
			return nil
		}
		bytes += len(s.views[f].Bytes())
	}
	w.read(time.Since(began), s.indices[:1], bytes) // of one run
	return nil
}

// view makes field f of s a view of records [a, b) of the Source.
func (w *worker) view(s *slot, f, a, b int) (err error) {
	defer w.catch(&err)
	w.mark(s, f, a)
	s.views[f], err = w.show(&w.ld.fields[f], a, b, s.offsets[f])
	return err
}

// show returns records [a, b) as memory of the Source that is warm, and the offsets of a
// ragged field.
func (w *worker) show(fd *field, a, b int, offsets []int64) (v tensor.View, err error) {
	ld, name := w.ld, fd.in.Name
	if ld.warmer != nil {
		if err := ld.warmer.Warm(name, a, b); err != nil {
			return v, err
		}
	}
	if fd.in.Ragged {
		return ld.ragged.RunRagged(name, a, b, offsets[:b-a+1])
	}
	v, err = ld.src.Run(name, a, b)
	if err == nil && v.Len() != b-a {
		err = fmt.Errorf("the Source's Run returned %d records, not %d", v.Len(), b-a)
	}
	return v, err
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
	began, step := time.Now(), hi-lo
	if w.ld.opts.Timeout > 0 {
		step = 1
	}
	for i := lo; i < hi; i += step {
		w.mark(s, f, s.indices[i])
		if err := w.gather(p.ctx, fd.in.Name, s.indices[i:i+step], dst[(i-lo)*fd.size:(i-lo+step)*fd.size]); err != nil {
			return w.locate(p, s, f, lo, hi, err)
		}
	}
	w.read(time.Since(began), s.indices[lo:hi], len(dst))
	return nil
}

// read notes how long it took to read a field of some records.
func (w *worker) read(took time.Duration, indices []int, bytes int) {
	w.spent.read += took
	w.spent.bytes += int64(bytes)
	if took > warmTime(indices, bytes) {
		w.slow = true
		w.spent.slow += took
	}
}

// gather has the Source copy records.
func (w *worker) gather(ctx context.Context, field string, indices []int, dst []byte) (err error) {
	defer w.catch(&err)
	return w.ld.src.Gather(ctx, field, indices, dst)
}

// sampled is how many records there are to one whose read is timed by itself, where records
// are small.
const sampled = 8

// convert transforms places [lo, hi) of field f from the Source's memory.
func (w *worker) convert(p *pass, s *slot, f, lo, hi int, dst []byte) error {
	fd := &w.ld.fields[f]
	every := 1
	if fd.size < 16<<10 {
		every = sampled
	}
	var reading time.Duration
	began := time.Now()
	last := began
	r := Record{Epoch: s.part.number, Seed: w.ld.opts.Seed, repeats: w.ld.repeats}
	for i := lo; i < hi; i++ {
		r.Index, r.Position = s.indices[i], s.position+i
		w.mark(s, f, r.Index)
		timed := (i-lo)%every == 0
		read, err := w.convertOne(p.ctx, f, dst[(i-lo)*fd.size:(i-lo+1)*fd.size], r, timed)
		if err != nil {
			return &Error{r.Epoch, s.step, fd.in.Name, r.Index, err}
		}
		if timed {
			reading += read.Sub(last) * time.Duration(min(every, hi-i))
		}
		if fd.in.Ragged {
			s.offsets[f][i+1] = w.ends[1] // lengths, until seal adds them up
		}
		now := time.Now()
		w.spent.record(f, r.Index, now.Sub(last))
		last = now
	}
	w.spent.transform += max(0, last.Sub(began)-reading)
	w.read(reading, s.indices[lo:hi], (hi-lo)*fd.stored)
	return nil
}

// convertOne transforms a record, and returns when it was read if that is to be timed.
func (w *worker) convertOne(ctx context.Context, f int, dst []byte, r Record, timed bool) (read time.Time, err error) {
	defer w.catch(&err)
	if err := ctx.Err(); err != nil {
		return read, err
	}
	src, err := w.stored(ctx, &w.ld.fields[f], r.Index)
	if err != nil {
		return read, err
	}
	if timed {
		read = time.Now()
	}
	if err := w.funcs[f](dst, src, r); err != nil {
		return read, fmt.Errorf("transform: %w", err)
	}
	return read, nil
}

// stored returns the bytes of a record: the Source's memory, or a copy where it has none.
func (w *worker) stored(ctx context.Context, fd *field, record int) ([]byte, error) {
	ld, name := w.ld, fd.in.Name
	if ld.pieces == nil || ld.pieces.Contiguous(name, record, record+1) {
		v, err := w.show(fd, record, record+1, w.ends[:])
		return v.Bytes(), err
	}
	if fd.in.Ragged {
		var err error
		w.scratch, err = ld.ragged.GatherRagged(ctx, name, w.one(record), w.ends[:], w.scratch)
		return w.scratch, err
	}
	src := w.scratch[:fd.stored]
	return src, ld.src.Gather(ctx, name, w.one(record), src)
}

// one returns a slice of one record number, valid until the next call.
func (w *worker) one(record int) []int {
	w.single[0] = record
	return w.single[:]
}

// locate finds the record that reading places [lo, hi) of field f failed on, by reading them
// one by one unless cause names it.
func (w *worker) locate(p *pass, s *slot, f, lo, hi int, cause error) error {
	found := &Error{s.part.number, s.step, w.ld.fields[f].in.Name, -1, cause}
	var named recordError
	if errors.As(cause, &named) {
		found.Record = named.Record()
		return found
	}
	for i := lo; i < hi; i++ {
		err := w.probe(p, f, s.indices[i])
		if p.ctx.Err() != nil {
			break
		}
		if err != nil {
			found.Record, found.Err = s.indices[i], err
			break
		}
	}
	return found
}

// probe reads a field of one record.
func (w *worker) probe(p *pass, f, record int) (err error) {
	defer w.catch(&err)
	fd, ends := &w.ld.fields[f], make([]int64, 2)
	if fd.in.Ragged {
		_, err := w.ld.ragged.GatherRagged(p.ctx, fd.in.Name, []int{record}, ends, nil)
		return err
	}
	return w.gather(p.ctx, fd.in.Name, []int{record}, make([]byte, fd.stored))
}

// runLength returns how many records from the first on follow each other in the Source.
func runLength(indices []int) int {
	n := 1
	for n < len(indices) && indices[n] == indices[0]+n {
		n++
	}
	return n
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
