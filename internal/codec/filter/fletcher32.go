package filter

// Fletcher32 is libhdf5's H5_checksum_fletcher32: two sums modulo 65535 over big-endian
// words of 16 bits, an odd last byte being the high half of a word.
func Fletcher32(b []byte) uint32 {
	var s1, s2 uint64
	for len(b) >= 2 {
		n := min(len(b)&^1, mostWordSums)
		s, w := wordSums(b[:n])
		s2 = fold(s2 + s1*uint64(n/2) + uint64(w))
		s1 = fold(s1 + uint64(s))
		b = b[n:]
	}
	if len(b) == 1 {
		s1 = fold(s1 + uint64(b[0])<<8)
		s2 = fold(s2 + s1)
	}
	return uint32(s2<<16 | s1)
}

// fold returns a number below 65536 that equals x modulo 65535. As in libhdf5, a
// positive multiple of 65535 becomes 65535 and not 0.
func fold(x uint64) uint64 {
	for x > 0xffff {
		x = x&0xffff + x>>16
	}
	return x
}
