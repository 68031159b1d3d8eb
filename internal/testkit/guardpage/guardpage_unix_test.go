//go:build unix

package guardpage

import (
	"runtime/debug"
	"testing"
	"unsafe"
)

// faults reports whether reading the byte at offset from p does.
func faults(p unsafe.Pointer, offset int) (died bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { died = recover() != nil }()
	sink = *(*byte)(unsafe.Add(p, offset))
	return false
}

var sink byte

func TestStrayingDies(t *testing.T) {
	for _, n := range []int{1, 7, 2048, 2049, 5000} {
		sides := Slices[int16](t, n)
		before, after := sides[0], sides[1]
		if len(before) != n || cap(before) != n || len(after) != n || cap(after) != n {
			t.Fatalf("%d values: %d and %d", n, len(before), len(after))
		}
		for i := range n {
			before[i], after[i] = 1, 2
		}
		first, last := unsafe.Pointer(&after[0]), unsafe.Pointer(&before[n-1])
		if faults(first, 0) || faults(last, 1) {
			t.Errorf("%d values: their own bytes fault", n)
		}
		if !faults(first, -1) || !faults(last, 2) {
			t.Errorf("%d values: a byte next to them can be read", n)
		}
	}
}

func TestNothing(t *testing.T) {
	for side, s := range Slices[uint16](t, 0) {
		if len(s) != 0 || cap(s) != 0 {
			t.Errorf("side %d: %d values, room for %d", side, len(s), cap(s))
		}
	}
}
