package meta

// fractalHeap reads objects of a "FRHP" heap: links and attributes in dense storage. Its
// blocks form a doubling table: rows of width blocks, of startSize bytes in rows 0 and 1,
// twice as large in each further row; rows from directRows on hold tables in turn.
type fractalHeap struct {
	src        *source
	addr       uint64
	idLen      int
	summed     bool   // direct blocks carry a checksum
	maxObject  uint64 // largest object inside blocks
	hugeTree   uint64
	width      uint64
	startSize  uint64
	directMax  uint64
	bits       int // of an offset in the heap
	root       uint64
	rootRows   int
	directRows int
	rowBits    int // log2 of the bytes of row 0

	blocks map[uint64][]byte   // blocks that were read, by address
	huge   map[uint64]objectAt // objects outside of the heap by id; nil until the first one is needed
}

// objectAt is where an object outside the heap is.
type objectAt struct{ addr, n uint64 }

// readFractalHeap reads the header of a fractal heap (III.G): libhdf5 keeps the links, attributes and shared messages
// of an object in a fractal heap if its header has no room for them. Free space and statistics are skipped, as only a
// writer needs them. Heaps with filters are refused: a library writes filtered heaps only if a program asks for
// filters.
func readFractalHeap(s *source, addr uint64) (*fractalHeap, error) {
	h := &fractalHeap{src: s, addr: addr, blocks: map[uint64][]byte{}}
	L, O := s.LenSize, s.OffSize
	c := s.Read(addr, uint64(26+12*L+3*O), "fractal heap")
	c.Signature("FRHP")
	c.Version(0, 0)
	h.idLen = int(c.U16())
	filterLen := c.U16()
	h.summed = c.U8()&2 != 0
	h.maxObject = uint64(c.U32())
	c.Length() // next huge id
	h.hugeTree = c.Addr()
	c.Length()    // free space in blocks
	c.Addr()      // its manager
	c.Skip(L * 8) // statistics: amounts and numbers of objects by kind
	h.width = uint64(c.U16())
	h.startSize, h.directMax = c.Length(), c.Length()
	h.bits = int(c.U16())
	c.Skip(2)
	h.root = c.Addr()
	h.rootRows = int(c.U16())
	if c.Err == nil && filterLen != 0 {
		c.Unsupported("heap with filters")
	}
	c.Checksum()
	h.check(c)
	s.Note(addr, uint64(len(c.B)), "fractal heap")
	return h, c.Err
}

// check validates the doubling table, so that no later shift, row or division is out of range.
func (h *fractalHeap) check(c *cursor) {
	pow2 := func(n uint64) bool { return n != 0 && n&(n-1) == 0 }
	if c.Err != nil {
		return
	}
	if !pow2(h.width) || !pow2(h.startSize) || !pow2(h.directMax) || h.directMax < h.startSize ||
		h.directMax > maxStructure || h.bits > 64 || h.idLen < 2 {
		c.Corrupt("doubling table of %d blocks from %d to %d bytes, %d bits", h.width, h.startSize, h.directMax, h.bits)
		return
	}
	h.rowBits = log2(h.startSize) + log2(h.width)
	h.directRows = log2(h.directMax) - log2(h.startSize) + 2
	if h.rowBits > h.bits || h.rootRows > h.bits-h.rowBits+1 {
		c.Corrupt("%d rows of blocks, but offsets have %d bits", h.rootRows, h.bits)
	}
}

// offBytes is the size of an offset in the heap, and lenBytes the size of an object's length, in a heap id (HDF5 file
// format 3.0, III.G "Fractal Heap").
func (h *fractalHeap) offBytes() int { return (h.bits + 7) / 8 }

func (h *fractalHeap) lenBytes() int {
	return min((log2(h.directMax)+7)/8, encSize(h.maxObject))
}

// Object returns the object with that heap id.
func (h *fractalHeap) Object(id []byte) (*cursor, error) {
	c := &cursor{Src: h.src, B: id, At: h.src.Abs(h.addr), What: "fractal heap id"}
	kind := c.U8()
	if c.Err == nil && kind>>6 != 0 {
		c.Corrupt("version %d", kind>>6)
	}
	switch kind >> 4 & 3 {
	case 0:
		return h.managed(c)
	case 1:
		return h.hugeObject(c)
	case 2:
		return h.tiny(c, kind)
	}
	c.Corrupt("object of kind %d", kind>>4&3)
	return nil, c.Err
}

// tiny returns an object that is stored in the id itself.
func (h *fractalHeap) tiny(c *cursor, kind uint8) (*cursor, error) {
	n := uint64(kind & 15)
	if h.idLen-1 > 16 {
		n = n<<8 | uint64(c.U8())
	}
	obj := &cursor{Src: h.src, B: c.Bytes(n + 1), At: c.At, What: "tiny object"}
	return obj, c.Err
}

// hugeObject reads an object that is stored outside of the heap's blocks.
func (h *fractalHeap) hugeObject(c *cursor) (*cursor, error) {
	s := h.src
	var at objectAt
	if s.OffSize+s.LenSize <= h.idLen-1 {
		at = objectAt{c.Addr(), c.Length()}
	} else {
		if h.huge == nil {
			if err := h.readHuge(); err != nil {
				return nil, err
			}
		}
		id := c.Uint(min(s.LenSize, h.idLen-1))
		var ok bool
		if at, ok = h.huge[id]; !ok {
			c.Corrupt("no huge object %d", id)
		}
	}
	if c.Err != nil {
		return nil, c.Err
	}
	obj := s.Read(at.addr, at.n, "huge object")
	s.Note(at.addr, at.n, "huge object")
	return obj, obj.Err
}

// readHuge reads the index of huge objects, which are larger than the heap takes and lie in the file by themselves. The
// index is a version 2 B-tree, read as a whole at the first huge object.
func (h *fractalHeap) readHuge() error {
	h.huge = map[uint64]objectAt{}
	t := btree2{Src: h.src, Kind: treeHuge, What: "B-tree of huge objects"}
	t.Record = func(rec *cursor) error {
		at := objectAt{rec.Addr(), rec.Length()}
		h.huge[rec.Length()] = at
		return rec.Err
	}
	return t.Walk(h.hugeTree)
}

// managed finds an object in the blocks of the doubling table.
func (h *fractalHeap) managed(c *cursor) (*cursor, error) {
	off, n := c.Uint(h.offBytes()), c.Uint(h.lenBytes())
	if c.Err != nil {
		return nil, c.Err
	}
	addr, start, size := h.root, uint64(0), h.startSize
	rows := h.rootRows
	for rows > 0 {
		entry, child, childRows, childSize, err := h.entry(off-start, rows)
		if err != nil {
			return nil, err
		}
		table, err := h.indirect(addr, start, rows)
		if err != nil {
			return nil, err
		}
		tc := &cursor{Src: h.src, B: table[entry*uint64(h.src.OffSize):], At: h.src.Abs(addr),
			What: "fractal heap table"}
		if addr = tc.Addr(); tc.Err != nil {
			return nil, tc.Err
		}
		start, rows, size = start+child, childRows, childSize
	}
	return h.inBlock(addr, start, size, off, n)
}

// entry returns the table entry for an offset rel in a table of that many rows: its index, where its block starts, how
// many rows the block has if it is a table itself, and its size.
func (h *fractalHeap) entry(rel uint64, rows int) (i, start uint64, childRows int, size uint64, err error) {
	row, rowStart := 0, uint64(0)
	size = h.startSize
	if rel>>h.rowBits != 0 {
		row = log2(rel) - h.rowBits + 1
		rowStart = 1 << log2(rel)
		size <<= row - 1
	}
	if row >= rows {
		return 0, 0, 0, 0, h.src.ErrorAt(ErrCorrupt, h.addr, "fractal heap", "offset %d is in row %d of %d", rel, row,
			rows)
	}
	col := (rel - rowStart) / size
	if row >= h.directRows {
		childRows = log2(size) - h.rowBits + 1
		if childRows < 1 {
			return 0, 0, 0, 0, h.src.ErrorAt(ErrCorrupt, h.addr, "fractal heap", "table in row %d has no rows", row)
		}
	}
	return uint64(row)*h.width + col, rowStart + col*size, childRows, size, nil
}

// indirect returns the child addresses of the "FHIB" table at addr.
func (h *fractalHeap) indirect(addr, start uint64, rows int) ([]byte, error) {
	if b, ok := h.blocks[addr]; ok && len(b) == rows*int(h.width)*h.src.OffSize {
		return b, nil
	}
	n := uint64(rows) * h.width * uint64(h.src.OffSize)
	c := h.src.Read(addr, uint64(h.blockHead())+n+4, "fractal heap table")
	h.blockStart(c, "FHIB", start)
	b := c.Bytes(n)
	c.Checksum()
	if c.Err != nil {
		return nil, c.Err
	}
	h.src.Note(addr, uint64(len(c.B)), "fractal heap table")
	h.blocks[addr] = b
	return b, nil
}

// blockHead is the bytes before a block's contents, checksum not counted.
func (h *fractalHeap) blockHead() int { return 5 + h.src.OffSize + h.offBytes() }

// blockStart checks the fields that all blocks begin with: signature, version, owner and place. A block that belongs to
// another heap is refused, as after a torn write.
func (h *fractalHeap) blockStart(c *cursor, sig string, start uint64) {
	c.Signature(sig)
	c.Version(0, 0)
	owner, at := c.Addr(), c.Uint(h.offBytes())
	if c.Err == nil && (owner != h.addr || at != start) {
		c.Corrupt("block of heap 0x%x from byte %d, want heap 0x%x and byte %d", owner, at, h.addr, start)
	}
}

// inBlock returns n bytes at heap offset off from the direct block at addr.
func (h *fractalHeap) inBlock(addr, start, size, off, n uint64) (*cursor, error) {
	b, err := h.direct(addr, start, size)
	if err != nil {
		return nil, err
	}
	head := uint64(h.blockHead())
	if h.summed {
		head += 4
	}
	rel := off - start
	if rel < head || rel > size || n > size-rel {
		return nil, h.src.ErrorAt(ErrCorrupt, addr, "fractal heap block", "object of %d bytes at byte %d of %d", n,
			rel, size)
	}
	return &cursor{Src: h.src, B: b[rel : rel+n], At: h.src.Abs(addr + rel), What: "fractal heap object"}, nil
}

// direct returns the "FHDB" block at addr, checksum verified.
func (h *fractalHeap) direct(addr, start, size uint64) ([]byte, error) {
	if b, ok := h.blocks[addr]; ok && uint64(len(b)) == size {
		return b, nil
	}
	c := h.src.Read(addr, size, "fractal heap block")
	h.blockStart(c, "FHDB", start)
	if h.summed && c.Err == nil {
		field := c.Pos
		stored := c.U32()
		clear(c.B[field:c.Pos])
		c.SameSum(Checksum(c.B), stored)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	h.src.Note(addr, size, "fractal heap block")
	h.blocks[addr] = c.B
	return c.B, nil
}
