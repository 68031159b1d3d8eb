package write

import (
	"fmt"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// BlockSums computes the checksums of a column's blocks while its bytes are written. It
// allocates only where Done grows.
type BlockSums struct {
	Done []uint32 // of the blocks that are full; the caller may take some out and truncate it
	size int      // bytes of a full block
	in   int      // bytes in the open block
	open uint32   // their checksum
}

// NewBlockSums returns the checksums of an empty column.
func NewBlockSums(rowBytes int) BlockSums {
	return BlockSums{size: int(layout.BlockRecords(rowBytes)) * rowBytes}
}

// Add enters the next bytes, whose CRC32C the caller knows. If they are exactly one block, crc is its checksum, and no
// byte is read again.
func (s *BlockSums) Add(b []byte, crc uint32) {
	if s.in == 0 && len(b) == s.size {
		s.Done = append(s.Done, crc)
		return
	}
	s.write(b)
}

// write adds the next bytes.
func (s *BlockSums) write(b []byte) {
	for len(b) > 0 {
		n := min(len(b), s.size-s.in)
		s.open = kernel.CRC32C(s.open, b[:n])
		s.in += n
		b = b[n:]
		if s.in == s.size {
			s.End()
		}
	}
}

// End closes a block that is not full, such as the last block of a column. Without an open block it does nothing.
func (s *BlockSums) End() {
	if s.in > 0 {
		s.Done = append(s.Done, s.open)
		s.open, s.in = 0, 0
	}
}

// Open returns how many bytes the block that is not full has, and their checksum. Reopen takes both and continues the
// block.
func (s *BlockSums) Open() (n int, crc uint32) { return s.in, s.open }

// Reopen continues a block that has n bytes, fewer than a full block. n comes from a file, so it is checked.
func (s *BlockSums) Reopen(n int, crc uint32) error {
	if n < 0 || n >= s.size {
		return fmt.Errorf("a block of %d bytes has %d already: %w", s.size, n, store.ErrCorrupt)
	}
	s.in, s.open = n, crc
	return nil
}

// all returns the checksum of all bytes so far, combined from the checksums of blocks. It is right only if no caller
// has taken checksums out of Done.
func (s *BlockSums) all() uint32 {
	crc, shift := uint32(0), newCRCShift(int64(s.size))
	for _, b := range s.Done {
		crc = shift.join(crc, b)
	}
	return CombineCRC32C(crc, s.open, int64(s.in))
}
