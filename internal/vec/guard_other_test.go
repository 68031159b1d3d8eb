//go:build !unix

package vec

import "testing"

// guarded returns n bytes twice. Pages that cannot be touched are for systems with mprotect.
func guarded(_ *testing.T, n int) (before, after []byte) {
	return make([]byte, n), make([]byte, n)
}
