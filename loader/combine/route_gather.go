package combine

import (
	"context"
	"slices"

	"github.com/penstock/penstock/loader/internal/order"
)

// scatterBytes is the record length up to which records are gathered by part and then copied to
// their places. For longer records the copy costs more than a call of the part for each.
const scatterBytes = 4 << 10

// Gather copies records.
//
// The records of each part are gathered by one call, and then copied to their places. A call per
// record would keep a bucket or a chunked file from reading together what lies together.
func (r *route) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	size := len(dst) / max(1, len(indices))
	direct := r.isDirect(field, size)
	return r.byPart(field, indices, func(g *groups, p *member, name string, local, places []int) error {
		if len(local) == len(indices) {
			return p.Gather(ctx, name, local, dst)
		}
		if direct {
			return eachRun(local, places, func(local []int, at int) error {
				return p.Gather(ctx, name, local, dst[at*size:(at+len(local))*size])
			})
		}
		from := g.room(len(local) * size)
		if err := p.Gather(ctx, name, local, from); err != nil {
			return err
		}
		for k, place := range places {
			copy(dst[place*size:(place+1)*size], from[k*size:])
		}
		return nil
	})
}

// isDirect reports whether records are gathered straight to their places: long records of several
// parts, all in the parts' memory.
func (r *route) isDirect(field string, size int) bool {
	return len(r.ends) > 1 && size > scatterBytes && !slices.ContainsFunc(r.members, func(m member) bool {
		return m.Len() > 0 && !m.can.Contiguous(field, 0, 1)
	})
}

// eachRun calls f for each run of records whose places are consecutive, with the first place, until
// f fails.
func eachRun(local, places []int, f func(local []int, at int) error) error {
	for len(local) > 0 {
		n := order.RunLength(places)
		if err := f(local[:n], places[0]); err != nil {
			return err
		}
		local, places = local[n:], places[n:]
	}
	return nil
}

// Lengths sets the offsets of ragged records. Parts write lengths first, and the sum is taken at
// the end, when all lengths are known.
func (r *route) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	offsets[0] = 0
	divided := false
	err := r.byPart(field, indices, func(g *groups, p *member, name string, local, places []int) error {
		if len(local) == len(indices) {
			return p.can.Ragged.Lengths(ctx, name, local, offsets)
		}
		divided = true
		own := g.offsets(len(local))
		if err := p.can.Ragged.Lengths(ctx, name, local, own); err != nil {
			return err
		}
		for k, place := range places {
			offsets[place+1] = own[k+1] - own[k]
		}
		return nil
	})
	if err != nil || !divided {
		return err
	}
	for k := range indices {
		offsets[k+1] += offsets[k]
	}
	return nil
}

// GatherRagged copies the rows of records.
func (r *route) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	if len(r.ends) > 1 {
		return r.gatherRows(ctx, field, indices, offsets, dst)
	}
	err := r.byPart(field, indices, func(_ *groups, p *member, name string, local, _ []int) (err error) {
		dst, err = p.can.Ragged.GatherRagged(ctx, name, local, offsets, dst)
		return err
	})
	return dst, err
}

// gatherRows is GatherRagged for records of several parts. The lengths are read first, because the
// place of each record depends on all records before it.
func (r *route) gatherRows(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	if err := r.Lengths(ctx, field, indices, offsets); err != nil {
		return dst, err
	}
	size := r.specs[fieldOf(r.specs, field)].RecordBytes()
	need := int(offsets[len(indices)]) * size
	dst = slices.Grow(dst[:0], need)[:need]
	direct := r.isDirect(field, need/max(1, len(indices)))
	return dst, r.byPart(field, indices, func(g *groups, p *member, name string, local, places []int) error {
		own := g.offsets(len(local))
		if direct {
			return eachRun(local, places, func(local []int, at int) error {
				from, to := int(offsets[at])*size, int(offsets[at+len(local)])*size
				_, err := p.can.Ragged.GatherRagged(ctx, name, local, own[:len(local)+1], dst[from:from:to])
				return err
			})
		}
		rows, err := p.can.Ragged.GatherRagged(ctx, name, local, own, g.buf)
		if err != nil {
			return err
		}
		g.buf = rows
		for k, place := range places {
			copy(dst[int(offsets[place])*size:int(offsets[place+1])*size], rows[int(own[k])*size:int(own[k+1])*size])
		}
		return nil
	})
}

// Fetch announces to each part which of its records will be needed.
func (r *route) Fetch(ctx context.Context, field string, indices []int) error {
	return r.byPart(field, indices, func(_ *groups, p *member, name string, local, _ []int) error {
		return p.fetch(ctx, name, local)
	})
}

// byPart calls f once for each part that has some of the records, until f fails. f gets the name of
// the field in the part, the records' numbers in the part (local), and the places of these records
// in indices (places), nil if no record can be in another part. Until it returns, f may use the
// memory of g, which is nil if records have the same numbers in the part.
func (r *route) byPart(field string, indices []int,
	f func(g *groups, p *member, name string, local, places []int) error) error {
	at, err := r.field(field)
	if err != nil {
		return err
	}
	if r.same() {
		return f(nil, &r.members[at.part], at.name, indices, nil)
	}
	g, _ := r.pool.Get().(*groups)
	if g == nil {
		g = new(groups)
	}
	defer r.pool.Put(g)
	numbers := indices
	if !r.rows.all() {
		g.numbers = r.rows.translate(g.numbers[:0], indices)
		numbers = g.numbers
	}
	if len(r.ends) == 1 {
		return r.renumberOf(f(g, &r.members[at.part], at.name, numbers, nil), 0, numbers, indices)
	}
	g.divide(r, numbers)
	for i := range r.ends {
		local, places := g.of(i)
		if len(local) == 0 {
			continue
		}
		if err := f(g, &r.members[at.part+i], at.name, local, places); err != nil {
			return r.renumberOf(err, i, numbers, indices)
		}
	}
	return nil
}

// groups is a list of records divided by segment, with memory to gather them into.
type groups struct {
	numbers []int // of the records
	segment []int // of each record of the list
	starts  []int // of each segment's records in local and places, and the end
	local   []int // numbers in their segment, in the order of the list
	places  []int // in the list
	rows    []int64
	buf     []byte
}

// divide sorts records by segment, by counting. Filling from the back keeps the order of the list.
func (g *groups) divide(r *route, numbers []int) {
	n := len(numbers)
	g.segment, g.local, g.places = slices.Grow(g.segment[:0], n)[:n], slices.Grow(g.local[:0], n)[:n],
		slices.Grow(g.places[:0], n)[:n]
	g.starts = slices.Grow(g.starts[:0], len(r.ends)+1)[:len(r.ends)+1]
	clear(g.starts)
	for k, number := range numbers {
		g.segment[k] = r.segment(number)
		g.starts[g.segment[k]]++
	}
	at := 0
	for i, count := range g.starts {
		at += count
		g.starts[i] = at // the end, until all are placed
	}
	for k := n - 1; k >= 0; k-- {
		i := g.segment[k]
		g.starts[i]--
		g.local[g.starts[i]], g.places[g.starts[i]] = numbers[k]-r.start(i), k
	}
}

// of returns the numbers of the records in segment i, and their places in the list.
func (g *groups) of(i int) (local, places []int) {
	return g.local[g.starts[i]:g.starts[i+1]], g.places[g.starts[i]:g.starts[i+1]]
}

// offsets returns borrowed memory for the offsets of n records.
func (g *groups) offsets(n int) []int64 {
	g.rows = slices.Grow(g.rows[:0], n+1)[:n+1]
	return g.rows
}

// room returns n bytes of borrowed memory.
func (g *groups) room(n int) []byte {
	g.buf = slices.Grow(g.buf[:0], n)[:n]
	return g.buf
}
