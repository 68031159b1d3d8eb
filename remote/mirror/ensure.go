package mirror

import (
	"context"
	"fmt"
	"time"
)

// use is the right of a reader to blocks: until Release they are not evicted from the mirror. It
// also holds the blocks that found no room in the mirror.
type use struct {
	d      *cache
	ranges []blocks
	held   map[int64][]byte
	came   map[int64]int // by block: how often it arrived with a damaged chunk
}

// InFiles implements mmapds.Held.
func (u *use) InFiles() bool { return len(u.held) == 0 }

// Release implements mmapds.Held.
func (u *use) Release() {
	u.d.overlay.remove(u.held)
	u.d.segments.disclaim(u.ranges)
}

// Again implements mmapds.Held: err says that a chunk could not be decoded. The block with the
// chunk is fetched again, up to three times in all, and then err is returned.
func (u *use) Again(ctx context.Context, err error) error {
	block, ok := u.d.index.wrongBlock(err)
	if u.came == nil {
		u.came = make(map[int64]int)
	}
	if u.came[block]++; !ok || u.came[block] == tries {
		return fmt.Errorf("mirror: %s: %w", u.d.name, err)
	}
	u.d.distrust(block)
	again, err := u.d.ensure(ctx, u.ranges)
	if err != nil {
		return err
	}
	u.Release() // blocks that `again` holds stay
	u.held = again.held
	return nil
}

// ensure brings blocks into the mirror, or holds them in memory, and checks them. Missing blocks are fetched together.
func (d *cache) ensure(ctx context.Context, ranges []blocks) (*use, error) {
	return d.ensureAlong(ctx, ranges, nil)
}

// ensureAlong is like ensure. If it has to wait, it also requests the blocks that along returns, which will be needed
// soon. Blocks can be evicted between their arrival and the claim of a reader, so it looks again after each wait, and
// gives up after 100 rounds.
func (d *cache) ensureAlong(ctx context.Context, ranges []blocks, along func() []blocks) (*use, error) {
	if d.closed() {
		return nil, errClosed
	}
	u := &use{d: d, ranges: ranges}
	d.segments.claim(ranges)
	for round := 0; ; round++ {
		jobs, err := d.missing(ctx, u, along)
		if err == nil && len(jobs) == 0 {
			d.overlay.add(u.held)
			return u, nil
		}
		if err == nil {
			err = d.await(ctx, jobs, u)
		}
		if err == nil && round > 100 {
			err = fmt.Errorf("mirror: %s: its blocks are taken out as fast as they come", d.name)
		}
		if err != nil {
			d.segments.disclaim(u.ranges)
			return nil, err
		}
	}
}

// missing requests the blocks of a use that are not present, and checks the blocks that are present and were not
// checked yet.
func (d *cache) missing(ctx context.Context, u *use, along func() []blocks) ([]*job, error) {
	var need, next []blocks
	for _, r := range u.ranges {
		for b := r.from; b < r.to; b++ {
			there, err := d.index.there(ctx, r.x, b)
			if err != nil {
				return nil, err
			}
			if there || u.held[r.x.base+b] != nil {
				d.counts.hits.Add(1)
				continue
			}
			if data := d.memory.get(r.x.base + b); data != nil {
				u.hold(r.x.base+b, data)
				continue
			}
			end := b + 1
			for end < r.to && d.engine.joins(r.x, b, end) && !d.index.state.has(r.x.base+end) {
				end++
			}
			need = append(need, blocks{r.x, b, end})
			b = end - 1
		}
	}
	if len(need) == 0 {
		return nil, nil
	}
	if along != nil {
		next = d.index.absent(along())
	}
	return d.engine.demand(need, next), nil
}

// hold keeps the bytes of a block until Release, if the mirror has no room for the block on disk.
func (u *use) hold(block int64, data []byte) {
	if u.held == nil {
		u.held = make(map[int64][]byte)
	}
	u.held[block] = data
}

// await waits for jobs, and takes over the blocks for which the mirror has no room.
func (d *cache) await(ctx context.Context, jobs []*job, u *use) error {
	began := time.Now()
	defer func() { d.counts.waited.Add(int64(time.Since(began))) }()
	d.counts.waits.Add(1)
	for _, j := range jobs {
		select {
		case <-j.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if j.err != nil {
			return j.err
		}
		for block, data := range j.held {
			u.hold(block, data)
		}
	}
	return nil
}
