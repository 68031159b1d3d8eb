package write

import "hash/crc32"

// CombineCRC32C returns the checksum of the bytes of a followed by the n bytes of b.
func CombineCRC32C(a, b uint32, n int64) uint32 {
	shift := newCRCShift(n)
	return shift.join(a, b)
}

// crcShift appends checksums: crc(a+b) from crc(a), crc(b) and the length of b, which is fixed. Appending n zero bytes
// to a is linear over GF(2), so it is a 32x32 bit matrix, made by repeated squaring (the method of zlib's
// crc32_combine).
type crcShift [32]uint32

// newCRCShift returns the matrix over GF(2) that appends n zero bytes to a CRC32C. Appending one bit is linear in the
// bits of the checksum, so n bytes are the 8n-th power of its matrix, by repeated squaring. With it the checksum of a
// file follows from the checksums of its blocks, and no file is read twice.
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

// apply multiplies the matrix by a checksum. The mask -(v&1) adds a column or not without a branch.
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
