package chunk

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// do reads one chunk and puts what is wanted of it in its places.
func (c *call) do(w *worker, job int64) error {
	n := c.r.grid.columns
	slots := c.slots[c.rows[job/n]:c.rows[job/n+1]]
	if c.r.outside != nil {
		return c.doArray(w, c.place(job), slots, job%n)
	}
	s, ok := c.r.find(c.place(job))
	if !ok {
		c.fillSlots(w, slots, job%n)
		return nil
	}
	var err error
	switch plain := c.r.filter.plain(s.mask); {
	case plain && s.size != int64(c.r.grid.size):
		err = fmt.Errorf("%d bytes that went through no filter, the chunk has %d: %w", s.size, c.r.grid.size, meta.ErrCorrupt)
	case plain && c.r.grid.whole:
		err = c.copyPlain(s, slots)
	case plain && c.r.src.mapped != nil && c.r.number.stored():
		err = c.scatterPlain(w, s, slots, job%n)
	case !plain && !c.r.filter.possible(s.size): // checked before memory is taken for it
		err = fmt.Errorf("no chunk of %d bytes is stored as so few: %w", c.r.grid.size, meta.ErrCorrupt)
	case c.all(slots[0]):
		err = c.direct(w, s, slots)
	default:
		err = c.cached(w, s, slots, job%n)
	}
	if err != nil {
		return c.r.failed(s, err)
	}
	return nil
}

// all reports whether a slot is every record of a chunk of whole records.
func (c *call) all(s slot) bool { return c.r.grid.whole && s.n == c.r.grid.deep }

// records returns the memory in dst of a slot.
func (c *call) records(s slot) []byte {
	n := int64(c.r.grid.record)
	return c.dst[s.to*n : (s.to+s.n)*n]
}

// copyPlain copies records of a chunk that was never filtered.
func (c *call) copyPlain(at stored, slots []slot) error {
	for _, s := range slots {
		dst := c.records(s)
		if err := c.r.src.read(dst, at.offset+s.first*int64(c.r.grid.record)); err != nil {
			return err
		}
		c.r.number.decode(dst)
	}
	return nil
}

// scatterPlain copies parts of records out of the mapping.
func (c *call) scatterPlain(w *worker, at stored, slots []slot, column int64) error {
	b, err := c.r.src.view(at.offset, int64(c.r.grid.size))
	if err == nil {
		c.scatter(w, b, slots, column)
	}
	return err
}

// direct inflates a chunk to where the first slot wants it.
func (c *call) direct(w *worker, at stored, slots []slot) error {
	dst := c.records(slots[0])
	if e := c.r.cache.find(at.place); e != nil {
		defer c.r.cache.give(e)
		if err := c.r.fillEntry(w, e, at); err != nil {
			return err
		}
		copy(dst, e.buf)
	} else if err := c.r.decode(w, dst, at); err != nil {
		return err
	}
	for _, s := range slots[1:] {
		n := int64(c.r.grid.record)
		copy(c.records(s), dst[s.first*n:])
	}
	return nil
}

// cached takes a chunk from the cache, after it was put there if need be.
func (c *call) cached(w *worker, at stored, slots []slot, column int64) error {
	e := c.r.cache.take(at.place)
	defer c.r.cache.give(e)
	if err := c.r.fillEntry(w, e, at); err != nil {
		return err
	}
	c.scatter(w, e.buf, slots, column)
	return nil
}

// fillEntry decodes a chunk into the cache, unless that was done already.
func (r *Reader) fillEntry(w *worker, e *entry, at stored) error {
	e.fill.Lock()
	defer e.fill.Unlock()
	if e.ok {
		return nil
	}
	err := r.decode(w, e.room(r.grid.size), at)
	e.ok = err == nil
	return err
}

// decode makes a chunk, numbers being native.
func (r *Reader) decode(w *worker, dst []byte, at stored) error {
	raw, err := r.src.bytes(at.offset, at.size, &w.raw)
	if err != nil {
		return err
	}
	if err := w.undo(&r.filter, dst, raw, at.mask); err != nil {
		return err
	}
	r.number.decode(dst)
	return nil
}

// scatter copies the pieces that a chunk has of all wanted records.
func (c *call) scatter(w *worker, chunk []byte, slots []slot, column int64) {
	g := &c.r.grid
	if g.whole {
		for _, s := range slots {
			copy(c.records(s), chunk[s.first*int64(g.record):])
		}
		return
	}
	p := &w.piece
	g.piece(p, column)
	for _, s := range slots {
		dst := c.records(s)
		for i := range int(s.n) {
			to, from := dst[i*g.record:(i+1)*g.record], chunk[(int(s.first)+i)*g.layer:]
			p.each(func(dst, src int) { copy(to[dst:dst+p.run], from[src:]) })
		}
	}
}

// fillSlots gives what was never written its value.
func (c *call) fillSlots(w *worker, slots []slot, column int64) {
	g := &c.r.grid
	if g.whole {
		for _, s := range slots {
			repeat(c.records(s), c.r.fill)
		}
		return
	}
	p := &w.piece
	g.piece(p, column)
	for _, s := range slots {
		dst := c.records(s)
		for i := range int(s.n) {
			to := dst[i*g.record : (i+1)*g.record]
			p.each(func(dst, _ int) { repeat(to[dst:dst+p.run], c.r.fill) })
		}
	}
}

// repeat fills dst with value, or with zeros if that is nil.
func repeat(dst, value []byte) {
	if value == nil {
		clear(dst)
		return
	}
	for n := copy(dst, value); n < len(dst); {
		n += copy(dst[n:], dst[:n])
	}
}
