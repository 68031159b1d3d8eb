package mirror

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
)

// index knows which blocks of a dataset are in the mirror, and which blocks this process has found
// right. It has no lock: bits are changed atomically, the bits of the state by all processes.
type index struct {
	files *files
	sums  *checksums
	grid  *grid
	state *state
	fits  bool         // all blocks may be in the mirror at once, so nothing is evicted
	left  atomic.Int64 // wanted blocks that were not found right yet
	whole atomic.Bool  // nothing is left, and nothing will be evicted: reads need no more checks

	counts *counts
}

// open opens the state of the grid, after which blocks can be looked up. If the disk has no room
// for the state, the state is in memory, and all blocks are held in memory, too.
func (n *index) open() (err error) {
	n.state, err = openState(n.files.root, n.grid.blocks, n.grid.segments)
	if n.state != nil && err != nil && isFull(err) {
		return nil
	}
	return err
}

// settle decides whether all blocks fit into the mirror, with 5 % to spare, if it may take up to
// limit bytes.
func (n *index) settle(limit int64) {
	n.fits = n.grid.bytes <= limit-limit/20 && n.state.me >= 0
}

// want records that columns will be read, and counts their blocks.
func (n *index) want(columns []layout.Column) {
	n.grid.want(columns)
	for _, x := range n.grid.extents {
		if x.wanted {
			x.right.Make(x.count) // blocks that were found right before are counted again
			n.left.Add(x.count)
		}
	}
	n.whole.Store(n.fits && n.left.Load() == 0)
}

// there reports whether a block is in the mirror and right. A block that this process has not seen
// yet, which an earlier process may have left after a crash, is compared with its checksum; a wrong
// block counts as absent.
func (n *index) there(ctx context.Context, x *extent, block int64) (bool, error) {
	if !n.state.has(x.base + block) {
		return false, nil
	}
	if x.right.Has(block) {
		return true, nil
	}
	want, known, err := n.sums.of(ctx, x, block)
	if err != nil {
		return false, err
	}
	if known {
		right, err := n.right(x, block, want)
		if err != nil {
			return false, err
		}
		if !right {
			n.counts.poisoned.Add(1)
			n.state.remove(x.base + block)
			return false, nil
		}
	}
	n.learn(x, block)
	return true, nil
}

// learn records that a block was found right.
func (n *index) learn(x *extent, block int64) {
	if x.right.Add(block) && x.wanted && n.left.Add(-1) == 0 && n.fits {
		n.whole.Store(true)
	}
}

// unlearn records that a block was evicted.
func (n *index) unlearn(x *extent, block int64) {
	if x.right.Remove(block) && x.wanted {
		n.left.Add(1)
	}
}

// right compares a block in the mirror with its checksum.
func (n *index) right(x *extent, block int64, want uint32) (bool, error) {
	off, size := x.span(block, block+1)
	f, err := n.files.root.Open(x.name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	buf := borrow(min(size, pieceBytes))
	defer giveBack(buf)
	crc := uint32(0)
	for size > 0 {
		piece := (*buf)[:min(size, pieceBytes)]
		if _, err := f.ReadAt(piece, off); err != nil {
			return false, nil // the file is shorter than it should be
		}
		crc = kernel.CRC32C(crc, piece)
		off, size = off+int64(len(piece)), size-int64(len(piece))
	}
	return crc == want, nil
}

// absent returns the blocks that are not in the mirror.
func (n *index) absent(ranges []blocks) (list []blocks) {
	for _, r := range ranges {
		for b := r.from; b < r.to; b++ {
			if !n.state.has(r.x.base + b) {
				list = append(list, blocks{r.x, b, b + 1})
			}
		}
	}
	return list
}

// takeMetadata marks the blocks of small arrays as present, since they came with the metadata.
// payloads are the arrays that did not.
func (n *index) takeMetadata(payloads []part) {
	for _, x := range n.grid.extents {
		x.metadata = x.places == nil && !touches(part{x.Offset, x.Count * x.size}, payloads)
		for b := int64(0); x.metadata && b < x.count; b++ {
			n.state.add(x.base + b)
		}
	}
}

// wrongBlock returns the packed block with the chunk that could not be decoded, or false if err is
// about something else.
func (n *index) wrongBlock(err error) (block int64, ok bool) {
	bad, is := errors.AsType[*chunk.Error](err)
	if !is || !errors.Is(err, meta.ErrCorrupt) || n.grid.packed == nil {
		return 0, false
	}
	x := n.grid.packed
	block = x.at(bad.Offset)
	return block, block < x.count && x.places[block].off <= bad.Offset
}

// forget removes a packed block, and reports whether it had been found right.
func (n *index) forget(block int64) bool {
	x := n.grid.packed
	n.state.remove(x.base + block)
	if !x.right.Remove(block) {
		return false
	}
	n.left.Add(1)
	n.whole.Store(false)
	return true
}

// pieceBytes is how much of a large block is in memory at a time.
const pieceBytes = 8 << 20
