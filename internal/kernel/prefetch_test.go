package kernel

import (
	"bytes"
	"testing"
)

// TestPrefetch touches memory at both ends of guarded pages, and changes none.
func TestPrefetch(t *testing.T) {
	for _, n := range lengths {
		placed(t, n, func(t *testing.T, b []byte) {
			want := bytes.Clone(b)
			Prefetch(b)
			if !bytes.Equal(b, want) {
				t.Fatalf("%d bytes changed", n)
			}
		})
	}
}
