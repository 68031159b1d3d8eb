package layout

import (
	"fmt"

	"github.com/penstock/penstock/internal/kernel"
)

// CRC32C returns the checksum of b that datasets carry (RFC 3720).
func CRC32C(b []byte) uint32 { return kernel.CRC32C(0, b) }

// CRCWriter computes the CRC32C of the bytes that are written to it. The zero value has the CRC32C of no bytes.
type CRCWriter struct {
	Sum uint32 // of the bytes so far; setting it to 0 starts again
}

// Write adds the next bytes. It takes all bytes, and never fails.
func (w *CRCWriter) Write(b []byte) (int, error) {
	w.Sum = kernel.CRC32C(w.Sum, b)
	return len(b), nil
}

// HexCRC writes a checksum as a manifest does.
func HexCRC(crc uint32) string { return fmt.Sprintf("%08x", crc) }

// BlockRecords returns how many rows of a column have one checksum: 1 for rows of 4 KiB or more, otherwise as many
// whole rows as fit into 64 KiB. A reader of one small row so reads 64 KiB at most to check it, and the checksums take
// little space beside the rows.
func BlockRecords(recordBytes int) int64 {
	if recordBytes >= 4096 {
		return 1
	}
	return int64(65536 / recordBytes)
}

// Blocks returns how many checksums an extent of count rows has.
func Blocks(count int64, recordBytes int) int64 {
	k := BlockRecords(recordBytes)
	return (count + k - 1) / k
}
