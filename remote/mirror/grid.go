package mirror

import (
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/store"
)

// What a hostile manifest could ask for, and a true one never does.
const (
	maxBlocks  = 1 << 36 // a bit of the state each
	maxExtents = 1 << 24
)

// A segment is what is taken out of the mirror at once: a block, or as many as have
// segmentBytes. Of datasets that would have more than maxSegments, segments are larger.
const (
	segmentBytes = 256 << 10
	maxSegments  = 1 << 24
)

// grid divides the files of a dataset into blocks: what a checksum covers, what is fetched,
// and what has a bit in the state. Blocks are numbered over all extents.
type grid struct {
	columns  []column // as those of the store.Dataset that it is of
	extents  []*extent
	packed   *extent // chunks of the columns that are packed; nil if there are none, or they came with the books
	blocks   int64
	segments int64
	bytes    int64 // of all blocks
	unit     int64 // bytes of a segment, about
}

// column is the extents of an array.
type column struct {
	meta    store.Column
	extents []*extent
}

// extent is a run of rows in one file of the mirror.
type extent struct {
	store.Extent
	name     string // of the file in the mirror, for people
	object   string // the key of what it is a copy of
	size     int64  // bytes of a row
	per      int64  // rows of a block
	count    int64  // blocks
	places   []part // of blocks that follow no rule, by offset: per, size and Count then say nothing
	bytes    int64  // of all blocks
	base     int64  // number of its first block
	segment  int64  // number of its first segment
	perSeg   int64  // blocks of a segment
	segments int64

	books  bool // fetched when the file was opened, and never taken out
	wanted bool // by the fields and the split that are open

	sums    atomic.Pointer[[]uint32] // of its blocks; nil until they are here
	loading chan struct{}            // has room for whoever fetches them
	checked []atomic.Uint64          // blocks that this process knows to be right; made with the first
	making  sync.Once
}

// newGrid lays out the blocks of a dataset's columns. Extents of no rows have none.
func newGrid(d *store.Dataset, key func(path string) (name, object string)) (*grid, error) {
	g := &grid{columns: make([]column, len(d.Columns)), unit: max(segmentBytes, d.Bytes()/maxSegments)}
	for i, meta := range d.Columns {
		c := &g.columns[i]
		c.meta = meta
		if meta.Packed {
			continue // see addPacked
		}
		for _, e := range meta.Extents {
			x, err := g.add(e, int64(meta.Spec.RecordBytes()))
			if err != nil {
				return nil, err
			}
			x.name, x.object = key(e.Path)
			c.extents = append(c.extents, x)
		}
	}
	return g, nil
}

func (g *grid) add(e store.Extent, row int64) (*extent, error) {
	x := &extent{Extent: e, size: row, per: store.BlockRecords(int(row)), bytes: e.Count * row}
	x.count = store.Blocks(e.Count, int(row))
	return x, g.number(x)
}

// number gives the blocks and segments of an extent their numbers.
func (g *grid) number(x *extent) error {
	x.base, x.segment, x.loading = g.blocks, g.segments, make(chan struct{}, 1)
	x.perSeg = max(1, g.unit/x.typical())
	x.segments = (x.count + x.perSeg - 1) / x.perSeg
	g.blocks += x.count
	g.segments += x.segments
	g.bytes += x.bytes
	if g.extents = append(g.extents, x); g.blocks > maxBlocks || len(g.extents) > maxExtents {
		return fmt.Errorf("it has more than %d blocks or %d shards: %w", int64(maxBlocks), maxExtents, store.ErrUnsupported)
	}
	return nil
}

// span returns where blocks [from, to) are in the file, with what lies between them.
func (x *extent) span(from, to int64) (off, n int64) {
	if x.places != nil {
		return x.places[from].off, x.places[to-1].end() - x.places[from].off
	}
	a, b := from*x.per, min(to*x.per, x.Count)
	return x.Offset + a*x.size, (b - a) * x.size
}

// marks returns the blocks that this process knows to be right.
func (x *extent) marks() []atomic.Uint64 {
	x.making.Do(func() { x.checked = make([]atomic.Uint64, (x.count+63)/64) })
	return x.checked
}

// segmentOf returns the segment of a block of the extent.
func (x *extent) segmentOf(block int64) int64 { return x.segment + block/x.perSeg }

// known reports whether this process knows a block to be right.
func (x *extent) known(block int64) bool {
	return x.marks()[block/64].Load()>>(block%64)&1 == 1
}

// know says so, and reports whether that is news.
func (x *extent) know(block int64) bool {
	bit := uint64(1) << (block % 64)
	return x.marks()[block/64].Or(bit)&bit == 0
}

// forget takes it back, and reports whether it was known.
func (x *extent) forget(block int64) bool {
	bit := uint64(1) << (block % 64)
	return x.marks()[block/64].And(^bit)&bit != 0
}

// view maps the columns of the dataset as it was opened, with some fields or of a split, onto
// the blocks of all of it.
func (g *grid) view(opened *store.Dataset, whole *store.Dataset) ([]window, error) {
	list := make([]window, len(opened.Columns))
	for i, meta := range opened.Columns {
		full := -1
		for k := range whole.Columns {
			if whole.Columns[k].Name == meta.Name {
				full = k
			}
		}
		if full < 0 {
			return nil, fmt.Errorf("column %q: %w", meta.Name, errors.ErrUnsupported)
		}
		list[i] = window{meta: meta, size: int64(meta.Spec.RecordBytes())}
		if err := list[i].fill(&g.columns[full]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// window is a column as it was opened: runs of rows, each somewhere in an extent.
type window struct {
	meta   store.Column
	size   int64 // bytes of a row
	pieces []piece
	packed *packed // nil where rows lie as they are
}

// piece is rows [first, first+count) of a window: those from row at of an extent on.
type piece struct {
	first, count int64
	extent       *extent
	at           int64
}

func (w *window) fill(c *column) error {
	if w.meta.Packed {
		return nil
	}
	in := make(map[string][]*extent) // by file; an HDF5 file has all of them
	for _, x := range c.extents {
		in[x.Path] = append(in[x.Path], x)
	}
	for _, e := range w.meta.Extents {
		if e.Count == 0 {
			w.pieces = append(w.pieces, piece{first: e.First})
			continue
		}
		p := piece{first: e.First, count: e.Count}
		for _, x := range in[e.Path] {
			if at := e.Offset - x.Offset; at >= 0 && at/x.size < x.Count {
				p.extent, p.at = x, at/x.size
			}
		}
		if p.extent == nil || p.at+p.count > p.extent.Count {
			return fmt.Errorf("column %q: its rows are nowhere in the file: %w", w.meta.Name, store.ErrCorrupt)
		}
		p.extent.wanted = true
		w.pieces = append(w.pieces, p)
	}
	return nil
}

// find returns the piece of a row, which must exist.
func (w *window) find(row int64) *piece {
	i := sort.Search(len(w.pieces), func(i int) bool { return w.pieces[i].first+w.pieces[i].count > row })
	return &w.pieces[i]
}

// each calls f with the blocks [from, to) of an extent that rows [a, b) lie in.
func (w *window) each(a, b int64, f func(x *extent, from, to int64)) {
	if w.packed != nil {
		for _, r := range w.runs(nil, a, b, 0) {
			w.packed.each(r, f)
		}
		return
	}
	for a < b {
		p := w.find(a)
		n := min(b, p.first+p.count) - a
		at := p.at + a - p.first
		f(p.extent, at/p.extent.per, (at+n-1)/p.extent.per+1)
		a += n
	}
}
