//go:build !(linux || darwin || freebsd || netbsd || openbsd) || race

package memory

import (
	"unsafe"
)

// newPages returns n > 0 zeroed bytes that start on a page, from the Go heap: the race
// detector sees no other memory.
func newPages(n int) ([]byte, error) {
	b := make([]byte, n+PageSize-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % PageSize
	return b[skip : skip+uintptr(n)], nil
}

// freePages leaves b to the collector.
func freePages([]byte) error { return nil }

// Lock returns why it cannot: buffers are memory of the Go heap here.
func Lock([]byte) (why string) { return "memory is not locked in race builds, nor on this system" }
