package filter

import (
	"bytes"
	"testing"
)

// The doc comment of Unshuffle is its definition.
func TestUnshuffle(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		for _, size := range []int{1, 2, 3, 4, 5, 8, 16} {
			for _, n := range []int{0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 1000, 4097} {
				src := random(size, n)
				want := bytes.Clone(src)
				for i := range n / size {
					for j := range size {
						want[i*size+j] = src[j*(n/size)+i]
					}
				}
				got := make([]byte, n+1)
				Unshuffle(got[:n:n], src, size)
				if !bytes.Equal(got[:n], want) || got[n] != 0 {
					t.Errorf("Unshuffle of %d bytes in elements of %d: wrong", n, size)
				}
			}
		}
	})
}

// Elements that are larger than the chunk leave it as it is, and cost nothing.
func TestUnshuffleAbsurd(t *testing.T) {
	src := []byte("some bytes")
	for _, size := range []int{len(src) + 1, 1<<31 - 1} {
		dst := make([]byte, len(src))
		for range 1000 {
			Unshuffle(dst, src, size)
		}
		if string(dst) != string(src) {
			t.Errorf("elements of %d bytes: %q", size, dst)
		}
	}
}

// The doc comment of Shuffle is its definition.
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
			Shuffle(got, src, size)
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes in elements of %d: wrong", n, size)
			}
		}
	}
}

// The doc comment of TransposeBits is its definition.
func TestTransposeBits(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 7, 8, 9, 31, 32, 33, 40, 64, 127, 1000} {
			src := random(3, n)
			want := bytes.Clone(src)
			for i := range n / 8 {
				for r := range 8 {
					for c := range 8 {
						want[8*i+r] = want[8*i+r]&^(1<<c) | src[8*i+c]>>r&1<<c
					}
				}
			}
			if TransposeBits(src); !bytes.Equal(src, want) {
				t.Errorf("%d bytes: wrong", n)
			}
		}
	})
}
