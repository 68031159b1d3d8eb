package kernel

import "hash/crc32"

// castagnoli is the polynomial of CRC32C (RFC 3720).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C returns the checksum of bytes whose checksum is crc, 0 if there are none, followed by p.
func CRC32C(crc uint32, p []byte) uint32 {
	n := 0
	crc, n = crcFast(crc, p)
	return crc32.Update(crc, castagnoli, p[n:])
}
