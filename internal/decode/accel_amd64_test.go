//go:build !purego

package decode

import "testing"

// loopsAlone calls f without the kernels in assembly.
func loopsAlone(t testing.TB, f func()) {
	t.Helper()
	if !useAVX2 {
		t.Skip("this processor has no AVX2")
	}
	useAVX2 = false
	defer func() { useAVX2 = true }()
	f()
}
