package kernel

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"testing"
)

// TestWriteSHA256s compares with hashes that are written one by one. Each has another beginning; they have equal or
// different sizes.
func TestWriteSHA256s(t *testing.T) {
	for _, count := range []int{1, 4, 17, 50} {
		for _, n := range []int{0, 255, 256, 921} {
			for _, begun := range []int{0, 1, 63, 64} {
				for _, same := range []bool{true, false} {
					p := targets(t, count*n)[(count+begun)%2]
					noise(p, uint32(count+n+begun))
					var got, want []hash.Hash
					for i := range count {
						for _, list := range []*[]hash.Hash{&got, &want} {
							h := sha256.New()
							h.Write(bytes.Repeat([]byte{byte(i)}, begun))
							if !same && i == count/2 {
								h.Write([]byte("more"))
							}
							*list = append(*list, h)
						}
						want[i].Write(p[i*n : (i+1)*n])
					}
					WriteSHA256s(got, p, n)
					for i := range got {
						for range 2 { // and so do their states
							if !bytes.Equal(got[i].Sum(nil), want[i].Sum(nil)) {
								t.Fatalf("%d hashes of %d bytes after %d: hash %d differs", count, n, begun, i)
							}
							got[i].Write([]byte("next"))
							want[i].Write([]byte("next"))
						}
					}
				}
			}
		}
	}
}

func BenchmarkWriteSHA256s(b *testing.B) {
	for _, n := range []int{1024, 5120} {
		for _, count := range []int{1, 10, 16} {
			hashes := make([]hash.Hash, count)
			for i := range hashes {
				hashes[i] = sha256.New()
			}
			p := make([]byte, count*n)
			b.Run(fmt.Sprintf("%dx%d", count, n), func(b *testing.B) {
				b.SetBytes(int64(len(p)))
				for b.Loop() {
					WriteSHA256s(hashes, p, n)
				}
			})
		}
	}
}
