// Package guardpage returns memory next to pages that cannot be accessed, for tests of kernels: one
// that strays from its slices crashes.
package guardpage

import (
	"testing"
	"unsafe"
)

// Slices returns n zeros twice: directly before and directly after a page that cannot be
// touched. They are valid until the test ends. On systems without mprotect they are plain memory without guards.
func Slices[T uint8 | uint16 | int16](t testing.TB, n int) [2][]T {
	t.Helper()
	before, after := guarded(t, n*int(unsafe.Sizeof(T(0))))
	return [2][]T{as[T](before, n), as[T](after, n)}
}

// as returns the n values that b holds: guarded memory begins and ends at a page, so that they are
// aligned, as are slices of an even length on the Go heap.
func as[T uint8 | uint16 | int16](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
