//go:build !amd64 || purego

package kernel

// Functions with kernels for amd64 alone.

// crcFast leaves all to the library, which uses the instructions of other CPUs.
func crcFast(crc uint32, _ []byte) (uint32, int) { return crc, 0 }

// crcEachFast leaves all to CRC32C.
func crcEachFast([]uint32, []byte, int) int { return 0 }

// crcRaggedFast leaves all to CRC32C.
func crcRaggedFast([]uint32, []byte, []int) bool { return false }

// piecesF32Fast leaves pieces to SumF32 and SquaresF32.
func piecesF32Fast(_, _ []float64, _ []float32) (low, high float32, ok bool) { return 0, 0, false }

// markFast leaves all to markBytes.
func markFast([]uint64, string, byte) int { return 0 }
