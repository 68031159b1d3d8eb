package meta

import "fmt"

// LayoutKind is how the elements of a dataset are stored.
type LayoutKind uint8

// The layouts of HDF5.
const (
	Compact    LayoutKind = iota // inside the object header
	Contiguous                   // in one piece
	Chunked                      // in pieces of equal shape
	Virtual                      // in other datasets
)

var layoutNames = [...]string{"compact", "contiguous", "chunked", "virtual"}

// String returns the name, for example "chunked".
func (k LayoutKind) String() string {
	if int(k) < len(layoutNames) {
		return layoutNames[k]
	}
	return fmt.Sprintf("class %d", uint8(k))
}

// IndexKind is how the chunks of a dataset are found.
type IndexKind uint8

// The chunk indexes of HDF5.
const (
	NoIndex IndexKind = iota
	SingleChunk
	Implicit
	FixedArray
	ExtensibleArray
	BTreeV2
	BTreeV1
)

var indexNames = [...]string{"none", "single chunk", "implicit", "fixed array", "extensible array", "B-tree v2", "B-tree v1"}

// String returns the name, for example "fixed array".
func (k IndexKind) String() string {
	if int(k) < len(indexNames) {
		return indexNames[k]
	}
	return fmt.Sprintf("index %d", uint8(k))
}

// Layout says where the elements of a dataset are. Offsets count from the start of the
// file, user block included.
type Layout struct {
	Kind      LayoutKind
	Version   int       // of the layout message, 1 to 5
	Offset    int64     // Compact, Contiguous: the first element; -1 if not allocated or elsewhere
	Size      int64     // Compact, Contiguous: bytes of the elements
	ChunkDims []int64   // Chunked: elements of a chunk on each axis
	Index     IndexKind // Chunked
	IndexAt   int64     // Chunked: where the index is, for SingleChunk and Implicit the data; -1 if there is none yet

	index chunkParams
}

// chunkParams is what the chunk index needs beyond its address.
type chunkParams struct {
	addr       uint64 // relative to the base address; Virtual: of the heap with the list of sources
	elemSize   int64  // bytes of an element, the last chunk dimension
	edgeRaw    bool   // chunks that reach over the edge are not filtered
	filtered   bool   // SingleChunk: size and mask are stored here
	size       uint64
	mask       uint32 // Virtual: number of the list in the heap
	pageBits   uint8
	sizeStored bool // Size comes from the message, not from the dataspace
}

func parseLayout(c *cursor) Layout {
	version := c.version(1, 5)
	l := Layout{Version: int(version), Offset: -1, IndexAt: -1}
	switch {
	case c.err != nil:
	case version < 3:
		l.parseOld(c)
	default:
		l.parseNew(c)
	}
	return l
}

// parseOld reads versions 1 and 2.
func (l *Layout) parseOld(c *cursor) {
	n := int(c.u8())
	l.Kind = LayoutKind(c.u8())
	c.skip(5)
	if c.err == nil && (n == 0 || n > maxRank+1 || l.Kind > Chunked) {
		c.corrupt("layout %v with %d dimensions", l.Kind, n)
	}
	addr := uint64(undef)
	if l.Kind != Compact {
		addr = c.addr()
	}
	switch l.Kind {
	case Chunked:
		l.Index = BTreeV1
		l.chunkDims(c, n, 4)
		l.indexAddr(c, addr)
	case Contiguous:
		c.skip(4 * n)
		l.setOffset(c, addr)
	default:
		c.skip(4 * n)
		l.compact(c, uint64(c.u32()))
	}
}

// parseNew reads versions 3 to 5. Chunked and virtual layouts of 4 and 5 are not those of 3;
// version 5, of libhdf5 2.0, is 4 with chunks that may exceed 4 GiB and 8 bytes for the
// stored size of each in the index.
func (l *Layout) parseNew(c *cursor) {
	l.Kind = LayoutKind(c.u8())
	switch l.Kind {
	case Compact:
		l.compact(c, uint64(c.u16()))
	case Contiguous:
		l.setOffset(c, c.addr())
		n := c.length()
		if c.err == nil && n > 1<<63-1 {
			c.corrupt("contiguous data of %d bytes", n)
		}
		l.Size, l.index.sizeStored = int64(n), true
	case Chunked:
		l.parseChunked(c)
	case Virtual:
		l.index.addr, l.index.mask = c.addr(), c.u32()
	default:
		c.unsupported("layout %v", l.Kind)
	}
}

func (l *Layout) parseChunked(c *cursor) {
	if l.Version == 3 {
		l.Index = BTreeV1
		n := int(c.u8())
		addr := c.addr()
		l.chunkDims(c, n, 4)
		l.indexAddr(c, addr)
		return
	}
	flags := c.u8()
	l.index.edgeRaw = flags&1 != 0
	n := int(c.u8())
	l.chunkDims(c, n, int(c.u8()))
	l.Index = IndexKind(c.u8())
	l.indexParams(c, flags)
	l.indexAddr(c, c.addr())
}

// indexParams reads the creation parameters of version 4 indexes. The index structures
// repeat all but the fixed array's page size.
func (l *Layout) indexParams(c *cursor, flags uint8) {
	switch l.Index {
	case SingleChunk:
		if l.index.filtered = flags&2 != 0; l.index.filtered {
			l.index.size, l.index.mask = c.length(), c.u32()
		}
	case Implicit:
	case FixedArray:
		l.index.pageBits = c.u8()
	case ExtensibleArray:
		c.skip(5)
	case BTreeV2:
		c.skip(6)
	default:
		if c.err == nil {
			c.unsupported("chunk index of type %d", uint8(l.Index))
		}
	}
}

// chunkDims reads n lengths of width bytes; the last is the element size.
func (l *Layout) chunkDims(c *cursor, n, width int) {
	if c.err == nil && (n < 2 || n > maxRank+1 || width < 1 || width > 8) {
		c.corrupt("chunk with %d dimensions of %d bytes", n, width)
	}
	dims := make([]uint64, 0, n)
	for i := 0; i < n && c.err == nil; i++ {
		dims = append(dims, c.uint(width))
	}
	size, ok := product(dims...)
	if c.err == nil && (!ok || size == 0 || size > 1<<32-1 && l.Version < 5) {
		c.corrupt("chunk of shape %v, element size last", dims)
	}
	if c.err != nil {
		return
	}
	for _, d := range dims[:n-1] {
		l.ChunkDims = append(l.ChunkDims, int64(d))
	}
	l.index.elemSize = int64(dims[n-1])
}

func (l *Layout) compact(c *cursor, n uint64) {
	at := c.at + int64(c.pos)
	if c.bytes(n); c.err == nil {
		l.Offset, l.Size, l.index.sizeStored = at, int64(n), true
	}
}

func (l *Layout) setOffset(c *cursor, addr uint64) {
	if c.err == nil && addr != undef {
		l.Offset = c.src.offset(c, addr)
	}
}

func (l *Layout) indexAddr(c *cursor, addr uint64) {
	if l.index.addr = addr; c.err == nil && addr != undef {
		l.IndexAt = c.src.offset(c, addr)
	}
}

// offset turns an address into an offset, which must be one.
func (s *source) offset(c *cursor, addr uint64) int64 {
	if addr > uint64(1<<63-1-s.base) {
		c.corrupt("address 0x%x is out of range", addr)
		return -1
	}
	return s.abs(addr)
}
