package mirror

import (
	"fmt"
	"sort"
	"sync/atomic"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// Limits that only a hostile manifest exceeds: the state of a mirror has a bit for each block, and memory an entry for
// each extent.
const (
	maxBlocks  = 1 << 36 // one bit of the state for each
	maxExtents = 1 << 24
)

// A segment is the unit of eviction from the mirror: one block, or as many blocks as have segmentBytes. Datasets that
// would have more than maxSegments get larger segments, as each segment has an entry in the state.
const (
	segmentBytes = 256 << 10
	maxSegments  = 1 << 24
)

// grid divides the files of a dataset into blocks. A block is covered by one checksum, is fetched
// as a whole, and has one bit in the state. Blocks are numbered over all extents. A grid does not
// change after Open.
type grid struct {
	extents []*extent
	files   map[string][]*extent // the extents of a file, by its path
	// packed has the chunks of all packed columns; nil if no column is packed, or if the chunks
	// came with the metadata.
	packed   *extent
	blocks   int64
	segments int64
	bytes    int64 // of all blocks
	unit     int64 // about the bytes of a segment
}

// extent is consecutive rows in one file of the mirror or, with places, the chunks of an HDF5 file.
type extent struct {
	layout.Extent
	name     string // of the file in the mirror
	object   string // key of the object of which the file is a copy
	size     int64  // bytes of a row
	per      int64  // rows in a block
	count    int64  // number of blocks
	places   []part // where each block is, if no rule says; then only Path of the Extent is set
	bytes    int64  // of all blocks
	base     int64  // number of its first block
	segment  int64  // number of its first segment
	perSeg   int64  // blocks in a segment
	segments int64

	metadata bool // fetched by Open, and never evicted
	wanted   bool // belongs to the opened fields and split

	sums    atomic.Pointer[layout.Checksums] // checksums of the blocks; nil until they are loaded
	loading chan struct{}                    // a lock for loading sums, which can be waited for with a context
	right   layout.BlockSet                  // blocks that this process has found right
}

// newGrid lays out the blocks of a dataset's columns. key returns the name in the mirror and the
// object of a file.
func newGrid(d *store.Dataset, key func(path string) (name, object string)) (*grid, error) {
	g := &grid{files: make(map[string][]*extent), unit: max(segmentBytes, d.Bytes()/maxSegments)}
	for _, meta := range layout.Of(d).Columns {
		if meta.Packed {
			continue // see addPacked
		}
		for _, e := range meta.Extents {
			x, err := g.add(e, int64(meta.Spec.RecordBytes()))
			if err != nil {
				return nil, err
			}
			x.name, x.object = key(e.Path)
		}
	}
	return g, nil
}

// add adds an extent with rows of that many bytes.
func (g *grid) add(e layout.Extent, row int64) (*extent, error) {
	x := &extent{Extent: e, size: row, per: layout.BlockRecords(int(row)), bytes: e.Count * row}
	x.count = layout.Blocks(e.Count, int(row))
	return x, g.number(x)
}

// number adds an extent to the grid: its blocks and segments get the numbers after the numbers of the extents
// before. A manifest that needs too many blocks or extents is refused.
func (g *grid) number(x *extent) error {
	x.base, x.segment, x.loading = g.blocks, g.segments, make(chan struct{}, 1)
	x.right.Make(x.count)
	x.perSeg = max(1, g.unit/x.typical())
	x.segments = (x.count + x.perSeg - 1) / x.perSeg
	g.blocks += x.count
	g.segments += x.segments
	g.bytes += x.bytes
	g.files[x.Path] = append(g.files[x.Path], x)
	if g.extents = append(g.extents, x); g.blocks > maxBlocks || len(g.extents) > maxExtents {
		return fmt.Errorf("it has more than %d blocks or %d shards: %w", int64(maxBlocks), maxExtents, store.ErrUnsupported)
	}
	return nil
}

// span returns the offset and length in the file of blocks [from, to), with the gaps between them.
func (x *extent) span(from, to int64) (off, n int64) {
	if x.places != nil {
		return x.places[from].off, x.places[to-1].end() - x.places[from].off
	}
	a, b := from*x.per, min(to*x.per, x.Count)
	return x.Offset + a*x.size, (b - a) * x.size
}

// segmentOf returns the segment of a block of the extent.
func (x *extent) segmentOf(block int64) int64 { return x.segment + block/x.perSeg }

// want marks the extents of columns that will be read.
func (g *grid) want(columns []layout.Column) {
	for _, c := range columns {
		if c.Packed {
			continue
		}
		size := int64(c.Spec.RecordBytes())
		for _, e := range c.Extents {
			for _, r := range g.blocksOf(nil, e.Path, e.Offset, e.Count*size) {
				r.x.wanted = true
			}
		}
	}
}

// blocksOf appends the blocks that have bytes [off, off+n) of a file. Bytes in no block were
// fetched by Open.
func (g *grid) blocksOf(list []blocks, path string, off, n int64) []blocks {
	for _, x := range g.files[path] {
		if x.places != nil {
			from := x.at(off)
			to := int64(sort.Search(len(x.places), func(i int) bool { return x.places[i].off >= off+n }))
			if from < to {
				list = appendBlocks(list, x, from, to)
			}
			continue
		}
		from, to := max(0, off-x.Offset), min(x.bytes, off+n-x.Offset)
		if from < to {
			block := x.per * x.size
			list = appendBlocks(list, x, from/block, (to-1)/block+1)
		}
	}
	return list
}

// blocksIn returns the blocks that have bytes of some ranges.
func (g *grid) blocksIn(ranges []mmapds.Range) (list []blocks) {
	for _, r := range ranges {
		list = g.blocksOf(list, r.Path, r.Offset, r.Bytes)
	}
	return list
}

// blocks are blocks [from, to) of an extent, numbered within the extent.
type blocks struct {
	x        *extent
	from, to int64
}

// appendBlocks appends blocks [from, to) of an extent, joined with the range before where they touch: one range becomes
// one request.
func appendBlocks(list []blocks, x *extent, from, to int64) []blocks {
	if n := len(list); n > 0 && list[n-1].x == x && list[n-1].from <= from && from <= list[n-1].to {
		list[n-1].to = max(list[n-1].to, to)
		return list
	}
	return append(list, blocks{x, from, to})
}
