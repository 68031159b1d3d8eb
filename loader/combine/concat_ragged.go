package combine

import (
	"context"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// SliceRagged returns the rows of records [a, b): a view within one source, a copy across two.
func (c *Concat) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	if i, from := c.Locate(a); b <= c.ends[i] {
		return c.members[i].can.Ragged.SliceRagged(field, from, from+b-a, offsets)
	}
	return copiedRagged(c, c.spec(field), a, b, offsets)
}

// Lengths sets the offsets of records of any of the sources.
func (c *Concat) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	err := c.bySource(indices, func(g *groups, i int, local, places []int) error {
		own := g.ends(len(local))
		if err := c.members[i].can.Ragged.Lengths(ctx, field, local, own); err != nil {
			return c.renumber(i, err)
		}
		for k, place := range places {
			offsets[place+1] = own[k+1] - own[k]
		}
		return nil
	})
	if err != nil {
		return err
	}
	offsets[0] = 0
	for k := range indices {
		offsets[k+1] += offsets[k]
	}
	return nil
}

// shifted calls f to set offsets that begin with 0, and adds the previous first offset to them.
func shifted(offsets []int64, f func(offsets []int64) error) error {
	before := offsets[0]
	err := f(offsets)
	for k := range offsets {
		offsets[k] += before
	}
	return err
}

// GatherRagged copies rows of records of any of the sources.
func (c *Concat) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) (
	[]byte, error) {
	spec := c.spec(field)
	if err := c.Lengths(ctx, field, indices, offsets); err != nil {
		return dst, err
	}
	size := spec.RecordBytes()
	need := int(offsets[len(indices)]) * size
	dst = slices.Grow(dst[:0], need)[:need]
	if need <= scatterBytes*len(indices) || !c.viewed(field) {
		return dst, c.gatherRows(ctx, field, indices, offsets, dst, size)
	}
	err := c.fronts(indices, func(i, at int, local []int) error {
		from, to := int(offsets[at])*size, int(offsets[at+len(local)])*size
		return shifted(offsets[at:at+len(local)+1], func(offsets []int64) error {
			_, err := c.members[i].can.Ragged.GatherRagged(ctx, field, local, offsets, dst[from:from:to])
			return err
		})
	})
	return dst, err
}

// gatherRows gathers the rows of each source's records by one call, and copies them to
// their places.
func (c *Concat) gatherRows(ctx context.Context, field string, indices []int, offsets []int64, dst []byte,
	size int) error {
	return c.bySource(indices, func(g *groups, i int, local, places []int) error {
		own := g.ends(len(local))
		rows, err := c.members[i].can.Ragged.GatherRagged(ctx, field, local, own, g.buf)
		if err != nil {
			return c.renumber(i, err)
		}
		g.buf = rows
		for k, place := range places {
			copy(dst[int(offsets[place])*size:int(offsets[place+1])*size], rows[int(own[k])*size:int(own[k+1])*size])
		}
		return nil
	})
}
