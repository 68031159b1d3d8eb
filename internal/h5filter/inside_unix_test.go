//go:build unix

package h5filter

import (
	"testing"

	"golang.org/x/sys/unix"
)

// guarded returns n bytes twice, directly before and directly after a page that cannot be touched.
func guarded(t *testing.T, n int) [2][]byte {
	t.Helper()
	page := unix.Getpagesize()
	inner := (n + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	for _, p := range [][]byte{mem[:page], mem[page+inner:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	in := mem[page : page+inner]
	return [2][]byte{in[inner-n : inner : inner], in[0:n:n]}
}

// A kernel that strays from its slices dies here.
func TestInside(t *testing.T) {
	for _, n := range []int{1, 16, 31, 32, 33, 64, 127, 128, 129, 135, 1000, 8192} {
		src, dst := guarded(t, n), guarded(t, n)
		for side := range src {
			Adler32(src[side])
			Fletcher32(src[side])
			for _, size := range []int{2, 3, 4, 8} {
				Unshuffle(dst[side], src[side], size)
			}
		}
	}
}
