package kernel

import (
	"bytes"
	"testing"
)

// TestCopy copies at both ends of guarded pages and at odd alignments.
func TestCopy(t *testing.T) {
	for _, n := range append([]int{moveBytes + 13, 150_528}, lengths...) {
		placed(t, n, func(t *testing.T, src []byte) {
			for _, dst := range targets(t, n) {
				if Copy(dst, src); !bytes.Equal(dst, src) {
					t.Fatalf("%d bytes differ", n)
				}
			}
		})
	}
	defer func() {
		if recover() == nil {
			t.Error("slices of different lengths: no panic")
		}
	}()
	Copy(make([]byte, 2), make([]byte, 3))
}
