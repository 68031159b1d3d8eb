package meta

import "math/bits"

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

	blocks map[uint64][]byte // what was read, by address
	huge   map[uint64]span   // objects outside the heap by id, nil before the first is asked for
}

func (s *source) readFractalHeap(addr uint64) (*fractalHeap, error) {
	h := &fractalHeap{src: s, addr: addr, blocks: map[uint64][]byte{}}
	L, O := s.lenSize, s.offSize
	c := s.read(addr, uint64(26+12*L+3*O), "fractal heap")
	c.signature("FRHP")
	c.version(0, 0)
	h.idLen = int(c.u16())
	filterLen := c.u16()
	h.summed = c.u8()&2 != 0
	h.maxObject = uint64(c.u32())
	c.length() // next huge id
	h.hugeTree = c.addr()
	c.length()    // free space in blocks
	c.addr()      // its manager
	c.skip(L * 8) // statistics: amounts and numbers of objects by kind
	h.width = uint64(c.u16())
	h.startSize, h.directMax = c.length(), c.length()
	h.bits = int(c.u16())
	c.skip(2)
	h.root = c.addr()
	h.rootRows = int(c.u16())
	if c.err == nil && filterLen != 0 {
		c.unsupported("heap with filters")
	}
	c.checksum()
	h.check(c)
	s.note(addr, uint64(len(c.b)), "fractal heap")
	return h, c.err
}

// check validates the doubling table, so that no shift or row is out of range later.
func (h *fractalHeap) check(c *cursor) {
	pow2 := func(n uint64) bool { return n != 0 && n&(n-1) == 0 }
	if c.err != nil {
		return
	}
	if !pow2(h.width) || !pow2(h.startSize) || !pow2(h.directMax) || h.directMax < h.startSize ||
		h.directMax > maxStructure || h.bits > 64 || h.idLen < 2 {
		c.corrupt("doubling table of %d blocks from %d to %d bytes, %d bits", h.width, h.startSize, h.directMax, h.bits)
		return
	}
	h.rowBits = log2(h.startSize) + log2(h.width)
	h.directRows = log2(h.directMax) - log2(h.startSize) + 2
	if h.rowBits > h.bits || h.rootRows > h.bits-h.rowBits+1 {
		c.corrupt("%d rows of blocks, but offsets have %d bits", h.rootRows, h.bits)
	}
}

func log2(n uint64) int { return bits.Len64(n) - 1 }

// offBytes is the size of an offset in the heap, lenBytes that of an object's length.
func (h *fractalHeap) offBytes() int { return (h.bits + 7) / 8 }

func (h *fractalHeap) lenBytes() int {
	return min((log2(h.directMax)+7)/8, encSize(h.maxObject))
}

// object returns the object with that heap id.
func (h *fractalHeap) object(id []byte) (*cursor, error) {
	c := &cursor{src: h.src, b: id, at: h.src.abs(h.addr), what: "fractal heap id"}
	kind := c.u8()
	if c.err == nil && kind>>6 != 0 {
		c.corrupt("version %d", kind>>6)
	}
	switch kind >> 4 & 3 {
	case 0:
		return h.managed(c)
	case 1:
		return h.hugeObject(c)
	case 2:
		return h.tiny(c, kind)
	}
	c.corrupt("object of kind %d", kind>>4&3)
	return nil, c.err
}

// tiny objects are in the id itself.
func (h *fractalHeap) tiny(c *cursor, kind uint8) (*cursor, error) {
	n := uint64(kind & 15)
	if h.idLen-1 > 16 {
		n = n<<8 | uint64(c.u8())
	}
	obj := &cursor{src: h.src, b: c.bytes(n + 1), at: c.at, what: "tiny object"}
	return obj, c.err
}

// hugeObject reads an object that is outside the heap's blocks.
func (h *fractalHeap) hugeObject(c *cursor) (*cursor, error) {
	s := h.src
	var at span
	if s.offSize+s.lenSize <= h.idLen-1 {
		at = span{c.addr(), c.length()}
	} else {
		if h.huge == nil {
			if err := h.readHuge(); err != nil {
				return nil, err
			}
		}
		id := c.uint(min(s.lenSize, h.idLen-1))
		var ok bool
		if at, ok = h.huge[id]; !ok {
			c.corrupt("no huge object %d", id)
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	obj := s.read(at.addr, at.n, "huge object")
	s.note(at.addr, at.n, "huge object")
	return obj, obj.err
}

func (h *fractalHeap) readHuge() error {
	h.huge = map[uint64]span{}
	t := btree2{src: h.src, kind: btreeHuge, what: "B-tree of huge objects"}
	t.record = func(rec *cursor) error {
		at := span{rec.addr(), rec.length()}
		h.huge[rec.length()] = at
		return rec.err
	}
	return t.walk(h.hugeTree)
}

// managed finds an object in the blocks of the doubling table.
func (h *fractalHeap) managed(c *cursor) (*cursor, error) {
	off, n := c.uint(h.offBytes()), c.uint(h.lenBytes())
	if c.err != nil {
		return nil, c.err
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
		tc := &cursor{src: h.src, b: table[entry*uint64(h.src.offSize):], at: h.src.abs(addr), what: "fractal heap table"}
		if addr = tc.addr(); tc.err != nil {
			return nil, tc.err
		}
		start, rows, size = start+child, childRows, childSize
	}
	return h.inBlock(addr, start, size, off, n)
}

// entry returns for an offset rel in a table of that many rows: the entry's index, where
// its block starts, how many rows it has if it is a table in turn, and its size.
func (h *fractalHeap) entry(rel uint64, rows int) (i, start uint64, childRows int, size uint64, err error) {
	row, rowStart := 0, uint64(0)
	size = h.startSize
	if rel>>h.rowBits != 0 {
		row = log2(rel) - h.rowBits + 1
		rowStart = 1 << log2(rel)
		size <<= row - 1
	}
	if row >= rows {
		return 0, 0, 0, 0, h.src.errorAt(ErrCorrupt, h.addr, "fractal heap", "offset %d is in row %d of %d", rel, row, rows)
	}
	col := (rel - rowStart) / size
	if row >= h.directRows {
		childRows = log2(size) - h.rowBits + 1
		if childRows < 1 {
			return 0, 0, 0, 0, h.src.errorAt(ErrCorrupt, h.addr, "fractal heap", "table in row %d has no rows", row)
		}
	}
	return uint64(row)*h.width + col, rowStart + col*size, childRows, size, nil
}

// indirect returns the child addresses of the "FHIB" table at addr.
func (h *fractalHeap) indirect(addr, start uint64, rows int) ([]byte, error) {
	if b, ok := h.blocks[addr]; ok && len(b) == rows*int(h.width)*h.src.offSize {
		return b, nil
	}
	n := uint64(rows) * h.width * uint64(h.src.offSize)
	c := h.src.read(addr, uint64(h.blockHead())+n+4, "fractal heap table")
	h.blockStart(c, "FHIB", start)
	b := c.bytes(n)
	c.checksum()
	if c.err != nil {
		return nil, c.err
	}
	h.src.note(addr, uint64(len(c.b)), "fractal heap table")
	h.blocks[addr] = b
	return b, nil
}

// blockHead is the bytes before a block's contents, checksum not counted.
func (h *fractalHeap) blockHead() int { return 5 + h.src.offSize + h.offBytes() }

// blockStart checks what all blocks begin with: signature, version, owner, place.
func (h *fractalHeap) blockStart(c *cursor, sig string, start uint64) {
	c.signature(sig)
	c.version(0, 0)
	owner, at := c.addr(), c.uint(h.offBytes())
	if c.err == nil && (owner != h.addr || at != start) {
		c.corrupt("block of heap 0x%x from byte %d, want heap 0x%x and byte %d", owner, at, h.addr, start)
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
		return nil, h.src.errorAt(ErrCorrupt, addr, "fractal heap block", "object of %d bytes at byte %d of %d", n, rel, size)
	}
	return &cursor{src: h.src, b: b[rel : rel+n], at: h.src.abs(addr + rel), what: "fractal heap object"}, nil
}

// direct returns the "FHDB" block at addr, checksum verified.
func (h *fractalHeap) direct(addr, start, size uint64) ([]byte, error) {
	if b, ok := h.blocks[addr]; ok && uint64(len(b)) == size {
		return b, nil
	}
	c := h.src.read(addr, size, "fractal heap block")
	h.blockStart(c, "FHDB", start)
	if h.summed && c.err == nil {
		field := c.pos
		stored := c.u32()
		clear(c.b[field:c.pos])
		c.sameSum(lookup3(c.b), stored)
	}
	if c.err != nil {
		return nil, c.err
	}
	h.src.note(addr, size, "fractal heap block")
	h.blocks[addr] = c.b
	return c.b, nil
}
