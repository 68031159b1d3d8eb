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

// grid divides the files of a dataset into blocks. A block is covered by one checksum, is fetched as a whole, and has a
// bit in the state. Blocks are numbered over all extents.
type grid struct {
	extents []*extent
	files   map[string][]*extent // the extents of a file, by its path
	// The chunks of all packed columns; nil if there are none, or if they came with the metadata.
	packed   *extent
	blocks   int64
	segments int64
	bytes    int64 // of all blocks
	unit     int64 // bytes of a segment, about
}

// extent is a run of rows in one file of the mirror.
type extent struct {
	layout.Extent
	name     string // of the file in the mirror, for people
	object   string // the key of what it is a copy of
	size     int64  // bytes of a row
	per      int64  // rows of a block
	count    int64  // blocks
	places   []part // of blocks that follow no rule, by offset: of the Extent there is a Path only then
	bytes    int64  // of all blocks
	base     int64  // number of its first block
	segment  int64  // number of its first segment
	perSeg   int64  // blocks of a segment
	segments int64

	metadata bool // fetched when the file was opened, and never taken out
	wanted   bool // by the fields and the split that are open

	sums    atomic.Pointer[layout.Checksums] // of its blocks; nil until they are here
	loading chan struct{}                    // has room for the goroutine that fetches them
	right   layout.BlockSet                  // blocks that this process knows to be right
}

// newGrid lays out the blocks of a dataset's columns. Extents of no rows have none.
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

func (g *grid) add(e layout.Extent, row int64) (*extent, error) {
	x := &extent{Extent: e, size: row, per: layout.BlockRecords(int(row)), bytes: e.Count * row}
	x.count = layout.Blocks(e.Count, int(row))
	return x, g.number(x)
}

// number gives the blocks and segments of an extent their numbers.
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

// span returns where blocks [from, to) are in the file, with what lies between them.
func (x *extent) span(from, to int64) (off, n int64) {
	if x.places != nil {
		return x.places[from].off, x.places[to-1].end() - x.places[from].off
	}
	a, b := from*x.per, min(to*x.per, x.Count)
	return x.Offset + a*x.size, (b - a) * x.size
}

// segmentOf returns the segment of a block of the extent.
func (x *extent) segmentOf(block int64) int64 { return x.segment + block/x.perSeg }

// want records that the extents of columns will be read.
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

// blocksOf appends the blocks that bytes of a file lie in. Bytes of no block came when the file was
// opened.
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

// blocksIn returns the blocks that ranges lie in.
func (g *grid) blocksIn(ranges []mmapds.Range) (list []blocks) {
	for _, r := range ranges {
		list = g.blocksOf(list, r.Path, r.Offset, r.Bytes)
	}
	return list
}

// blocks are some of an extent: [from, to).
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
