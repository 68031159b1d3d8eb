package mirror

import (
	"context"
	"sync"

	"github.com/penstock/penstock/mmapds"
)

var (
	_ mmapds.Pager = (*cache)(nil)
	_ mmapds.Held  = (*use)(nil)
)

// Complete implements mmapds.Pager.
func (d *cache) Complete() bool { return d.index.whole.Load() }

// Stays implements mmapds.Pager. If blocks are evicted to make room for other blocks, or had no
// room on disk, Stays is false for all blocks.
func (d *cache) Stays() bool { return d.index.fits && !d.memory.active() }

// Acquire implements mmapds.Pager.
func (d *cache) Acquire(ctx context.Context, need []mmapds.Range, soon func() []mmapds.Range) (mmapds.Held, error) {
	var along func() []blocks
	if soon != nil && d.index.fits {
		along = func() []blocks { return d.index.grid.blocksIn(soon()) }
	}
	u, err := d.ensureAlong(ctx, d.index.grid.blocksIn(need), along)
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Prefetch implements mmapds.Pager. If many requests are queued already, it does nothing: it must
// not wait.
func (d *cache) Prefetch(need []mmapds.Range) {
	d.engine.ahead(d.fetches.ctx, d.index.grid.blocksIn(need), leaves)
}

// ReadAt implements mmapds.Pager.
func (d *cache) ReadAt(path string, p []byte, off int64) error {
	if err := d.files.readAt(path, p, off); err != nil {
		return err
	}
	d.overlay.read(d.index.grid, path, p, off)
	return nil
}

// overlay replaces bytes of the mirror's files by blocks held in memory, for as long as a reader
// uses these blocks.
type overlay struct {
	mu   sync.RWMutex
	held map[int64]*heldBlock // by block
}

// heldBlock is a block and the number of its users.
type heldBlock struct {
	data  []byte
	users int
}

// add makes reads see held blocks until remove.
func (o *overlay) add(held map[int64][]byte) {
	if len(held) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		o.held = make(map[int64]*heldBlock)
	}
	for block, data := range held {
		if o.held[block] == nil {
			o.held[block] = &heldBlock{data: data}
		}
		o.held[block].users++
	}
}

// remove drops blocks that a call held. Other calls may hold the same ones, so they are counted.
func (o *overlay) remove(held map[int64][]byte) {
	if len(held) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for block := range held {
		if o.held[block].users--; o.held[block].users == 0 {
			delete(o.held, block)
		}
	}
}

// read copies what is held of bytes [off, off+len(p)) of a file into p.
func (o *overlay) read(g *grid, path string, p []byte, off int64) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if len(o.held) == 0 {
		return
	}
	for _, r := range g.blocksOf(nil, path, off, int64(len(p))) {
		for b := r.from; b < r.to; b++ {
			h := o.held[r.x.base+b]
			if h == nil {
				continue
			}
			if at := r.x.offset(b); at >= off {
				copy(p[at-off:], h.data)
			} else {
				copy(p, h.data[off-at:])
			}
		}
	}
}
