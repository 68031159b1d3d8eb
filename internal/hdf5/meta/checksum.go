package meta

import (
	"encoding/binary"
	"math/bits"
)

// Checksum returns the checksum of HDF5's metadata: Bob Jenkins' hashlittle with initial value 0 (public domain,
// burtleburtle.net/bob/c/lookup3.c).
func Checksum(p []byte) uint32 {
	a := 0xdeadbeef + uint32(len(p))
	b, c := a, a
	for len(p) > 12 {
		a += binary.LittleEndian.Uint32(p)
		b += binary.LittleEndian.Uint32(p[4:])
		c += binary.LittleEndian.Uint32(p[8:])
		a, b, c = mix3(a, b, c)
		p = p[12:]
	}
	if len(p) == 0 {
		return c
	}
	var tail [12]byte
	copy(tail[:], p)
	a += binary.LittleEndian.Uint32(tail[:])
	b += binary.LittleEndian.Uint32(tail[4:])
	c += binary.LittleEndian.Uint32(tail[8:])
	return final3(a, b, c)
}

// mix3 is lookup3's mix: it stirs 12 bytes into the state.
func mix3(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - c) ^ bits.RotateLeft32(c, 4)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 6)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 8)
	b += a
	a = (a - c) ^ bits.RotateLeft32(c, 16)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 19)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

// final3 is lookup3's final, after the last bytes; its c is the checksum.
func final3(a, b, c uint32) uint32 {
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	return (c ^ b) - bits.RotateLeft32(b, 24)
}
