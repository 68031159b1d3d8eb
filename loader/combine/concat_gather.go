package combine

import (
	"context"
	"slices"
)

// scatterBytes limits the length of records that are gathered by source and copied to their places:
// for longer ones, the copy costs more than a call of the source for each.
const scatterBytes = 4 << 10

// Gather copies records of any of the sources.
func (c *Concat) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	size := len(dst) / max(1, len(indices))
	if size <= scatterBytes || !c.viewed(field) {
		return c.gatherGrouped(ctx, field, indices, dst, size)
	}
	return c.fronts(indices, func(i, at int, local []int) error {
		return c.members[i].Gather(ctx, field, local, dst[at*size:(at+len(local))*size])
	})
}

// viewed reports whether records of a field are memory of their sources. Gathering one is then
// only a copy.
func (c *Concat) viewed(field string) bool {
	return !slices.ContainsFunc(c.members, func(m member) bool {
		return m.Len() > 0 && !m.can.Contiguous(field, 0, 1)
	})
}

// gatherGrouped gathers the records of each source by one call, and copies them to their places. One call for each
// record would keep a bucket or a chunked file from reading together what lies together.
func (c *Concat) gatherGrouped(ctx context.Context, field string, indices []int, dst []byte, size int) error {
	return c.bySource(indices, func(g *groups, i int, local, places []int) error {
		to := dst
		if len(local) < len(indices) {
			to = g.room(len(local) * size)
		}
		if err := c.members[i].Gather(ctx, field, local, to); err != nil {
			return c.renumber(i, err)
		}
		if len(local) < len(indices) {
			for k, place := range places {
				copy(dst[place*size:(place+1)*size], to[k*size:])
			}
		}
		return nil
	})
}

// bySource calls f for each source that has some of the records, with their numbers there and their
// places in indices, until it fails. f owns the buffers of g.
func (c *Concat) bySource(indices []int, f func(g *groups, i int, local, places []int) error) error {
	g := c.group(indices)
	defer c.grouped.Put(g)
	for i := range c.members {
		if local, places := g.of(i); len(local) > 0 {
			if err := f(g, i, local, places); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups is a list of records by source, and memory to gather them to.
type groups struct {
	part   []int // of each record of the list
	starts []int // of each source's records in local and places, and the end
	local  []int // numbers in their source, in the order of the list
	places []int // in the list
	rows   []int64
	buf    []byte
}

// group sorts records by source. The result goes back to c.grouped.
func (c *Concat) group(indices []int) *groups {
	g, n := c.grouped.Get().(*groups), len(indices)
	g.part, g.local, g.places = slices.Grow(g.part[:0], n)[:n], slices.Grow(g.local[:0], n)[:n],
		slices.Grow(g.places[:0], n)[:n]
	clear(g.starts)
	for k, r := range indices {
		g.part[k], _ = c.Locate(r)
		g.starts[g.part[k]]++
	}
	at := 0
	for i, count := range g.starts {
		at += count
		g.starts[i] = at // the end, until all are placed
	}
	for k := n - 1; k >= 0; k-- {
		i := g.part[k]
		g.starts[i]--
		g.local[g.starts[i]], g.places[g.starts[i]] = indices[k]-c.first(i), k
	}
	return g
}

// of returns the numbers of the records in source i, and their places in the list.
func (g *groups) of(i int) (local, places []int) {
	return g.local[g.starts[i]:g.starts[i+1]], g.places[g.starts[i]:g.starts[i+1]]
}

// ends returns memory of g for the offsets of n records.
func (g *groups) ends(n int) []int64 {
	g.rows = slices.Grow(g.rows[:0], n+1)[:n+1]
	return g.rows
}

// room returns n bytes of g's memory.
func (g *groups) room(n int) []byte {
	g.buf = slices.Grow(g.buf[:0], n)[:n]
	return g.buf
}
