// Package guardpage gives memory that is beside pages which cannot be touched, for tests of
// kernels: one that strays from its slices dies.
package guardpage

import (
	"testing"
	"unsafe"
)

// Slices returns n zeros twice: directly before and directly after a page that cannot be
// touched. They are there until the test ends. Where systems have no mprotect they are plain
// memory, beside which nothing is guarded.
func Slices[T uint8 | uint16 | int16](t testing.TB, n int) [2][]T {
	t.Helper()
	before, after := guarded(t, n*int(unsafe.Sizeof(T(0))))
	return [2][]T{as[T](before, n), as[T](after, n)}
}

// as returns the n values that b holds: guarded memory begins and ends at a page, so that
// they are aligned, and so is what the Go heap has of an even length.
func as[T uint8 | uint16 | int16](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
