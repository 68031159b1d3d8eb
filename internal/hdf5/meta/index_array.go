package meta

// grid numbers the chunks of a dataset row by row over its maximal shape, as the array
// indexes do. An axis without limit comes first, so that growing renumbers nothing.
type grid struct {
	order []int    // axis by place in the numbering
	down  []uint64 // chunks per step of that place
	at    []uint64 // scratch: coordinates by axis
}

// grid returns how numbers of a chunk array become places of the grid of chunks. An array counts chunks in C order over
// the maximum dimensions, not the present ones, so that a dataset may grow without moving them. An extensible array has
// one unlimited axis, which it counts slowest whatever its place in the shape (H5D__earray_idx_insert swaps it to the
// front). Two unlimited axes have no such order; libhdf5 uses a B-tree for them, and such an array is corrupt.
func (r *chunkReader) grid() (*grid, error) {
	rank := len(r.of.Space.Dims)
	g := &grid{at: make([]uint64, rank), down: make([]uint64, rank)}
	for i, m := range r.of.Space.MaxDims {
		if m == noLimit {
			g.order = append(g.order, i)
		}
	}
	unlimited := len(g.order)
	for i, m := range r.of.Space.MaxDims {
		if m != noLimit {
			g.order = append(g.order, i)
		}
	}
	step, ok := uint64(1), unlimited <= 1
	for p := rank - 1; p >= 0 && ok; p-- {
		g.down[p] = step
		axis := g.order[p]
		n, c := uint64(r.of.Space.MaxDims[axis]), uint64(r.of.Layout.ChunkDims[axis])
		if p > 0 || unlimited == 0 {
			step, ok = product(step, n/c+min(n%c, 1))
		}
	}
	if !ok {
		return nil, r.src.ErrorAt(ErrCorrupt, r.of.Layout.Params.Addr, "chunk index",
			"array over shape %v of chunks %v", r.of.Space.MaxDims, r.of.Layout.ChunkDims)
	}
	return g, nil
}

// coord returns the grid coordinates of chunk i. The result is valid until the next call.
func (g *grid) coord(i uint64) []uint64 {
	for p, n := range g.down {
		g.at[g.order[p]] = i / n
		i %= n
	}
	return g.at
}

// implicit adds chunks that lie one after the other and are all allocated. The file has no index, so their total size
// is compared with the file first.
func (r *chunkReader) implicit(addr uint64) error {
	g, err := r.grid()
	if err != nil {
		return err
	}
	size := uint64(r.table.Bytes)
	total := uint64(1)
	for i, n := range r.of.Space.MaxDims {
		c := r.of.Layout.ChunkDims[i]
		total, _ = product(total, uint64(n/c+min(n%c, 1)))
	}
	if bytes, ok := product(total, size); !ok || !r.src.Inside(addr, bytes) {
		return r.src.ErrorAt(ErrCorrupt, addr, "chunks", "%d of %d bytes reach past the end of the file (%d bytes)",
			total, size, r.src.Size)
	}
	for i := range total {
		if err := r.add(g.coord(i), addr+i*size, size, 0); err != nil {
			return err
		}
	}
	return nil
}

// arrayPart reads n elements of an array index from c, numbered from first on.
func (r *chunkReader) arrayPart(g *grid, c *cursor, first, n uint64, elem int) error {
	for i := uint64(0); i < n && c.Err == nil; i++ {
		addr, size, mask := r.element(c, elem)
		if c.Err != nil || addr == undef {
			continue
		}
		if err := r.add(g.coord(first+i), addr, size, mask); err != nil {
			return err
		}
	}
	return c.Err
}

// arrayClient checks the fields that headers and blocks of both kinds of arrays begin with.
func (r *chunkReader) arrayClient(c *cursor, sig string) {
	c.Signature(sig)
	c.Version(0, 0)
	want := uint8(0)
	if r.of.Filtered {
		want = 1
	}
	if got := c.U8(); c.Err == nil && got != want {
		c.Corrupt("elements of kind %d, want %d", got, want)
	}
}

// elemSize reads and checks the size of an array element.
func (r *chunkReader) elemSize(c *cursor) int {
	n := int(c.U8())
	low, high := r.src.OffSize, r.src.OffSize
	if r.of.Filtered {
		low, high = low+5, high+12
	}
	if c.Err == nil && (n < low || n > high) {
		c.Corrupt("elements of %d bytes", n)
	}
	return n
}

// owner checks the address of the header that a block belongs to.
func (r *chunkReader) owner(c *cursor) {
	if got := c.Addr(); c.Err == nil && got != r.of.Layout.Params.Addr {
		c.Corrupt("block belongs to the array at 0x%x, want 0x%x", got, r.of.Layout.Params.Addr)
	}
}

// bit returns bit i of a bitmap. The highest bit of a byte comes first.
func bit(p []byte, i uint64) bool { return p[i/8]&(0x80>>(i%8)) != 0 }

// fixedArray reads a "FAHD" index: one block of elements, in pages if there are many. The number of elements comes from
// the file, so their size is compared with the file first.
func (r *chunkReader) fixedArray(addr uint64) error {
	c := r.src.Read(addr, uint64(4+1+1+1+1+r.src.LenSize+r.src.OffSize+4), "fixed array")
	r.arrayClient(c, "FAHD")
	elem := r.elemSize(c)
	pageBits := c.U8()
	n, block := c.Length(), c.Addr()
	c.Checksum()
	size, ok := product(n, uint64(elem))
	if c.Err == nil && (pageBits == 0 || pageBits > 32 || !ok || size > uint64(r.src.Size)) {
		c.Corrupt("%d elements of %d bytes in pages of 2^%d", n, elem, pageBits)
	}
	if c.Err != nil || block == undef {
		return c.Err
	}
	r.src.Note(addr, uint64(len(c.B)), "fixed array")
	g, err := r.grid()
	if err != nil {
		return err
	}
	return r.fixedBlock(g, block, n, 1<<pageBits, elem)
}

// fixedBlock reads a "FADB" block. With pages, the block starts with a bitmap of the pages in use.
func (r *chunkReader) fixedBlock(g *grid, addr, n, perPage uint64, elem int) error {
	head := uint64(4 + 1 + 1 + r.src.OffSize)
	if n <= perPage {
		c := r.src.Read(addr, head+n*uint64(elem)+4, "fixed array block")
		r.arrayClient(c, "FADB")
		r.owner(c)
		return r.page(g, c, 0, n, elem)
	}
	pages := (n + perPage - 1) / perPage
	r.src.Announce([]Extent{extentAt(addr, head+(pages+7)/8+4+n*uint64(elem)+4*pages, "fixed array block")})
	c := r.src.Read(addr, head+(pages+7)/8+4, "fixed array block")
	r.arrayClient(c, "FADB")
	r.owner(c)
	used := c.Bytes((pages + 7) / 8)
	c.Checksum()
	if c.Err != nil {
		return c.Err
	}
	r.src.Note(addr, uint64(len(c.B)), "fixed array block")
	return r.pages(g, addr+uint64(len(c.B)), 0, n, perPage, elem, func(p uint64) bool { return bit(used, p) })
}

// pages reads the pages at addr that are in use. Together the pages have elements first to first+n.
func (r *chunkReader) pages(g *grid, addr, first, n, perPage uint64, elem int, used func(p uint64) bool) error {
	for p := uint64(0); p*perPage < n; p++ {
		if used(p) {
			done := p * perPage
			count := min(perPage, n-done)
			c := r.src.Read(addr+p*(perPage*uint64(elem)+4), count*uint64(elem)+4, "array page")
			if err := r.page(g, c, first+done, count, elem); err != nil {
				return err
			}
		}
	}
	return nil
}

// page verifies the checksum at the end of c, then reads n elements before it.
func (r *chunkReader) page(g *grid, c *cursor, first, n uint64, elem int) error {
	start := c.Pos
	c.Bytes(n * uint64(elem))
	c.Checksum()
	if c.Err != nil {
		return c.Err
	}
	r.src.Note(uint64(c.At-r.src.Base), uint64(len(c.B)), c.What)
	c.Pos = start
	return r.arrayPart(g, c, first, n, elem)
}
