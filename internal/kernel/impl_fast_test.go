//go:build (amd64 || arm64) && !purego

package kernel

import "testing"

// each runs f once for each implementation that this machine has.
func each(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	have := useKernels
	defer func() { useKernels = have }()
	useKernels = false
	t.Run("go", f)
	if !have {
		t.Log("this CPU lacks instructions of the kernels: they are not tested")
		return
	}
	useKernels = true
	eachOf(t, f)
}
