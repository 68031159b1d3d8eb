//go:build !unix

package guardpage

import "testing"

func guarded(_ testing.TB, n int) (before, after []byte) {
	return make([]byte, n), make([]byte, n)
}
