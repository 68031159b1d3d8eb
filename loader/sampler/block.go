package sampler

import (
	"fmt"

	"github.com/penstock/penstock/internal/permute"
)

// Block shuffles blocks of Size consecutive records, and leaves each block in the order of the
// dataset. With Size a multiple of BatchSize every batch is within one block, and is a view of
// the Source's memory. With a smaller Size, batches are gathered in fewer and larger pieces. The
// price is randomness, which [Randomness] measures: records that were neighbors in the dataset
// stay neighbors. If the dataset was shuffled when it was made, that does no harm. If it is in the order of
// its labels, as one of class folders is, batches have one class.
//
// If Size does not divide the number of records, the records that are left over come last, as
// one shorter block. Which ones these are is drawn for each epoch.
type Block struct {
	Size int // records in a block; 0 and 1 shuffle exactly
}

var (
	_ SliceSequence = blockSequence{}
	_ Identifier    = Block{}
)

// Epoch returns the permutation that belongs to (Size, n, seed, epoch). The permutation is of
// blocks, so that it needs at most 8 KiB.
func (o Block) Epoch(n int, seed uint64, epoch int) Sequence {
	if o.Size <= 1 {
		return Shuffle{}.Epoch(n, seed, epoch)
	}
	blocks, tail := n/o.Size, n%o.Size
	r := permute.Rand(permute.Key(seed, epoch, blockKey))
	return blockSequence{
		blocks: permute.New(blocks, seed, epoch), size: o.Size, tail: tail,
		cut: int(r.Below(uint64(blocks+1))) * o.Size,
	}
}

// ID returns "block(256)" for blocks of 256 records.
func (o Block) ID() string { return fmt.Sprintf("block(%d)", max(1, o.Size)) }

// blockKey separates the draw that places the short block from other draws with the same seed.
const blockKey = 1<<16 + 1

type blockSequence struct {
	blocks     permute.Permutation
	size, tail int
	cut        int // the tail is records [cut, cut+tail)
}

func (s blockSequence) Len() int { return s.blocks.Len()*s.size + s.tail }

func (s blockSequence) Fill(pos int, dst []int) {
	for len(dst) > 0 {
		first, in, n := s.at(pos)
		n = min(n-in, len(dst))
		for i := range n {
			dst[i] = first + in + i
		}
		pos, dst = pos+n, dst[n:]
	}
}

func (s blockSequence) SliceAt(pos, n int) (first int, ok bool) {
	first, in, of := s.at(pos)
	return first + in, in+n <= of
}

// at returns the block of position pos: its first record, the place of pos within it, and its
// length. The short block lies somewhere among the records and comes last in the order; records
// behind it are shifted by its length.
func (s blockSequence) at(pos int) (first, in, n int) {
	k := pos / s.size
	if k == s.blocks.Len() {
		return s.cut, pos % s.size, s.tail
	}
	first = s.blocks.At(k) * s.size
	if first >= s.cut {
		first += s.tail
	}
	return first, pos % s.size, s.size
}
