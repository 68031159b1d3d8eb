package h5chunk

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/penstock/penstock/internal/h5meta"
)

// fletcher32 is libhdf5's H5_checksum_fletcher32: two sums modulo 65535 over big-endian
// words of 16 bits, an odd last byte being the high half of a word.
func fletcher32(b []byte) uint32 {
	var s1, s2 uint32
	for len(b) >= 2 {
		n := min(len(b)/2, 360) // as many as fit before s2 can overflow
		for range n {
			s1 += uint32(binary.BigEndian.Uint16(b))
			s2 += s1
			b = b[2:]
		}
		s1, s2 = s1&0xffff+s1>>16, s2&0xffff+s2>>16
	}
	if len(b) == 1 {
		s1 += uint32(b[0]) << 8
		s2 += s1
		s1, s2 = s1&0xffff+s1>>16, s2&0xffff+s2>>16
	}
	s1, s2 = s1&0xffff+s1>>16, s2&0xffff+s2>>16
	return s2<<16 | s1
}

// checkFletcher32 compares the little-endian checksum at the end of src and returns what is
// before it. Like libhdf5 it accepts the sum that libhdf5 1.6.2 wrote on little-endian
// machines, whose halves have their bytes swapped.
func checkFletcher32(src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, fmt.Errorf("%d bytes have no room for a checksum: %w", len(src), h5meta.ErrCorrupt)
	}
	data := src[:len(src)-4]
	sum, stored := fletcher32(data), binary.LittleEndian.Uint32(src[len(data):])
	old := bits.RotateLeft32(bits.ReverseBytes32(sum), 16)
	if stored != sum && stored != old {
		return nil, fmt.Errorf("checksum is %08x, stored is %08x: %w", sum, stored, h5meta.ErrCorrupt)
	}
	return data, nil
}
