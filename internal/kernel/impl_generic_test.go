//go:build !(amd64 || arm64) || purego

package kernel

import "testing"

// each runs f once for each implementation that this machine has.
func each(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Run("go", f)
}
