package mlock_test

import (
	"testing"
	"unsafe"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/mlock"
)

var _ loader.Allocator = (*mlock.Memory)(nil)

func TestLocked(t *testing.T) {
	var m mlock.Memory
	b, err := m.Alloc(1 << 16)
	require.NoError(t, err)
	if uintptr(unsafe.Pointer(&b[0]))%4096 != 0 || len(b) != 1<<16 {
		t.Errorf("%d bytes at %p", len(b), b)
	}
	for i := range b {
		b[i] = byte(i)
	}
	if m.Pinned() == (m.Why() != "") {
		t.Errorf("pinned: %v, why: %q", m.Pinned(), m.Why())
	}
	if err := m.Free(b); err != nil || m.Pinned() {
		t.Errorf("freed: %v, pinned: %v", err, m.Pinned())
	}
}
