package mirror

import (
	"context"
	"fmt"
	"github.com/penstock/penstock/internal/layout"
	"math"
)

// LookaheadBytes returns how many bytes of coming records a loader should name in advance, beyond
// what it reads; 0 once everything is here.
func (d *Dataset) LookaheadBytes() int64 {
	c := d.cache
	switch {
	case c.index.whole.Load():
		return 0
	case c.memory.active():
		return c.opts.memoryBytes / 4
	case c.index.fits:
		return 1 << 40
	}
	return max(16<<20, c.evictor.limit/4)
}

// Fetch queues records that will be needed, in their order, after records that were named before
// and after everything that somebody waits for. It returns when the records are queued, so it may
// wait for room in the queue, or for the offsets of a ragged field.
func (d *Dataset) Fetch(ctx context.Context, name string, indices []int) error {
	c := d.cache
	if c.index.whole.Load() || c.allAsked() {
		return nil
	}
	ranges, err := d.Ranges(ctx, name, indices)
	if err != nil {
		return err
	}
	list := c.index.grid.blocksIn(ranges)
	if !c.index.fits {
		list = merge(list)
	}
	c.engine.ahead(ctx, list, waits)
	return ctx.Err()
}

// allAsked reports whether every wanted block is here or under way and will stay, so that naming
// records brings nothing.
func (d *cache) allAsked() bool {
	return d.index.fits && d.engine.unasked.Load() <= 0 && !d.memory.active()
}

// Fits returns an error if the cache has no room for the whole dataset: Fill then refuses it, and
// records are fetched again in every epoch. Fits fetches nothing.
func (d *Dataset) Fits() error {
	c := d.cache
	if c.index.fits {
		return nil
	}
	return fmt.Errorf("mirror: %s has %.1f MB, and the cache may hold %.1f MB: raise the cache size (--cache-size) to "+
		"%.1f MB or more",
		c.name, float64(c.index.grid.bytes)/1e6, float64(c.evictor.limit)/1e6,
		math.Ceil(float64(c.index.grid.bytes)/19*20/1e5)/10)
}

// fillBytes is how many bytes Fill waits for at a time, while the next as many are under way.
const fillBytes = 64 << 20

// Fill fetches everything that is missing, in the order of the files, and compares all blocks with
// their checksums, so that the dataset is Complete. It refuses a dataset that does not fit into the
// cache.
func (d *Dataset) Fill(ctx context.Context) error {
	c := d.cache
	if err := d.Fits(); err != nil {
		return err
	}
	var steps []blocks
	for _, x := range c.index.grid.extents {
		per := max(1, fillBytes/x.typical())
		for from := int64(0); x.wanted && from < x.count; from += per {
			steps = append(steps, blocks{x, from, min(x.count, from+per)})
		}
	}
	if names := d.Files().SourceNames(); names != nil && c.opts.Fields == nil { // no loader reads these
		for _, column := range layout.Of(names).Columns {
			for _, e := range column.Extents {
				steps = c.index.grid.blocksOf(steps, e.Path, e.Offset, e.Count*int64(column.Spec.RecordBytes()))
			}
		}
	}
	for i, step := range steps {
		if i+1 < len(steps) {
			c.engine.ahead(ctx, steps[i+1:i+2], waits)
		}
		use, err := c.ensure(ctx, []blocks{step})
		if err != nil {
			return err
		}
		use.Release()
	}
	if st := d.Stats(); st.Streaming != "" {
		return fmt.Errorf("mirror: %s had no room for all of it: %s", c.name, st.Streaming)
	}
	return ctx.Err()
}
