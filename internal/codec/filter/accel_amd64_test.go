//go:build !purego

package filter

import "testing"

// eachWay calls f with the kernels in assembly, and without.
func eachWay(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if useAVX2 {
		t.Run("avx2", f)
		useAVX2 = false
		defer func() { useAVX2 = true }()
	}
	t.Run("loops", f)
}
