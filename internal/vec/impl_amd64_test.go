//go:build !purego

package vec

import "testing"

// each runs f once for each implementation that this machine has.
func each(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	have := useAVX2
	defer func() { useAVX2 = have }()
	useAVX2 = false
	t.Run("go", f)
	if !have {
		t.Log("this CPU has no AVX2 with FMA and F16C: the kernels are not tested")
		return
	}
	useAVX2 = true
	t.Run("avx2", f)
}
