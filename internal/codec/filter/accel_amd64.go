//go:build !purego

package filter

//go:generate go run -C _asm . -pkg filter -out ../kernels_amd64.s -stubs ../kernels_amd64.go

import "golang.org/x/sys/cpu"

// useAVX2 chooses the kernels in assembly. Tests clear it to test the Go loops.
var useAVX2 = cpu.X86.HasAVX2

// The Fast functions do as much as they can and return how many bytes or elements they did:
// all, or none, or, for sums, whole blocks of 32 bytes.

// byteSumsFast returns the sums of the first n bytes, a multiple of 32; n is 0 without AVX2. Go code sums the rest.
func byteSumsFast(b []byte) (s, w uint32, n int) {
	if n = len(b) &^ 31; !useAVX2 || n == 0 {
		return 0, 0, 0
	}
	s, w = byteSumsAVX2(&b[0], n)
	return s, w, n
}

// wordSumsFast returns the sums of words in the first n bytes, a multiple of 32; n is 0 without AVX2.
func wordSumsFast(b []byte) (s, w uint32, n int) {
	if n = len(b) &^ 31; !useAVX2 || n == 0 {
		return 0, 0, 0
	}
	s, w = wordSumsAVX2(&b[0], n)
	return s, w, n
}

// transposeBitsFast transposes the bits of the first n bytes, a multiple of 32; n is 0 without AVX2.
func transposeBitsFast(b []byte) (n int) {
	if n = len(b) &^ 31; !useAVX2 || n == 0 {
		return 0
	}
	transposeBitsAVX2(&b[0], n)
	return n
}

// unshuffleFast makes n elements of dst, and reports whether there is a kernel for their size.
func unshuffleFast(dst, src []byte, n, size int) bool {
	if !useAVX2 || n < 16 {
		return false
	}
	_, _ = dst[:n*size], src[:n*size]
	switch size {
	case 2:
		unshuffle2AVX2(&dst[0], &src[0], n)
	case 4:
		unshuffle4AVX2(&dst[0], &src[0], n)
	case 8:
		unshuffle8AVX2(&dst[0], &src[0], n)
	default:
		return false
	}
	return true
}
