package kernel

import (
	"encoding/binary"
	"hash/crc32"
)

// castagnoli is the polynomial of CRC32C (RFC 3720).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C returns the checksum of some bytes followed by p. crc is the checksum of the bytes before p, 0 if there
// are none.
func CRC32C(crc uint32, p []byte) uint32 {
	switch len(p) {
	case 4:
		return ^crcWord(^crc ^ binary.LittleEndian.Uint32(p))
	case 8:
		crc = crcWord(^crc ^ binary.LittleEndian.Uint32(p))
		return ^crcWord(crc ^ binary.LittleEndian.Uint32(p[4:]))
	}
	n := 0
	crc, n = crcFast(crc, p)
	return crc32.Update(crc, castagnoli, p[n:])
}

// CRC32CEach continues the checksums of many sequences: sums[i], the checksum of sequence i so far, becomes the
// checksum of the sequence followed by row i of p. Rows have size bytes each.
func CRC32CEach(sums []uint32, p []byte, size int) {
	for i := crcEachFast(sums, p, size); i < len(sums); i++ {
		sums[i] = CRC32C(sums[i], p[i*size:(i+1)*size])
	}
}

// CRC32CRagged is CRC32CEach for rows of any length: row i ends at ends[i] in p, where the next row begins.
func CRC32CRagged(sums []uint32, p []byte, ends []int) {
	if crcRaggedFast(sums, p, ends) {
		return
	}
	begin := 0
	for i, end := range ends {
		sums[i] = CRC32C(sums[i], p[begin:end])
		begin = end
	}
}

// crcWord adds four bytes, which the register of the checksum is XORed with already. One number at a time, that is
// faster than a call of the instruction.
func crcWord(x uint32) uint32 {
	return wordTables[3][x&0xff] ^ wordTables[2][x>>8&0xff] ^ wordTables[1][x>>16&0xff] ^ wordTables[0][x>>24]
}

// wordTables have the checksum of a byte that is followed by 0 to 3 zeros.
var wordTables = func() (t [4]crc32.Table) {
	t[0] = *castagnoli
	for i := range t[0] {
		for k := 1; k < len(t); k++ {
			crc := t[k-1][i]
			t[k][i] = t[0][crc&0xff] ^ crc>>8
		}
	}
	return t
}()
