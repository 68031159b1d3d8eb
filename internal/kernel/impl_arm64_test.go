//go:build !purego

package kernel

import "testing"

// eachOf runs f with each of the kernels that this machine has.
func eachOf(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Run("neon", f)
}
