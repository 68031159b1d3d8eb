//go:build !purego

package kernel

import (
	"slices"

	"golang.org/x/sys/cpu"
)

// useCarryless chooses the kernel that multiplies without carries, in registers of AVX-512. Tests
// clear it.
var useCarryless = useAVX512 && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// crcBytes is the least that is left to the kernel: less the loop of the library does as fast.
const crcBytes = 2 << 10

func crcFast(crc uint32, p []byte) (uint32, int) {
	if !useCarryless || len(p) < crcBytes {
		return crc, 0
	}
	n := len(p) &^ 511
	return ^crc32c512(^crc, &p[0], n), n
}

// crcEachFast does what CRC32CEach does, of rows of one number, and returns how many rows that was.
func crcEachFast(sums []uint32, p []byte, size int) int {
	n := len(sums)
	if !useKernels || !cpu.X86.HasSSE42 || n == 0 {
		return 0
	}
	switch _ = p[n*size-1]; size {
	case 4:
		crc32cEach4(&sums[0], &p[0], n)
	case 8:
		crc32cEach8(&sums[0], &p[0], n)
	default:
		return 0
	}
	return n
}

// crcRaggedBytes is the mean length of rows that are left to the library, which adds several parts of a long one at a
// time.
const crcRaggedBytes = 512

// crcRaggedFast does what CRC32CRagged does, if it returns true.
func crcRaggedFast(sums []uint32, p []byte, ends []int) bool {
	n := len(ends)
	if !useKernels || !cpu.X86.HasSSE42 || n == 0 || len(p) == 0 || len(p)/n > crcRaggedBytes {
		return false
	}
	if ends[0] < 0 || ends[n-1] > len(p) || !slices.IsSorted(ends) {
		return false
	}
	crc32cRagged(&sums[:n][0], &p[0], &ends[0], n)
	return true
}

// crc32cRagged does n > 0 rows of any length.
//
//go:noescape
func crc32cRagged(sums *uint32, p *byte, ends *int, n int)

// crc32cEach4 does n > 0 rows of 4 bytes.
//
//go:noescape
func crc32cEach4(sums *uint32, p *byte, n int)

// crc32cEach8 does n > 0 rows of 8 bytes.
//
//go:noescape
func crc32cEach8(sums *uint32, p *byte, n int)
