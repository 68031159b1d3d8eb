//go:build !amd64 || purego

package filter

// useAVX2 is false, as this build has no kernels in assembly.
const useAVX2 = false

func byteSumsFast([]byte) (s, w uint32, n int) { return 0, 0, 0 }
func wordSumsFast([]byte) (s, w uint32, n int) { return 0, 0, 0 }
func transposeBitsFast([]byte) (n int)         { return 0 }
func unshuffleFast(_, _ []byte, _, _ int) bool { return false }
