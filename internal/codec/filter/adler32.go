package filter

import "hash/adler32"

// Adler32 is hash/adler32's Checksum (RFC 1950): two sums modulo 65521.
func Adler32(b []byte) uint32 {
	if !useAVX2 {
		return adler32.Checksum(b)
	}
	const prime = 65521
	s1, s2 := uint64(1), uint64(0)
	for len(b) > 0 {
		n := min(len(b), mostByteSums)
		s, w := byteSums(b[:n])
		s2 = (s2 + s1*uint64(n) + uint64(w)) % prime
		s1 = (s1 + uint64(s)) % prime
		b = b[n:]
	}
	return uint32(s2<<16 | s1)
}
