package jpeg

// A unitBlock is one of the blocks in a unit of a sequential scan: how it is coded, and where
// it goes. Its place moves on with each unit.
type unitBlock struct {
	coefs  []int16 // 64 for each block of the component, which are zero
	any    []bool  // which blocks have more than a first coefficient
	dc, ac *huffTable
	pred   *int32 // the component's last first coefficient
	place  int    // of the block in the next unit, in the component's blocks
	step   int    // blocks from a unit to the next
}

// done ends the block of a unit whose other coefficients are decoded.
func (b *unitBlock) done(any bool) {
	b.coefs[64*b.place] = int16(*b.pred)
	b.any[b.place] = any
	b.place += b.step
}

// units decodes units of blocks, at least one of either. It returns false if the bits are no
// code or a run leads out of a block.
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

// sequential decodes one block.
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
