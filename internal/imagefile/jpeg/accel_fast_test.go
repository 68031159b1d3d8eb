//go:build (amd64 || arm64) && !purego

package jpeg

import "testing"

// loopsAlone calls f without the kernels in assembly.
func loopsAlone(t testing.TB, f func()) {
	t.Helper()
	if !useKernels {
		t.Skip("this CPU lacks instructions of the kernels")
	}
	useKernels = false
	defer func() { useKernels = true }()
	f()
}
