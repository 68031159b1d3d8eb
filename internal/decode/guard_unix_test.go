//go:build unix

package decode

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n values of T that end where memory that faults begins, filled with
// something.
func guarded[T uint8 | uint16 | int16](t testing.TB, n int) []T {
	t.Helper()
	size := n * int(unsafe.Sizeof(T(0)))
	page := unix.Getpagesize()
	whole := (size + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, whole+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mprotect(mem[whole:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[whole-size])), n)
}
