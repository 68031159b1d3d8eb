//go:build !purego

package kernel

import "testing"

// eachOf runs f with each of the kernels that this machine has.
func eachOf(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	have := useAVX512
	defer func() { useAVX512 = have }()
	useAVX512 = false
	t.Run("avx2", f)
	if !have {
		t.Log("this CPU lacks AVX-512: its kernels are not tested")
		return
	}
	useAVX512 = true
	t.Run("avx512", f)
}
