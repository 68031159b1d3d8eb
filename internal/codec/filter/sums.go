package filter

import "encoding/binary"

// The most bytes that are added up before the sums are reduced. The sum of sums of more bytes could exceed 32 bits.
const (
	mostByteSums = 5536 // 173 blocks of 32
	mostWordSums = 704  // 22 blocks
)

// byteSums returns the sum of at most mostByteSums bytes, and the sum of the running sums after
// each byte:
//
//	for _, x := range b { s += x; w += s }
func byteSums(b []byte) (s, w uint32) {
	s, w, n := byteSumsFast(b)
	for _, x := range b[n:] {
		s += uint32(x)
		w += s
	}
	return s, w
}

// wordSums is byteSums for big-endian words of 16 bits, in an even number of bytes, at most
// mostWordSums.
func wordSums(b []byte) (s, w uint32) {
	s, w, n := wordSumsFast(b)
	for b = b[n:]; len(b) >= 2; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
		w += s
	}
	return s, w
}
