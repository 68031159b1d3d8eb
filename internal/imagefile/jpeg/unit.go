package jpeg

// A unitBlock is one of the blocks of a unit in a sequential scan: with which tables it is decoded,
// and where its coefficients go. The same unitBlock serves the next unit, with place moved on. Its
// fields lie where the kernel in assembly expects them (accel_amd64.go).
type unitBlock struct {
	coefs  []int16 // of the component: 64 for each block, zero where blocks are still to be decoded
	any    []bool  // of the component: which blocks have coefficients besides the first
	dc, ac *huffTable
	pred   *int32 // the first coefficient of the component's block before
	place  int    // the number of the next block among those of the component
	step   int    // from place to that in the unit after
}

// done ends a block whose other coefficients are decoded: it sets the first coefficient, and
// moves place to the next unit.
func (b *unitBlock) done(any bool) {
	b.coefs[64*b.place] = int16(*b.pred)
	b.any[b.place] = any
	b.place += b.step
}

// units decodes that many units, each made of blocks; there is at least one unit and one block. It
// returns false if the bits are not a code or a run leads out of a block.
func (r *bitReader) units(blocks []unitBlock, units int) bool {
	if ok, done := r.unitsFast(blocks, units); done {
		return ok
	}
	for range units {
		for i := range blocks {
			if !r.sequential(&blocks[i]) {
				return false
			}
		}
	}
	return true
}

// sequential decodes the next block for b.
func (r *bitReader) sequential(b *unitBlock) bool {
	diff, ok := r.difference(b.dc)
	if !ok {
		return false
	}
	*b.pred += diff
	any, ok := r.block((*[64]int16)(b.coefs[64*b.place:]), b.ac)
	if !ok {
		return false
	}
	b.done(any)
	return true
}
