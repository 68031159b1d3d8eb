package chunk

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// do reads one chunk and copies the wanted parts to their places in dst.
func (q *request) do(w *worker, job int64) error {
	slots, column := q.wanted(job)
	if q.data.outside != nil {
		return q.doArray(w, q.place(job), slots, column)
	}
	s, ok := q.data.find(q.place(job))
	if !ok {
		q.fillSlots(w, slots, column)
		return nil
	}
	var err error
	switch plain := q.data.filter.plain(s.mask); {
	case plain && s.size != int64(q.data.grid.size):
		err = fmt.Errorf("%d bytes that went through no filter, the chunk has %d: %w", s.size, q.data.grid.size,
			meta.ErrCorrupt)
	case plain && q.data.grid.whole:
		err = q.copyPlain(s, slots)
	case plain && q.data.src.mapped != nil && q.data.number.stored():
		err = q.scatterPlain(w, s, slots, column)
	case !plain && !q.data.filter.possible(s.size): // checked before memory is allocated for the chunk
		err = fmt.Errorf("no chunk of %d bytes is stored as so few: %w", q.data.grid.size, meta.ErrCorrupt)
	case q.all(slots[0]):
		err = q.direct(w, s, slots)
	default:
		err = q.cached(w, s, slots, column)
	}
	if err != nil {
		return q.data.failed(s, err)
	}
	return nil
}

// copyPlain copies records of a chunk that went through no filter.
func (q *request) copyPlain(at stored, slots []slot) error {
	for _, s := range slots {
		dst := q.records(s)
		if err := q.data.src.read(dst, at.offset+s.first*int64(q.data.grid.record)); err != nil {
			return err
		}
		q.data.number.decode(dst)
	}
	return nil
}

// scatterPlain copies parts of records from the mapping.
func (q *request) scatterPlain(w *worker, at stored, slots []slot, column int64) error {
	b, err := q.data.src.view(at.offset, int64(q.data.grid.size))
	if err == nil {
		q.scatter(w, b, slots, column)
	}
	return err
}

// direct decompresses a chunk straight to the place of the first slot, which wants all of its records. A cache entry
// and a copy would cost more, unless the chunk is in the cache already.
func (q *request) direct(w *worker, at stored, slots []slot) error {
	dst := q.records(slots[0])
	if e := q.data.cache.find(at.place); e != nil {
		defer q.data.cache.give(e)
		if err := q.data.fillEntry(w, e, at); err != nil {
			return err
		}
		copy(dst, e.buf)
	} else if err := q.data.decode(w, dst, at); err != nil {
		return err
	}
	for _, s := range slots[1:] {
		n := int64(q.data.grid.record)
		copy(q.records(s), dst[s.first*n:])
	}
	return nil
}

// cached takes a chunk from the cache, and puts it there first if necessary.
func (q *request) cached(w *worker, at stored, slots []slot, column int64) error {
	e := q.data.cache.take(at.place)
	defer q.data.cache.give(e)
	if err := q.data.fillEntry(w, e, at); err != nil {
		return err
	}
	q.scatter(w, e.buf, slots, column)
	return nil
}

// scatter copies the pieces of all wanted records that a chunk has.
func (q *request) scatter(w *worker, chunk []byte, slots []slot, column int64) {
	g := &q.data.grid
	if g.whole {
		for _, s := range slots {
			copy(q.records(s), chunk[s.first*int64(g.record):])
		}
		return
	}
	p := &w.piece
	g.piece(p, column)
	for _, s := range slots {
		dst := q.records(s)
		for i := range int(s.n) {
			to, from := dst[i*g.record:(i+1)*g.record], chunk[(int(s.first)+i)*g.layer:]
			p.each(func(dst, src int) { copy(to[dst:dst+p.run], from[src:]) })
		}
	}
}

// fillSlots gives elements that were never written their fill value.
func (q *request) fillSlots(w *worker, slots []slot, column int64) {
	g := &q.data.grid
	if g.whole {
		for _, s := range slots {
			repeat(q.records(s), q.data.fill)
		}
		return
	}
	p := &w.piece
	g.piece(p, column)
	for _, s := range slots {
		dst := q.records(s)
		for i := range int(s.n) {
			to := dst[i*g.record : (i+1)*g.record]
			p.each(func(dst, _ int) { repeat(to[dst:dst+p.run], q.data.fill) })
		}
	}
}

// repeat fills dst with copies of value, or with zeros if value is nil.
func repeat(dst, value []byte) {
	if value == nil {
		clear(dst)
		return
	}
	for n := copy(dst, value); n < len(dst); {
		n += copy(dst[n:], dst[:n])
	}
}

// doArray is like do, for a chunk that is not in an HDF5 file.
func (q *request) doArray(w *worker, place int64, slots []slot, column int64) (err error) {
	written := true
	switch e := q.data.cache.find(place); {
	case e == nil && q.all(slots[0]):
		dst := q.records(slots[0])
		if written, err = q.data.decodeArray(q.ctx, w, place, func() []byte { return dst }); err != nil || !written {
			break
		}
		for _, s := range slots[1:] {
			copy(q.records(s), dst[s.first*int64(q.data.grid.record):])
		}
	default:
		if e == nil {
			e = q.data.cache.take(place)
		}
		defer q.data.cache.give(e)
		if err = q.data.fillArray(q.ctx, w, e); err == nil {
			if written = !e.blank; written {
				q.scatter(w, e.buf, slots, column)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", q.data.path, q.data.outside.Name(place), err)
	}
	if !written {
		q.fillSlots(w, slots, column)
	}
	return nil
}
