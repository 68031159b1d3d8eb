//go:build !(linux || darwin || freebsd || netbsd || openbsd) || race

package cuda

import (
	"os"
	"unsafe"
)

// lockedMemory returns memory of the Go heap: the race detector sees no other, and not
// every system can lock.
func lockedMemory(n int) (b []byte, why string, err error) {
	page := os.Getpagesize()
	b = make([]byte, n+page-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page)
	return b[skip : skip+uintptr(n)], "memory is not locked in race builds, nor on this system", nil
}

// freeLocked leaves b to the collector.
func freeLocked([]byte) error { return nil }
