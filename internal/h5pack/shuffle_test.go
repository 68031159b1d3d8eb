package h5pack

import (
	"bytes"
	"testing"
)

// The doc comment of shuffle is its definition.
func TestShuffle(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 8} {
		for _, n := range []int{0, 1, 7, 8, 9, 255, 1000} {
			src := random(size, n)
			want := bytes.Clone(src)
			for i := range n / size {
				for j := range size {
					want[j*(n/size)+i] = src[i*size+j]
				}
			}
			got := make([]byte, n)
			shuffle(got, src, size)
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes in elements of %d: wrong", n, size)
			}
		}
	}
}
