package filter

import "encoding/binary"

// TransposeBits exchanges rows and columns of bits in each 8 bytes. Bytes after the last 8 bytes do not change.
//
//	for i := range len(b) / 8 { for r := range 8 { for c := range 8 { bit c of b[8*i+r] <-> bit r of b[8*i+c] } } }
func TransposeBits(b []byte) {
	transposeBits(b[transposeBitsFast(b):])
}

// transposeBits exchanges single bits, then squares of two by two, then squares of four by four: Hacker's Delight 7-3.
func transposeBits(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		t := (x ^ x>>7) & 0x00aa00aa00aa00aa
		x ^= t ^ t<<7
		t = (x ^ x>>14) & 0x0000cccc0000cccc
		x ^= t ^ t<<14
		t = (x ^ x>>28) & 0x00000000f0f0f0f0
		x ^= t ^ t<<28
		binary.LittleEndian.PutUint64(b, x)
	}
}
