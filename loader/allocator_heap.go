//go:build !(linux || darwin || freebsd || netbsd || openbsd) || race

package loader

import (
	"unsafe"
)

// newMemory returns n > 0 zeroed bytes that start on a page, from the Go heap: the race
// detector sees no other memory.
func newMemory(n int) ([]byte, error) {
	b := make([]byte, n+pageSize-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % pageSize
	return b[skip : skip+uintptr(n)], nil
}

// freeMemory leaves b to the collector.
func freeMemory([]byte) error { return nil }

// lock returns why it cannot: buffers are memory of the Go heap here.
func lock([]byte) (why string) { return "memory is not locked in race builds, nor on this system" }
