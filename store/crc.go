package store

import (
	"fmt"
	"hash/crc32"

	"github.com/penstock/penstock/internal/kernel"
)

// CRC32C returns the checksum of b that datasets carry (RFC 3720).
func CRC32C(b []byte) uint32 { return kernel.CRC32C(0, b) }

// CRCWriter computes the CRC32C of what is written to it. The zero value has seen nothing.
type CRCWriter struct {
	Sum uint32 // of the bytes so far; setting it to 0 begins anew
}

// Write adds the next bytes. It takes them all, and never fails.
func (w *CRCWriter) Write(b []byte) (int, error) {
	w.Sum = kernel.CRC32C(w.Sum, b)
	return len(b), nil
}

// HexCRC writes a checksum as a manifest does.
func HexCRC(crc uint32) string { return fmt.Sprintf("%08x", crc) }

// BlockRecords returns how many rows of a column one checksum covers: 1 for rows of 4 KiB or
// more, else as many whole rows as fit into 64 KiB.
func BlockRecords(recordBytes int) int64 {
	if recordBytes >= 4096 {
		return 1
	}
	return int64(65536 / recordBytes)
}

// Blocks returns how many checksums count rows have.
func Blocks(count int64, recordBytes int) int64 {
	k := BlockRecords(recordBytes)
	return (count + k - 1) / k
}

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
	return BlockSums{size: int(BlockRecords(rowBytes)) * rowBytes}
}

// Add takes the next bytes, whose CRC32C the caller has at hand.
func (s *BlockSums) Add(b []byte, crc uint32) {
	if s.in == 0 && len(b) == s.size {
		s.Done = append(s.Done, crc)
		return
	}
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

// End closes a block that is not full. Without one it does nothing.
func (s *BlockSums) End() {
	if s.in > 0 {
		s.Done = append(s.Done, s.open)
		s.open, s.in = 0, 0
	}
}

// Open returns the bytes in the block that is not full, and their checksum: what Reopen needs
// to go on there.
func (s *BlockSums) Open() (n int, crc uint32) { return s.in, s.open }

// Reopen goes on in a block that has n bytes, fewer than a full one.
func (s *BlockSums) Reopen(n int, crc uint32) error {
	if n < 0 || n >= s.size {
		return fmt.Errorf("a block of %d bytes has %d already: %w", s.size, n, ErrCorrupt)
	}
	s.in, s.open = n, crc
	return nil
}

// all returns the checksum of all bytes so far, if Done was never cut.
func (s *BlockSums) all() uint32 {
	crc, shift := uint32(0), newCRCShift(int64(s.size))
	for _, b := range s.Done {
		crc = shift.join(crc, b)
	}
	return JoinCRC32C(crc, s.open, int64(s.in))
}

// JoinCRC32C returns the checksum of a's bytes followed by b's, which are n.
func JoinCRC32C(a, b uint32, n int64) uint32 {
	shift := newCRCShift(n)
	return shift.join(a, b)
}

// crcShift appends checksums: crc(a+b) from crc(a), crc(b) and the length of b, which is
// fixed. Appending n zero bytes to a is linear over GF(2), so it is a 32x32 bit matrix,
// made by repeated squaring (the method of zlib's crc32_combine).
type crcShift [32]uint32

func newCRCShift(n int64) crcShift {
	var result, square crcShift
	for i := range result {
		result[i] = 1 << i
	}
	// One zero bit: shift right and fold in the (reflected) polynomial.
	square[0] = crc32.Castagnoli
	for i := 1; i < 32; i++ {
		square[i] = 1 << (i - 1)
	}
	for bits := uint64(n) * 8; bits > 0; bits >>= 1 {
		if bits&1 == 1 {
			result = square.mul(&result)
		}
		square = square.mul(&square)
	}
	return result
}

func (m *crcShift) apply(v uint32) uint32 {
	var out uint32
	for i := 0; v != 0; i, v = i+1, v>>1 {
		out ^= m[i] & -(v & 1)
	}
	return out
}

// mul returns the matrix that applies b, then m.
func (m *crcShift) mul(b *crcShift) crcShift {
	var out crcShift
	for i := range out {
		out[i] = m.apply(b[i])
	}
	return out
}

// join returns the checksum of a's bytes followed by b's.
func (m *crcShift) join(a, b uint32) uint32 { return m.apply(a) ^ b }
