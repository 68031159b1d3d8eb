//go:build !(amd64 || arm64) || purego

package jpeg

import "testing"

func loopsAlone(t testing.TB, _ func()) {
	t.Helper()
	t.Skip("built without kernels in assembly")
}
