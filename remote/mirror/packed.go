package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/store"
)

// addPacked makes one extent of the chunks of all columns that are packed: so what lies side by
// side in the file comes in one request, whichever of them it is of.
func (g *grid) addPacked(d *store.Dataset, chunks map[string][]part, key string) (err error) {
	var all []part
	for i := range d.Columns {
		if d.Columns[i].Packed {
			all = append(all, chunks[d.Columns[i].Path()]...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	x := &extent{name: hdf5Name, object: key, wanted: true}
	if x.places, err = newPlaces(all); err != nil {
		return err
	}
	x.count, x.bytes = int64(len(x.places)), total(x.places)
	g.packed = x
	return g.number(x)
}

// packed makes the rows of a column from its chunks, those of the mirror and those that had no
// room there. It reads none but those it was told to, as others may be holes.
type packed struct {
	file *chunkFile
	r    *chunk.Reader
}

// openPacked opens the columns that are packed.
func (d *Dataset) openPacked() error {
	for i := range d.windows {
		w := &d.windows[i]
		if !w.meta.Packed {
			continue
		}
		if d.chunkFile == nil {
			if err := d.openChunks(); err != nil {
				return err
			}
		}
		r, err := d.local.Files().OpenColumn(&w.meta, d.chunkFile, nil, h5chunk.Options{Pool: d.chunkFile.pool, Exact: true})
		if err != nil {
			return err
		}
		w.packed = &packed{d.chunkFile, r}
	}
	return nil
}

// chunkFile is the mirror's file, with what is held in memory of it.
type chunkFile struct {
	x    *extent // of the chunks; nil if all came with the books
	file *os.File
	pool *h5chunk.Pool

	mu   sync.RWMutex
	held map[int64]*heldBlock // by block of x
}

// heldBlock is a block in memory, for as long as somebody uses it.
type heldBlock struct {
	data  []byte
	users int
}

func (d *Dataset) openChunks() error {
	f, err := d.root.Open(hdf5Name)
	if err != nil {
		return err
	}
	d.chunkFile = &chunkFile{x: d.grid.packed, file: f, held: make(map[int64]*heldBlock), pool: h5chunk.NewPool(0)}
	return nil
}

func (c *chunkFile) close() error {
	c.pool.Close()
	return c.file.Close()
}

// ReadAt reads bytes of blocks that are here, as io.ReaderAt says.
func (c *chunkFile) ReadAt(p []byte, off int64) (n int, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.held) == 0 {
		return c.file.ReadAt(p, off)
	}
	for n < len(p) && err == nil {
		at, rest := off+int64(n), p[n:]
		got := 0
		if data := c.rest(at, &rest); data != nil {
			got = copy(rest, data)
		} else {
			got, err = c.file.ReadAt(rest, at)
		}
		n += got
	}
	return n, err
}

// rest returns what is held from a byte on, and cuts p where the block of that byte ends, or the
// next one begins.
func (c *chunkFile) rest(at int64, p *[]byte) []byte {
	block := c.x.at(at)
	if block == c.x.count {
		return nil
	}
	place := c.x.places[block]
	if place.off > at {
		*p = (*p)[:min(int64(len(*p)), place.off-at)]
		return nil
	}
	*p = (*p)[:min(int64(len(*p)), place.end()-at)]
	if h := c.held[block]; h != nil {
		return h.data[at-place.off:]
	}
	return nil
}

// hold has what a use holds read, until free.
func (c *chunkFile) hold(u *use) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, data := range u.held {
		block := number - c.x.base
		if c.held[block] == nil {
			c.held[block] = &heldBlock{data: data}
		}
		c.held[block].users++
	}
}

func (c *chunkFile) free(u *use) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number := range u.held {
		block := number - c.x.base
		if c.held[block].users--; c.held[block].users == 0 {
			delete(c.held, block)
		}
	}
}

// runs appends what rows [a, b) of a window are in the HDF5 dataset, to be put in memory from
// row to on.
func (w *window) runs(list []chunk.Run, a, b, to int64) []chunk.Run {
	for a < b {
		e, _ := w.meta.Extent(a)
		r := chunk.Run{First: e.Row + a - e.First, N: min(b, e.First+e.Count) - a, To: to}
		a, to = a+r.N, to+r.N
		if n := len(list); n > 0 && list[n-1].First+list[n-1].N == r.First && list[n-1].To+list[n-1].N == r.To {
			list[n-1].N += r.N
			continue
		}
		list = append(list, r)
	}
	return list
}

// each calls f with the blocks that a run is made from.
func (p *packed) each(r chunk.Run, f func(x *extent, from, to int64)) {
	x := p.file.x
	p.r.Stored(r.First, r.First+r.N, func(off, n int64) {
		if x == nil || n == 0 {
			return
		}
		if from := x.at(off); from < x.count && x.places[from].off <= off {
			f(x, from, x.at(off+n-1)+1)
		} // else it came with the books
	})
}

// readRuns makes runs of rows of a packed window, after their chunks were fetched. A chunk that
// cannot be what was written is fetched again.
func (d *Dataset) readRuns(ctx context.Context, w *window, runs []chunk.Run, dst []byte, along func() []blocks) error {
	var ranges []blocks
	for _, r := range runs {
		w.packed.each(r, func(x *extent, from, to int64) { ranges = appendBlocks(ranges, x, from, to) })
	}
	for came := map[int64]int(nil); ; { // how often which block came with a chunk that was wrong

		use, err := d.ensureAlong(ctx, ranges, along)
		if err != nil {
			return err
		}
		err = w.packed.read(ctx, use, runs, dst)
		use.end()
		if err == nil || ctx.Err() != nil {
			return err
		}
		block, ok := d.wrongBlock(err)
		if came == nil {
			came = make(map[int64]int)
		}
		if came[block]++; !ok || came[block] == tries {
			return fmt.Errorf("mirror: %s: %w", d.name, store.MarkHDF5(err))
		}
		d.distrust(block)
	}
}

// gatherPacked is Gather for a window that is packed, of records that exist.
func (d *Dataset) gatherPacked(ctx context.Context, w *window, indices []int, dst []byte) error {
	var runs []chunk.Run
	for k, i := range indices {
		runs = w.runs(runs, int64(i), int64(i)+1, int64(k))
	}
	return d.readRuns(ctx, w, runs, dst, func() []blocks { return d.tiny(w, indices) })
}

func (p *packed) read(ctx context.Context, u *use, runs []chunk.Run, dst []byte) error {
	if len(u.held) > 0 {
		p.file.hold(u)
		defer p.file.free(u)
	}
	return p.r.Runs(ctx, dst, runs)
}

// wrongBlock returns which of the packed blocks has a chunk that could not be read; ok is false
// where an error is of something else.
func (d *Dataset) wrongBlock(err error) (block int64, ok bool) {
	bad, is := errors.AsType[*chunk.Error](err)
	if !is || !errors.Is(err, meta.ErrCorrupt) || d.grid.packed == nil {
		return 0, false
	}
	x := d.grid.packed
	block = x.at(bad.Offset)
	return block, block < x.count && x.places[block].off <= bad.Offset
}

// mends reports whether it makes sense to read once more what failed, as a chunk that was wrong is
// fetched again then.
func (d *Dataset) mends(err error) bool {
	block, ok := d.wrongBlock(err)
	if ok {
		d.distrust(block)
	}
	return ok
}

// distrust takes a packed block out of the mirror. Whether it was changed on its way or on disk
// nobody can tell: its checksum is of what came.
func (d *Dataset) distrust(block int64) {
	x := d.grid.packed
	d.counts.wrong.Add(1)
	d.state.remove(x.base + block)
	d.memory.drop(x.base + block)
	if x.forget(block) {
		d.left.Add(1)
		d.engine.unasked.Add(1)
		d.whole.Store(false)
	}
}
