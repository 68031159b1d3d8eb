//go:build !(linux || darwin || freebsd || netbsd || openbsd) || race

package memory

import (
	"unsafe"
)

// newPages returns n > 0 zeroed bytes that start on a page, from the Go heap. Race builds take this
// version on every system: the race detector watches no memory outside the Go heap.
func newPages(n int) ([]byte, error) {
	b := make([]byte, n+PageSize-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % PageSize
	return b[skip : skip+uintptr(n)], nil
}

// freePages does nothing: the garbage collector frees b.
func freePages([]byte) error { return nil }

// Lock returns why b cannot be locked: its pages belong to the Go heap.
func Lock([]byte) (why string) { return "memory is not locked in race builds, nor on this system" }
