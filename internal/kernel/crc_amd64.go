//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

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
