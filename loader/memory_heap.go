//go:build !(linux || darwin || freebsd || netbsd || openbsd) || race

package loader

import (
	"runtime"
	"unsafe"
)

// newMemory returns n > 0 zeroed bytes that start on a page, from the Go heap: the race
// detector sees no other memory. small tells why they are not asked for in large pages.
func newMemory(n int) (b []byte, small string, err error) {
	b = make([]byte, n+pageSize-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % pageSize
	return b[skip : skip+uintptr(n)], "buffers are memory of the Go heap in race builds, and on " + runtime.GOOS, nil
}

// freeMemory leaves b to the collector.
func freeMemory([]byte) error { return nil }
