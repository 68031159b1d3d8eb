package mirror

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/internal/kernel"
)

// blocks are some of an extent: [from, to).
type blocks struct {
	x        *extent
	from, to int64
}

func appendBlocks(list []blocks, x *extent, from, to int64) []blocks {
	if n := len(list); n > 0 && list[n-1].x == x && list[n-1].from <= from && from <= list[n-1].to {
		list[n-1].to = max(list[n-1].to, to)
		return list
	}
	return append(list, blocks{x, from, to})
}

// use is the right to read blocks: until its end they stay. Those that had no room in the
// mirror it holds.
type use struct {
	d      *cache
	ranges []blocks
	held   map[int64][]byte
	came   map[int64]int // how often which block came with a chunk that was wrong
}

// InFiles implements mmapds.Held.
func (u *use) InFiles() bool { return len(u.held) == 0 }

// Release implements mmapds.Held.
func (u *use) Release() {
	u.d.overlay.remove(u.held)
	u.d.disclaim(u.ranges)
}

// Again implements mmapds.Held.
func (u *use) Again(ctx context.Context, err error) error {
	block, ok := u.d.wrongBlock(err)
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
	u.Release() // what is held for again stays
	u.held = again.held
	return nil
}

// claim keeps blocks where they are: until Close, if all of the dataset may be in the mirror,
// else until disclaim.
func (d *cache) claim(ranges []blocks) {
	if !d.fits {
		d.pins.take(d.state, ranges)
		return
	}
	for _, r := range ranges {
		for s := r.x.segmentOf(r.from); s <= r.x.segmentOf(r.to-1); s++ {
			d.state.use(s)
		}
	}
}

func (d *cache) disclaim(ranges []blocks) {
	if !d.fits {
		d.pins.drop(d.state, ranges)
	}
}

// ensure has blocks in the mirror, or held, and known to be right. What is missing is fetched,
// all at a time.
func (d *cache) ensure(ctx context.Context, ranges []blocks) (*use, error) {
	return d.ensureAlong(ctx, ranges, nil)
}

// ensureAlong is ensure for blocks that others will be needed with: where it has to wait, those
// that along returns are asked for as well.
func (d *cache) ensureAlong(ctx context.Context, ranges []blocks, along func() []blocks) (*use, error) {
	if d.closed() {
		return nil, errClosed
	}
	u := &use{d: d, ranges: ranges}
	d.claim(ranges)
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
			d.disclaim(u.ranges)
			return nil, err
		}
	}
}

// missing asks for the blocks of a use that are not there, and checks those that are and were
// not yet.
func (d *cache) missing(ctx context.Context, u *use, along func() []blocks) ([]*job, error) {
	var need, next []blocks
	for _, r := range u.ranges {
		for b := r.from; b < r.to; b++ {
			there, err := d.there(ctx, r.x, b)
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
			for end < r.to && d.engine.joins(r.x, b, end) && !d.state.has(r.x.base+end) {
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
		next = d.absent(along())
	}
	return d.engine.demand(need, next), nil
}

// absent returns the blocks that are not in the mirror.
func (d *cache) absent(ranges []blocks) (list []blocks) {
	for _, r := range ranges {
		for b := r.from; b < r.to; b++ {
			if !d.state.has(r.x.base + b) {
				list = append(list, blocks{r.x, b, b + 1})
			}
		}
	}
	return list
}

func (u *use) hold(block int64, data []byte) {
	if u.held == nil {
		u.held = make(map[int64][]byte)
	}
	u.held[block] = data
}

// await waits for jobs, and takes from them what is not in the mirror.
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

// there reports whether a block is in the mirror, and right. One that this process has not
// seen yet is compared with its checksum; a wrong one is as good as none.
func (d *cache) there(ctx context.Context, x *extent, block int64) (bool, error) {
	if !d.state.has(x.base + block) {
		return false, nil
	}
	if x.right.Has(block) {
		return true, nil
	}
	want, known, err := d.sum(ctx, x, block)
	if err != nil {
		return false, err
	}
	if known {
		right, err := d.right(x, block, want)
		if err != nil {
			return false, err
		}
		if !right {
			d.counts.poisoned.Add(1)
			d.state.remove(x.base + block)
			return false, nil
		}
	}
	d.learn(x, block)
	return true, nil
}

// learn notes that a block is right.
func (d *cache) learn(x *extent, block int64) {
	if x.right.Add(block) && x.wanted && d.left.Add(-1) == 0 && d.fits {
		d.whole.Store(true)
	}
}

// unlearn notes that it is gone.
func (d *cache) unlearn(x *extent, block int64) {
	if x.right.Remove(block) && x.wanted {
		d.left.Add(1)
	}
}

// right compares a block in the mirror with its checksum.
func (d *cache) right(x *extent, block int64, want uint32) (bool, error) {
	off, n := x.span(block, block+1)
	f, err := d.root.Open(x.name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	buf := borrow(min(n, pieceBytes))
	defer giveBack(buf)
	crc := uint32(0)
	for n > 0 {
		piece := (*buf)[:min(n, pieceBytes)]
		if _, err := f.ReadAt(piece, off); err != nil {
			return false, nil // it is shorter than it should be
		}
		crc = kernel.CRC32C(crc, piece)
		off, n = off+int64(len(piece)), n-int64(len(piece))
	}
	return crc == want, nil
}

// pieceBytes is how much of a large block is handled at once.
const pieceBytes = 8 << 20
