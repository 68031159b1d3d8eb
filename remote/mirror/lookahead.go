package mirror

import "context"

// Horizon returns how many bytes of coming records a loader should name in advance, beyond
// what it reads: none once all are here.
func (d *Dataset) Horizon() int64 {
	switch {
	case d.whole.Load():
		return 0
	case d.memory.active():
		return d.opts.MemoryBytes / 4
	case d.fits:
		return 1 << 40
	}
	return max(16<<20, d.keeper.limit/4)
}

// Fetch has records that will be needed fetched, in that order, after those that were named
// before and behind what somebody waits for. It returns when they are noted down, which takes
// until there is room for them, or for the offsets of a ragged field, which it waits for.
func (d *Dataset) Fetch(ctx context.Context, name string, indices []int) error {
	if d.whole.Load() {
		return nil
	}
	f, err := d.field(name)
	if err != nil {
		return err
	}
	var ranges []blocks
	if f.offsets == nil {
		for _, i := range indices {
			if err := d.checkRange(i, i+1); err != nil {
				return err
			}
			ranges = f.rows.ranges(ranges, int64(i), int64(i)+1)
		}
	} else {
		places, err := d.places(ctx, f, indices)
		if err != nil {
			return err
		}
		ranges = f.valueRanges(places)
	}
	if !d.fits {
		ranges = merge(ranges)
	}
	d.engine.ahead(ranges)
	return ctx.Err()
}
