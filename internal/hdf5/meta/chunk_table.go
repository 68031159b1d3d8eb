package meta

import (
	"slices"
)

// Chunk is a stored piece of a chunked dataset.
type Chunk struct {
	Offset int64   // offset of the stored bytes in the file, user block included
	Size   int64   // bytes stored
	Mask   uint32  // bit i set: Filters[i] was not applied to this chunk
	Coord  []int64 // the chunk's first element on each axis; shared, must not be changed
}

// ChunkTable lists the chunks of a dataset that are stored, in row-major order of their
// coordinates. Chunks that are not listed were never written: their elements have the fill
// value. It is immutable.
type ChunkTable struct {
	Chunks []Chunk
	Bytes  int64    // of a chunk after all filters are undone; chunks over the edge are as large
	Index  []Extent // structures of the index, by offset
}

// maxChunks limits the chunks of a table, and so the memory that a chunk index can take.
const maxChunks = 1 << 24

// chunkParams say where and how the chunks of a dataset are stored.
type chunkParams struct {
	Space    Dataspace
	Layout   *Layout
	Filtered bool // chunks go through filters
	GroupK   int  // half of the children of a full node of a version 1 B-tree
}

// Read fills an empty table. Memory for chunks is allocated by the smallest of the places of the grid, the size of the
// file and a fixed limit, since the shape comes from the file.
func (t *ChunkTable) Read(s *source, of chunkParams) error {
	t.Bytes = of.Layout.Params.ElemSize
	places := uint64(1)
	for i, n := range of.Layout.ChunkDims {
		t.Bytes *= n
		places, _ = product(places, uint64(of.Space.Dims[i]/n+min(of.Space.Dims[i]%n, 1)))
	}
	t.Chunks = make([]Chunk, 0, min(places, uint64(s.Size)/16, 1<<16))
	r := &chunkReader{src: s, of: of, table: t}
	if err := r.read(); err != nil {
		return err
	}
	if err := r.sort(); err != nil {
		return err
	}
	t.Index = tidyExtents(t.Index)
	return nil
}

// chunkReader collects chunks from an index.
type chunkReader struct {
	src   *source
	of    chunkParams
	table *ChunkTable
	room  []int64 // room for coordinates
}

// read reads the index of the dataset, whichever kind it is.
func (r *chunkReader) read() error {
	x := r.of.Layout.Params
	if n, ok := r.of.Space.Elems(); x.Addr == undef || ok && n == 0 {
		return nil
	}
	switch r.of.Layout.Index {
	case bTreeV1:
		return r.btreeV1(x.Addr)
	case bTreeV2:
		return r.btreeV2(x.Addr)
	case fixedArray:
		return r.fixedArray(x.Addr)
	case extensibleArray:
		return r.extensibleArray(x.Addr)
	case implicit:
		return r.implicit(x.Addr)
	}
	size := uint64(r.table.Bytes)
	if x.Filtered {
		size = x.Size
	}
	return r.add(make([]uint64, len(r.of.Space.Dims)), x.Addr, size, x.Mask)
}

// add appends the chunk at grid coordinates. Coordinates outside of the shape are skipped: a dataset that has shrunk
// may still have such chunks.
func (r *chunkReader) add(grid []uint64, addr, size uint64, mask uint32) error {
	coord := r.coords(len(grid))
	partial := false
	for i, g := range grid {
		n := uint64(r.of.Layout.ChunkDims[i])
		if g > uint64(r.of.Space.Dims[i])/n || g*n >= uint64(r.of.Space.Dims[i]) {
			return nil
		}
		coord[i] = int64(g * n)
		partial = partial || uint64(r.of.Space.Dims[i])-g*n < n
	}
	if r.of.Layout.Params.EdgeRaw && partial && r.of.Filtered {
		mask, size = ^uint32(0), uint64(r.table.Bytes)
	}
	if err := r.check(addr, size); err != nil {
		return err
	}
	r.room = r.room[len(grid):]
	r.table.Chunks = append(r.table.Chunks, Chunk{Offset: r.src.Abs(addr), Size: int64(size), Mask: mask, Coord: coord})
	return nil
}

// coords returns memory for the coordinates of one chunk. It is cut from larger pieces: a table may have millions of
// chunks, and an allocation for each would cost more than the coordinates.
func (r *chunkReader) coords(n int) []int64 {
	if len(r.room) < n {
		r.room = make([]int64, n*min(max(64, cap(r.table.Chunks)-len(r.table.Chunks)), 1<<14))
	}
	return r.room[:n:n]
}

// check refuses a chunk that is not inside of the file, has an impossible size, or exceeds the limits. Readers rely on
// all of this.
func (r *chunkReader) check(addr, size uint64) error {
	bad := func(kind error, format string, args ...any) error {
		return r.src.ErrorAt(kind, addr, "chunk", format, args...)
	}
	switch {
	case size == 0 || !r.src.Inside(addr, size):
		return bad(ErrCorrupt, "%d bytes are not in the file (%d bytes)", size, r.src.Size)
	case !r.of.Filtered && size != uint64(r.table.Bytes):
		return bad(ErrCorrupt, "%d bytes without filters, its shape needs %d", size, r.table.Bytes)
	case len(r.table.Chunks) >= maxChunks || !r.src.Spend(12):
		return bad(ErrUnsupported, "more chunks than the limit for a file of %d bytes", r.src.Size)
	}
	return nil
}

// sort brings the chunks into row-major order, which most indexes already have, and refuses two chunks at one place:
// it is not defined which of the two a reader would get.
func (r *chunkReader) sort() error {
	list := r.table.Chunks
	byCoord := func(a, b Chunk) int { return slices.Compare(a.Coord, b.Coord) }
	if !slices.IsSortedFunc(list, byCoord) {
		slices.SortFunc(list, byCoord)
	}
	for i := 1; i < len(list); i++ {
		if byCoord(list[i-1], list[i]) == 0 {
			return r.src.ErrorAt(ErrCorrupt, r.of.Layout.Params.Addr, "chunk index", "two chunks at %v", list[i].Coord)
		}
	}
	return nil
}

// btreeV1 reads a version 1 B-tree, whose keys are: stored size (4 bytes), filter mask (4),
// coordinates in elements (8 each), 0 for the axis inside the element (8).
func (r *chunkReader) btreeV1(addr uint64) error {
	rank := len(r.of.Space.Dims)
	grid := make([]uint64, rank)
	t := btree1{Src: r.src, Kind: treeChunk, KeySize: 8 + 8*(rank+1), What: "chunk B-tree node"}
	t.MaxKids = 2 * r.of.GroupK
	t.Leaf = func(key *cursor, child uint64) error {
		size, mask := uint64(key.U32()), key.U32()
		for i := range grid {
			n := uint64(r.of.Layout.ChunkDims[i])
			x := key.U64()
			if grid[i] = x / n; key.Err == nil && x%n != 0 {
				key.Corrupt("chunk at element %d of axis %d, chunks have %d", x, i, n)
			}
		}
		if key.Err != nil {
			return key.Err
		}
		return r.add(grid, child, size, mask)
	}
	return t.Walk(addr, -1)
}

// btreeV2 reads a version 2 B-tree, whose records are: address, with filters size and
// mask, grid coordinates (8 bytes each).
func (r *chunkReader) btreeV2(addr uint64) error {
	t := btree2{Src: r.src, Kind: treeChunkPlain, What: "chunk B-tree"}
	if r.of.Filtered {
		t.Kind = treeChunkFilters
	}
	grid := make([]uint64, len(r.of.Space.Dims))
	t.Record = func(rec *cursor) error {
		addr, size, mask := r.element(rec, len(rec.B)-8*len(grid))
		for i := range grid {
			grid[i] = rec.U64()
		}
		if rec.Err != nil {
			return rec.Err
		}
		return r.add(grid, addr, size, mask)
	}
	return t.Walk(addr)
}

// element reads the entry that every index of layout version 4 stores for a chunk, in n bytes: the address and, with
// filters, the stored size and the mask. The stored size takes the bytes of n that address and mask leave.
func (r *chunkReader) element(c *cursor, n int) (addr, size uint64, mask uint32) {
	addr, size = c.Addr(), uint64(r.table.Bytes)
	if !r.of.Filtered {
		return addr, size, 0
	}
	width := n - r.src.OffSize - 4
	if c.Err == nil && (width < 1 || width > 8) {
		c.Corrupt("chunk sizes of %d bytes", width)
		return addr, 0, 0
	}
	return addr, c.Uint(max(width, 0)), c.U32()
}
