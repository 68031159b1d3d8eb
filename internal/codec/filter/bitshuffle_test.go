package filter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// bitshuffle is the definition of the layout, bit by bit.
func bitshuffle(src []byte, size int) []byte {
	dst := bytes.Clone(src)
	n := len(src) / size &^ 7
	clear(dst[:n*size])
	for i := range n {
		for j := range 8 * size {
			bit := src[i*size+j/8] >> (j % 8) & 1
			dst[j*(n/8)+i/8] |= bit << (i % 8)
		}
	}
	return dst
}

func TestUnbitshuffle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 64, 128, 129, 300} {
		for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 63, 64, 65, 100, 128, 1000, 4096, 5003} {
			want := make([]byte, n*size+n%size)
			for i := range want {
				want[i] = byte(rng.Uint32())
			}
			got := make([]byte, len(want))
			if Unbitshuffle(got, bitshuffle(want, size), size); !bytes.Equal(got, want) {
				t.Fatalf("%d elements of %d bytes: wrong", n, size)
			}
		}
	}
}

// Elements that are larger than the data leave it as it is.
func TestUnbitshuffleAbsurd(t *testing.T) {
	src := []byte("some bytes")
	dst := make([]byte, len(src))
	if Unbitshuffle(dst, src, 1<<31-1); string(dst) != string(src) {
		t.Errorf("%q", dst)
	}
}

func BenchmarkUnbitshuffle(b *testing.B) {
	for _, size := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			src, dst := make([]byte, 64<<10), make([]byte, 64<<10)
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Unbitshuffle(dst, src, size)
			}
		})
	}
}
