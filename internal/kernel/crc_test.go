package kernel

import (
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
)

// TestCRC32C compares with the library at both ends of guarded memory, of bytes at once and of
// some that follow others.
func TestCRC32C(t *testing.T) {
	for _, n := range append([]int{511, 512, 513, 1023, 1024, 1025, 1535, 1536, 1537, 2048, 9999, 150_528}, lengths...) {
		placed(t, n, func(t *testing.T, src []byte) {
			for _, begun := range []uint32{0, 1, 0xffffffff, 0x12345678} {
				want := crc32.Update(begun, castagnoli, src)
				if got := CRC32C(begun, src); got != want {
					t.Fatalf("%d bytes after %08x: %08x, want %08x", n, begun, got, want)
				}
				for _, cut := range []int{n / 3, n - n/5} {
					if got := CRC32C(CRC32C(begun, src[:cut]), src[cut:]); got != want {
						t.Fatalf("%d bytes in two, from %d on: %08x, want %08x", n, cut, got, want)
					}
				}
			}
		})
	}
}

// TestCRC32CEach continues checksums of rows of all sizes, at both ends of guarded memory.
func TestCRC32CEach(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, size := range []int{1, 2, 3, 4, 8, 12, 16} {
			for _, rows := range []int{0, 1, 2, 7, 64, 1000} {
				placed(t, rows*size, func(t *testing.T, src []byte) {
					got, want := make([]uint32, rows), make([]uint32, rows)
					for i := range want {
						got[i] = uint32(i) * 0x9e3779b9
						want[i] = crc32.Update(got[i], castagnoli, src[i*size:(i+1)*size])
					}
					CRC32CEach(got, src, size)
					if !slices.Equal(got, want) {
						t.Fatalf("%d rows of %d bytes: %08x, want %08x", rows, size, got, want)
					}
				})
			}
		}
	})
}

// TestCRC32CRagged continues checksums of rows of all lengths, at both ends of guarded memory.
func TestCRC32CRagged(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, lengths := range [][]int{{}, {0}, {1}, {0, 3, 0, 0}, {7, 8, 9, 15, 16, 17, 2, 4, 6, 1, 5}, {2000, 1, 2}} {
			size, ends := 0, []int{}
			for _, n := range lengths {
				size += n
				ends = append(ends, size)
			}
			placed(t, size, func(t *testing.T, src []byte) {
				got, want := make([]uint32, len(ends)), make([]uint32, len(ends))
				for i, n := range lengths {
					got[i] = uint32(i) * 0x9e3779b9
					want[i] = crc32.Update(got[i], castagnoli, src[ends[i]-n:ends[i]])
				}
				CRC32CRagged(got, src, ends)
				if !slices.Equal(got, want) {
					t.Fatalf("rows of %d bytes: %08x, want %08x", lengths, got, want)
				}
			})
		}
	})
}

func BenchmarkCRC32C(b *testing.B) {
	for _, n := range []int{512, 1024, 2048, 4096, 65536, 602_112} {
		p := make([]byte, n)
		noise(p, 1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				CRC32C(0, p)
			}
		})
		b.Run(fmt.Sprintf("%d/library", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				crc32.Update(0, castagnoli, p)
			}
		})
	}
}
