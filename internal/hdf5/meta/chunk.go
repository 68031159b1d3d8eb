package meta

import (
	"slices"
)

// Chunk is a stored piece of a chunked dataset.
type Chunk struct {
	Offset int64   // of its bytes in the file, user block included
	Size   int64   // bytes stored
	Mask   uint32  // bit i set: Filters[i] was not applied to this chunk
	Coord  []int64 // its first element on each axis; shared, must not be changed
}

// ChunkTable lists the chunks of a dataset that are stored, in row-major order of their
// coordinates. Chunks that are not listed were never written: their elements have the fill
// value. It is immutable.
type ChunkTable struct {
	Chunks []Chunk
	Bytes  int64    // of a chunk after all filters are undone; chunks over the edge are as large
	Index  []Extent // structures of the index, by offset
}

// maxChunks is the most chunks that a table holds.
const maxChunks = 1 << 24

// Chunks reads the chunk index. Every chunk is in the file, at most one at each place of
// the grid. The error wraps ErrUnsupported for a dataset that is not chunked, ErrCorrupt
// for a corrupt index, or is that of the ReaderAt.
func (d *Dataset) Chunks() (t *ChunkTable, err error) {
	defer guard(&err)
	return d.chunks()
}

func (d *Dataset) chunks() (*ChunkTable, error) {
	switch {
	case d.Err != nil:
		return nil, d.Err
	case d.Layout.Kind != Chunked:
		return nil, refuse("layout %s has no chunks", d.Layout.Kind)
	}
	r := &chunkReader{d: d, table: new(ChunkTable)}
	r.source = d.file.session(&r.table.Index)
	r.table.Bytes = d.Layout.index.elemSize
	places := uint64(1)
	for i, n := range d.Layout.ChunkDims {
		r.table.Bytes *= n
		places, _ = product(places, uint64(d.Dims[i]/n+min(d.Dims[i]%n, 1)))
	}
	r.table.Chunks = make([]Chunk, 0, min(places, uint64(d.file.Size)/16, 1<<16))
	if err := r.read(); err != nil {
		return nil, inPath(err, d.Path)
	}
	if err := r.sort(); err != nil {
		return nil, inPath(err, d.Path)
	}
	r.table.Index = tidyExtents(r.table.Index)
	return r.table, nil
}

// chunkReader collects chunks from an index.
type chunkReader struct {
	*source
	d     *Dataset
	table *ChunkTable
	room  []int64 // room for coordinates
}

func (r *chunkReader) filtered() bool { return len(r.d.Filters) > 0 }

// read goes through the index, whichever kind it is.
func (r *chunkReader) read() error {
	x := r.d.Layout.index
	if n, ok := r.d.Elems(); x.addr == undef || ok && n == 0 {
		return nil
	}
	switch r.d.Layout.Index {
	case BTreeV1:
		return r.btreeV1(x.addr)
	case BTreeV2:
		return r.btreeV2(x.addr)
	case FixedArray:
		return r.fixedArray(x.addr)
	case ExtensibleArray:
		return r.extensibleArray(x.addr)
	case Implicit:
		return r.implicit(x.addr)
	}
	size := uint64(r.table.Bytes)
	if x.filtered {
		size = x.size
	}
	return r.add(make([]uint64, len(r.d.Dims)), x.addr, size, x.mask)
}

// add appends the chunk at grid coordinates, unless they are outside of the shape, as those
// of a dataset that has shrunk may be.
func (r *chunkReader) add(grid []uint64, addr, size uint64, mask uint32) error {
	coord := r.coords(len(grid))
	partial := false
	for i, g := range grid {
		n := uint64(r.d.Layout.ChunkDims[i])
		if g > uint64(r.d.Dims[i])/n || g*n >= uint64(r.d.Dims[i]) {
			return nil
		}
		coord[i] = int64(g * n)
		partial = partial || uint64(r.d.Dims[i])-g*n < n
	}
	if r.d.Layout.index.edgeRaw && partial && r.filtered() {
		mask, size = ^uint32(0), uint64(r.table.Bytes)
	}
	if err := r.check(addr, size); err != nil {
		return err
	}
	r.room = r.room[len(grid):]
	r.table.Chunks = append(r.table.Chunks, Chunk{Offset: r.abs(addr), Size: int64(size), Mask: mask, Coord: coord})
	return nil
}

// coords returns room for the coordinates of one chunk.
func (r *chunkReader) coords(n int) []int64 {
	if len(r.room) < n {
		r.room = make([]int64, n*min(max(64, cap(r.table.Chunks)-len(r.table.Chunks)), 1<<14))
	}
	return r.room[:n:n]
}

// check validates where a chunk is, and how large it is.
func (r *chunkReader) check(addr, size uint64) error {
	bad := func(kind error, format string, args ...any) error {
		return r.errorAt(kind, addr, "chunk", format, args...)
	}
	switch {
	case size == 0 || !r.inside(addr, size):
		return bad(ErrCorrupt, "%d bytes are not in the file (%d bytes)", size, r.size)
	case !r.filtered() && size != uint64(r.table.Bytes):
		return bad(ErrCorrupt, "%d bytes without filters, its shape needs %d", size, r.table.Bytes)
	case len(r.table.Chunks) >= maxChunks || !r.spend(12):
		return bad(ErrUnsupported, "more chunks than the limit for a file of %d bytes", r.size)
	}
	return nil
}

// sort brings the chunks into row-major order, which most indexes already have, and
// refuses two at one place.
func (r *chunkReader) sort() error {
	list := r.table.Chunks
	byCoord := func(a, b Chunk) int { return slices.Compare(a.Coord, b.Coord) }
	if !slices.IsSortedFunc(list, byCoord) {
		slices.SortFunc(list, byCoord)
	}
	for i := 1; i < len(list); i++ {
		if byCoord(list[i-1], list[i]) == 0 {
			return r.errorAt(ErrCorrupt, r.d.Layout.index.addr, "chunk index", "two chunks at %v", list[i].Coord)
		}
	}
	return nil
}

// btreeV1 reads a version 1 B-tree, whose keys are: stored size (4 bytes), filter mask (4),
// coordinates in elements (8 each), 0 for the axis inside the element (8).
func (r *chunkReader) btreeV1(addr uint64) error {
	rank := len(r.d.Dims)
	grid := make([]uint64, rank)
	t := btree1{src: r.source, kind: btreeChunk, keySize: 8 + 8*(rank+1), what: "chunk B-tree node"}
	t.maxKids = 2 * int(r.d.file.Superblock.chunkK)
	t.leaf = func(key *cursor, child uint64) error {
		size, mask := uint64(key.u32()), key.u32()
		for i := range grid {
			n := uint64(r.d.Layout.ChunkDims[i])
			x := key.u64()
			if grid[i] = x / n; key.err == nil && x%n != 0 {
				key.corrupt("chunk at element %d of axis %d, chunks have %d", x, i, n)
			}
		}
		if key.err != nil {
			return key.err
		}
		return r.add(grid, child, size, mask)
	}
	return t.walk(addr, -1)
}

// btreeV2 reads a version 2 B-tree, whose records are: address, with filters size and
// mask, grid coordinates (8 bytes each).
func (r *chunkReader) btreeV2(addr uint64) error {
	t := btree2{src: r.source, kind: btreeChunkPlain, what: "chunk B-tree"}
	if r.filtered() {
		t.kind = btreeChunkFilters
	}
	grid := make([]uint64, len(r.d.Dims))
	t.record = func(rec *cursor) error {
		addr, size, mask := r.element(rec, len(rec.b)-8*len(grid))
		for i := range grid {
			grid[i] = rec.u64()
		}
		if rec.err != nil {
			return rec.err
		}
		return r.add(grid, addr, size, mask)
	}
	return t.walk(addr)
}

// element reads what all indexes of layout version 4 hold for a chunk, in n bytes: the
// address and, with filters, the stored size in what room is left, and the mask.
func (r *chunkReader) element(c *cursor, n int) (addr, size uint64, mask uint32) {
	addr, size = c.addr(), uint64(r.table.Bytes)
	if !r.filtered() {
		return addr, size, 0
	}
	width := n - r.offSize - 4
	if c.err == nil && (width < 1 || width > 8) {
		c.corrupt("chunk sizes of %d bytes", width)
		return addr, 0, 0
	}
	return addr, c.uint(max(width, 0)), c.u32()
}
