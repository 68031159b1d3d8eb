package filter

import (
	"testing"

	"github.com/penstock/penstock/internal/testkit/guardpage"
)

// A kernel that strays from its slices dies here.
func TestInside(t *testing.T) {
	for _, n := range []int{1, 16, 31, 32, 33, 64, 127, 128, 129, 135, 1000, 8192} {
		src, dst := guardpage.Slices[byte](t, n), guardpage.Slices[byte](t, n)
		for side := range src {
			Adler32(src[side])
			Fletcher32(src[side])
			for _, size := range []int{2, 3, 4, 8} {
				Unshuffle(dst[side], src[side], size)
			}
			TransposeBits(dst[side])
		}
	}
}
