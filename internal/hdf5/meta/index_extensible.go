package meta

import (
	"cmp"
)

// extArray is an "EAHD" index: the first elements in the index block, the next in data
// blocks that it points to, all further ones in data blocks of super blocks. Super block s
// has 2^(s/2) data blocks of minElems*2^((s+1)/2) elements.
type extArray struct {
	r        *chunkReader
	grid     *grid
	elem     int
	bits     int // of an element number
	inIndex  uint64
	minElems uint64
	minPtrs  uint64
	perPage  uint64
	most     uint64 // number of elements that were ever used; the rest need not be read
}

// extensibleArray reads the index of a dataset with one unlimited axis (appendix C, "Extensible Array"): a header, an
// index block with the first elements and pointers, data blocks that grow by powers of two, and super blocks that hold
// pointers to data blocks. The header's numbers decide the size of everything below, so they are checked before the
// first block is read.
func (r *chunkReader) extensibleArray(addr uint64) error {
	c := r.src.Read(addr, uint64(4+1+1+6+6*r.src.LenSize+r.src.OffSize+4), "extensible array")
	r.arrayClient(c, "EAHD")
	a := &extArray{r: r, elem: r.elemSize(c)}
	a.bits = int(c.U8())
	a.inIndex, a.minElems, a.minPtrs = uint64(c.U8()), uint64(c.U8()), uint64(c.U8())
	pageBits := c.U8()
	c.Skip(4 * r.src.LenSize) // numbers and sizes of blocks
	a.most = c.Length()
	c.Length() // capacity in elements
	block := c.Addr()
	c.Checksum()
	pow2 := func(n uint64) bool { return n != 0 && n&(n-1) == 0 }
	if c.Err == nil && (a.bits > 64 || pageBits > 32 || !pow2(a.minElems) || !pow2(a.minPtrs) ||
		log2(a.minElems) > a.bits) {
		c.Corrupt("%d bits, %d elements and %d pointers at least, pages of 2^%d", a.bits, a.minElems, a.minPtrs, pageBits)
	}
	if c.Err != nil || block == undef {
		return c.Err
	}
	r.src.Note(addr, uint64(len(c.B)), "extensible array")
	a.perPage = 1 << pageBits
	var err error
	if a.grid, err = r.grid(); err != nil {
		return err
	}
	return a.indexBlock(block)
}

// superBlocks returns how many super blocks there can be, and for how many of them the
// index block points to the data blocks itself.
func (a *extArray) superBlocks() (all, direct int) {
	all = 1 + a.bits - log2(a.minElems)
	return all, min(all, 2*log2(a.minPtrs))
}

// shape returns number of data blocks and elements in each for super block s.
func (a *extArray) shape(s int) (blocks, elems uint64) {
	return 1 << (s / 2), a.minElems << ((s + 1) / 2)
}

// indexBlock reads the elements in the index block, then all blocks that it points to, in the order of their elements.
// The checksum is at the end of the block, and is compared first, so that pointers of a torn block are never followed.
func (a *extArray) indexBlock(addr uint64) error {
	all, direct := a.superBlocks()
	pointers := 2 * (a.minPtrs - 1)
	size := uint64(4+1+1+a.r.src.OffSize) + a.inIndex*uint64(a.elem) +
		(pointers+uint64(all-direct))*uint64(a.r.src.OffSize) + 4
	c := a.r.src.Read(addr, size, "extensible array index block")
	a.r.arrayClient(c, "EAIB")
	a.r.owner(c)
	start := c.Pos
	c.Pos = max(start, len(c.B)-4)
	if c.Checksum(); c.Err != nil {
		return c.Err
	}
	a.r.src.Note(addr, size, "extensible array index block")
	c.Pos = start
	if err := a.r.arrayPart(a.grid, c, 0, a.inIndex, a.elem); err != nil {
		return err
	}
	next := a.inIndex
	if a.r.src.Announced() {
		a.r.src.Freely(func() { a.announce(*c, next) })
	}
	for s := 0; s < all && next < a.most; s++ {
		var err error
		if s < direct {
			next, err = a.directBlocks(c, s, next)
		} else {
			next, err = a.superBlock(super{c.Addr(), s, next})
		}
		if err = cmp.Or(err, c.Err); err != nil {
			return err
		}
	}
	return nil
}

// directBlocks reads the data blocks of super block s whose addresses come next in c. first is the number of the super
// block's first element; directBlocks returns the first element of the next super block. In these blocks libhdf5
// stores a different element number than in all other blocks, so the number is not checked.
func (a *extArray) directBlocks(c *cursor, s int, first uint64) (uint64, error) {
	blocks, elems := a.shape(s)
	for range blocks {
		if addr := c.Addr(); c.Err == nil && addr != undef && first < a.most {
			if elems > a.perPage {
				return 0, a.r.src.ErrorAt(ErrUnsupported, addr, "extensible array", "pages in a block without a super block")
			}
			if err := a.dataBlock(addr, -1, first, elems, nil); err != nil {
				return 0, err
			}
		}
		first += elems
	}
	return first, c.Err
}

// super is a super block: its address, its number, and the number of its first element.
type super struct {
	addr   uint64
	number int
	first  uint64
}

// superBlock reads an "EASB" block and its data blocks, and returns the number of the first element after them.
func (a *extArray) superBlock(s super) (uint64, error) {
	blocks, elems := a.shape(s.number)
	end := saturate(blocks, elems, s.first)
	if s.addr == undef {
		return end, nil
	}
	used, ptrs, err := a.readSuper(s)
	if err != nil {
		return 0, err
	}
	a.r.src.Note(s.addr, a.superSize(s.number), "extensible array super block")
	return end, a.blocks(ptrs, used, s.first, blocks, elems, a.pagesOf(elems))
}

// pagesOf returns how many pages a data block with that many elements has; 0 if it is not divided into pages.
func (a *extArray) pagesOf(elems uint64) uint64 {
	if elems > a.perPage {
		return elems / a.perPage
	}
	return 0
}

// superParts returns the bytes of a super block's bitmap of pages, and the bytes of its addresses. ok is false if the
// file is smaller.
func (a *extArray) superParts(number int) (bitmap, table uint64, ok bool) {
	blocks, elems := a.shape(number)
	bitmap, ok1 := product(blocks, (a.pagesOf(elems)+7)/8)
	table, ok2 := product(blocks, uint64(a.r.src.OffSize))
	return bitmap, table, ok1 && ok2 && bitmap <= uint64(a.r.src.Size) && table <= uint64(a.r.src.Size)
}

// superSize returns the bytes of a super block for which superParts returns ok.
func (a *extArray) superSize(number int) uint64 {
	bitmap, table, _ := a.superParts(number)
	return uint64(a.blockHead()) + bitmap + table + 4
}

// readSuper returns the bitmap of pages and the addresses in a super block.
func (a *extArray) readSuper(s super) (used []byte, ptrs *cursor, err error) {
	bitmap, table, ok := a.superParts(s.number)
	if !ok {
		blocks, elems := a.shape(s.number)
		return nil, nil, a.r.src.ErrorAt(ErrCorrupt, s.addr, "extensible array super block",
			"%d blocks of %d elements", blocks, elems)
	}
	c := a.r.src.Read(s.addr, a.superSize(s.number), "extensible array super block")
	a.blockStart(c, "EASB", int64(s.first-a.inIndex))
	used = c.Bytes(bitmap)
	ptrs = &cursor{Src: a.r.src, B: c.Bytes(table), At: c.At, What: c.What}
	c.Checksum()
	return used, ptrs, c.Err
}

// blocks reads the data blocks of a super block. used is the super block's bitmap of pages.
func (a *extArray) blocks(ptrs *cursor, used []byte, first, blocks, elems, pages uint64) error {
	for b := uint64(0); b < blocks && first < a.most; b++ {
		addr := ptrs.Addr()
		if ptrs.Err == nil && addr != undef {
			inUse := func(p uint64) bool { return bit(used, b*pages+p) }
			if pages == 0 {
				inUse = nil
			}
			if err := a.dataBlock(addr, int64(first-a.inIndex), first, elems, inUse); err != nil {
				return err
			}
		}
		first += elems
	}
	return ptrs.Err
}

// blockHead is the bytes that super and data blocks begin with.
func (a *extArray) blockHead() int { return 4 + 1 + 1 + a.r.src.OffSize + (a.bits+7)/8 }

// blockStart checks the fields at the beginning of super and data blocks. The last field
// is the number of the block's first element, not counting the elements in the index
// block; with want -1 it is not checked.
func (a *extArray) blockStart(c *cursor, sig string, want int64) {
	a.r.arrayClient(c, sig)
	a.r.owner(c)
	if at := c.Uint((a.bits + 7) / 8); c.Err == nil && want >= 0 && at != uint64(want) {
		c.Corrupt("block from element %d, want %d", at, want)
	}
}

// dataBlock reads an "EADB" block of elements first to first+n, in pages if used is not
// nil; want is for blockStart.
func (a *extArray) dataBlock(addr uint64, want int64, first, n uint64, used func(p uint64) bool) error {
	head := uint64(a.blockHead())
	bytes, ok := product(n, uint64(a.elem))
	if !ok || bytes > uint64(a.r.src.Size) {
		return a.r.src.ErrorAt(ErrCorrupt, addr, "extensible array block", "%d elements of %d bytes", n, a.elem)
	}
	if used == nil {
		c := a.r.src.Read(addr, head+bytes+4, "extensible array block")
		a.blockStart(c, "EADB", want)
		return a.r.page(a.grid, c, first, n, a.elem)
	}
	c := a.r.src.Read(addr, head+4, "extensible array block")
	a.blockStart(c, "EADB", want)
	if c.Checksum(); c.Err != nil {
		return c.Err
	}
	a.r.src.Note(addr, head+4, "extensible array block")
	return a.r.pages(a.grid, addr+head+4, first, n, a.perPage, a.elem, used)
}

// announce reports the places of the blocks of an extensible array. c is a cursor in the index block, at its pointers,
// and first is the number of the first element that is not in the index block.
func (a *extArray) announce(c cursor, first uint64) {
	all, direct := a.superBlocks()
	var list []Extent
	var supers []super
	for s := 0; s < all && first < a.most && c.Err == nil; s++ {
		blocks, elems := a.shape(s)
		if s >= direct {
			supers = append(supers, super{c.Addr(), s, first})
			list = append(list, extentAt(supers[len(supers)-1].addr, a.superSize(s), "extensible array super block"))
			first = saturate(blocks, elems, first)
			continue
		}
		for range blocks {
			list = append(list, a.blockAt(c.Addr(), elems))
			first += elems
		}
	}
	a.r.src.Announce(list)
	list = list[:0]
	for _, s := range supers {
		_, ptrs, err := a.readSuper(s)
		for err == nil && ptrs != nil && ptrs.Pos < len(ptrs.B) {
			_, elems := a.shape(s.number)
			list = append(list, a.blockAt(ptrs.Addr(), elems))
		}
	}
	a.r.src.Announce(list)
}

// blockAt returns where a data block of n elements is, pages included.
func (a *extArray) blockAt(addr, n uint64) Extent {
	bytes, ok := product(n, uint64(a.elem))
	if !ok {
		return Extent{}
	}
	return extentAt(addr, uint64(a.blockHead())+bytes+4*(1+n/a.perPage), "extensible array block")
}
