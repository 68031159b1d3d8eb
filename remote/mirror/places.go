package mirror

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/store"
)

// Adjacent chunks of less than smallChunk bytes are joined into blocks of up to blockBytes, as
// small records are. One request may include a gap of up to gapBytes to reach the next block.
const (
	smallChunk = 4 << 10
	blockBytes = 64 << 10
	gapBytes   = 16 << 10
)

// newPlaces turns the chunks of a file, in any order, into blocks: one chunk each, or several small
// adjacent ones. The same chunk may be listed more than once; chunks that overlap otherwise are an
// error.
func newPlaces(chunks []part) ([]part, error) {
	slices.SortFunc(chunks, byOffset)
	var list []part
	small := false // the last block is of small chunks
	last := part{}
	for i, c := range chunks {
		switch {
		case i > 0 && c == last:
			continue
		case i > 0 && c.off < last.end():
			return nil, fmt.Errorf("two chunks share bytes: %d at byte %d, and %d at byte %d: %w", last.n, last.off, c.n, c.off,
				store.ErrCorrupt)
		case small && c.n < smallChunk && list[len(list)-1].end() == c.off && list[len(list)-1].n+c.n <= blockBytes:
			list[len(list)-1].n += c.n
		default:
			list = append(list, c)
		}
		small, last = c.n < smallChunk, c
	}
	return slices.Clip(list), nil
}

// at returns the block with byte off of the file, or the next block if the byte is in no block.
func (x *extent) at(off int64) int64 {
	return int64(firstEnding(x.places, off))
}

// typical returns the average number of bytes of a block.
func (x *extent) typical() int64 {
	if x.places == nil {
		return x.per * x.size
	}
	return max(1, x.bytes/x.count)
}

// spanBytes returns the length of span.
func (x *extent) spanBytes(from, to int64) int64 {
	_, n := x.span(from, to)
	return n
}

// offset returns the offset in the file of a block.
func (x *extent) offset(block int64) int64 {
	off, _ := x.span(block, block+1)
	return off
}

// end returns the offset in the file at which the last block ends.
func (x *extent) end() int64 {
	return x.offset(x.count-1) + x.spanBytes(x.count-1, x.count)
}

// gap returns the number of bytes between block a and a later block b; it is negative if b does not follow a.
func (x *extent) gap(a, b int64) int64 {
	return x.offset(b) - x.offset(a) - x.spanBytes(a, a+1)
}

// joins reports whether blocks [from, to) and the next block may come in one request of at most n
// bytes.
func (x *extent) joins(from, to, n int64) bool {
	if x.places == nil {
		return (to+1-from)*x.per*x.size <= n
	}
	return x.gap(to-1, to) <= gapBytes && x.places[to].end()-x.places[from].off <= n
}

// within returns offset and length of a block in the bytes of a request that begins with block
// from.
func (x *extent) within(from, block int64) (off, n int64) {
	off, n = x.span(block, block+1)
	return off - x.offset(from), n
}
