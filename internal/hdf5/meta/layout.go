package meta

import (
	"fmt"
)

// layoutKind says how the elements of a dataset are stored.
type layoutKind uint8

// The layouts of HDF5.
const (
	Compact    layoutKind = iota // inside the object header
	Contiguous                   // in one piece
	Chunked                      // in pieces of equal shape
	Virtual                      // in other datasets
)

var layoutNames = [...]string{"compact", "contiguous", "chunked", "virtual"}

// String returns the name, for example "chunked".
func (k layoutKind) String() string {
	if int(k) < len(layoutNames) {
		return layoutNames[k]
	}
	return fmt.Sprintf("class %d", uint8(k))
}

// indexKind says how the chunks of a dataset are found.
type indexKind uint8

// The chunk indexes of HDF5.
const (
	noIndex indexKind = iota
	singleChunk
	implicit
	fixedArray
	extensibleArray
	bTreeV2
	bTreeV1
)

var indexNames = [...]string{"none", "single chunk", "implicit", "fixed array", "extensible array", "B-tree v2",
	"B-tree v1"}

// String returns the name, for example "fixed array".
func (k indexKind) String() string {
	if int(k) < len(indexNames) {
		return indexNames[k]
	}
	return fmt.Sprintf("index %d", uint8(k))
}

// Layout says where the elements of a dataset are. Offsets count from the start of the
// file, user block included.
type Layout struct {
	Kind      layoutKind
	Version   int       // of the layout message, 1 to 5
	Offset    int64     // Compact, Contiguous: the first element; -1 if not allocated or elsewhere
	Size      int64     // Compact, Contiguous: bytes of the elements
	ChunkDims []int64   // Chunked: elements of a chunk on each axis
	Index     indexKind // Chunked
	IndexAt   int64     // Chunked: offset of the index, or of the data for SingleChunk and Implicit; -1: not written

	Params messageChunkParams
}

// messageChunkParams are the parameters of the chunk index besides its address.
type messageChunkParams struct {
	Addr       uint64 // relative to the base address; Virtual: of the heap with the list of sources
	ElemSize   int64  // bytes of an element, the last chunk dimension
	EdgeRaw    bool   // chunks that reach over the edge are not filtered
	Filtered   bool   // SingleChunk: size and mask are stored here
	Size       uint64
	Mask       uint32 // Virtual: number of the list in the heap
	pageBits   uint8
	SizeStored bool // Size comes from the message, not from the dataspace
}

// parseLayout reads the data layout message (IV.A.2.i). Versions 1 and 2 are of libhdf5 before 1.6.3, 3 is the default
// of all versions, and 4 has the chunk indexes of 1.10.
func parseLayout(c *cursor) Layout {
	version := c.Version(1, 5)
	l := Layout{Version: int(version), Offset: -1, IndexAt: -1}
	switch {
	case c.Err != nil:
	case version < 3:
		l.parseOld(c)
	default:
		l.parseNew(c)
	}
	return l
}

// parseOld reads versions 1 and 2.
func (l *Layout) parseOld(c *cursor) {
	n := int(c.U8())
	l.Kind = layoutKind(c.U8())
	c.Skip(5)
	if c.Err == nil && (n == 0 || n > maxRank+1 || l.Kind > Chunked) {
		c.Corrupt("layout %v with %d dimensions", l.Kind, n)
	}
	addr := uint64(undef)
	if l.Kind != Compact {
		addr = c.Addr()
	}
	switch l.Kind {
	case Chunked:
		l.Index = bTreeV1
		l.chunkDims(c, n, 4)
		l.indexAddr(c, addr)
	case Contiguous:
		c.Skip(4 * n)
		l.setOffset(c, addr)
	default:
		c.Skip(4 * n)
		l.compact(c, uint64(c.U32()))
	}
}

// parseNew reads versions 3 to 5. Chunked and virtual layouts of 4 and 5 have other bytes than version 3's; version 5,
// of libhdf5 2.0, is 4 with chunks that may exceed 4 GiB and 8 bytes for the stored size of each in the index.
func (l *Layout) parseNew(c *cursor) {
	l.Kind = layoutKind(c.U8())
	switch l.Kind {
	case Compact:
		l.compact(c, uint64(c.U16()))
	case Contiguous:
		l.setOffset(c, c.Addr())
		n := c.Length()
		if c.Err == nil && n > 1<<63-1 {
			c.Corrupt("contiguous data of %d bytes", n)
		}
		l.Size, l.Params.SizeStored = int64(n), true
	case Chunked:
		l.parseChunked(c)
	case Virtual:
		l.Params.Addr, l.Params.Mask = c.Addr(), c.U32()
	default:
		c.Unsupported("layout %v", l.Kind)
	}
}

// parseChunked reads where the chunk index is. Before version 4 it is always a version 1 B-tree, and sizes of chunks
// have 4 bytes an axis. Version 4 says how many bytes, and names one of five indexes, whose parameters are in the
// message.
func (l *Layout) parseChunked(c *cursor) {
	if l.Version == 3 {
		l.Index = bTreeV1
		n := int(c.U8())
		addr := c.Addr()
		l.chunkDims(c, n, 4)
		l.indexAddr(c, addr)
		return
	}
	flags := c.U8()
	l.Params.EdgeRaw = flags&1 != 0
	n := int(c.U8())
	l.chunkDims(c, n, int(c.U8()))
	l.Index = indexKind(c.U8())
	l.indexParams(c, flags)
	l.indexAddr(c, c.Addr())
}

// indexParams reads the creation parameters of version 4 indexes. The index structures
// repeat all but the fixed array's page size.
func (l *Layout) indexParams(c *cursor, flags uint8) {
	switch l.Index {
	case singleChunk:
		if l.Params.Filtered = flags&2 != 0; l.Params.Filtered {
			l.Params.Size, l.Params.Mask = c.Length(), c.U32()
		}
	case implicit:
	case fixedArray:
		l.Params.pageBits = c.U8()
	case extensibleArray:
		c.Skip(5)
	case bTreeV2:
		c.Skip(6)
	default:
		if c.Err == nil {
			c.Unsupported("chunk index of type %d", uint8(l.Index))
		}
	}
}

// chunkDims reads n lengths of width bytes; the last is the element size.
func (l *Layout) chunkDims(c *cursor, n, width int) {
	if c.Err == nil && (n < 2 || n > maxRank+1 || width < 1 || width > 8) {
		c.Corrupt("chunk with %d dimensions of %d bytes", n, width)
	}
	dims := make([]uint64, 0, n)
	for i := 0; i < n && c.Err == nil; i++ {
		dims = append(dims, c.Uint(width))
	}
	size, ok := product(dims...)
	if c.Err == nil && (!ok || size == 0 || size > 1<<32-1 && l.Version < 5) {
		c.Corrupt("chunk of shape %v, element size last", dims)
	}
	if c.Err != nil {
		return
	}
	for _, d := range dims[:n-1] {
		l.ChunkDims = append(l.ChunkDims, int64(d))
	}
	l.Params.ElemSize = int64(dims[n-1])
}

// compact records where the elements are inside of the message: a compact dataset has no storage of its own.
func (l *Layout) compact(c *cursor, n uint64) {
	at := c.At + int64(c.Pos)
	if c.Bytes(n); c.Err == nil {
		l.Offset, l.Size, l.Params.SizeStored = at, int64(n), true
	}
}

func (l *Layout) setOffset(c *cursor, addr uint64) {
	if c.Err == nil && addr != undef {
		l.Offset = offsetOf(c, addr)
	}
}

func (l *Layout) indexAddr(c *cursor, addr uint64) {
	if l.Params.Addr = addr; c.Err == nil && addr != undef {
		l.IndexAt = offsetOf(c, addr)
	}
}

// offsetOf returns the file offset of an address, and refuses an address whose offset would overflow.
func offsetOf(c *cursor, addr uint64) int64 {
	if addr > uint64(1<<63-1-c.Src.Base) {
		c.Corrupt("address 0x%x is out of range", addr)
		return -1
	}
	return c.Src.Abs(addr)
}
