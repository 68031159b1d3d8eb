package loadbench

import (
	"errors"
	"slices"

	"github.com/penstock/penstock/loader/cuda"
	"github.com/penstock/penstock/loader/mlock"
)

// pinned is page-locked memory that is kept from one Loader to the next, as PyTorch caches its own:
// locking pages can take longer than an epoch. It is a loader.Allocator. all has everything that
// was allocated, free what no Loader uses.
type pinned struct {
	from interface {
		Alloc(n int) ([]byte, error)
		Free(b []byte) error
		Pinned() bool
	}
	all, free [][]byte
	close     func() error
}

// newPinned returns page-locked memory, of a CUDA device if the machine has one, otherwise of the
// process, or why n bytes cannot be locked. It tries n bytes before anything is measured.
func newPinned(n int) (m *pinned, why string) {
	if dev, err := cuda.Open(0); err == nil {
		return &pinned{from: dev.Allocator(), close: dev.Close}, ""
	}
	locked := &mlock.Memory{}
	b, err := locked.Alloc(n)
	if err != nil {
		return nil, "no page-locked memory: " + err.Error()
	}
	why = locked.Why()
	if !locked.Pinned() && why == "" {
		why = "the system does not lock"
	}
	if err := locked.Free(b); err != nil {
		return nil, "no page-locked memory: " + err.Error()
	}
	if why != "" {
		return nil, "no page-locked memory: " + why
	}
	return &pinned{from: locked, close: func() error { return nil }}, ""
}

// Alloc returns memory that an earlier Loader gave back, or new memory.
func (m *pinned) Alloc(n int) ([]byte, error) {
	if i := slices.IndexFunc(m.free, func(b []byte) bool { return len(b) >= n }); i >= 0 {
		b := m.free[i]
		m.free = slices.Delete(m.free, i, i+1)
		return b[:n], nil
	}
	b, err := m.from.Alloc(n)
	if err == nil {
		m.all = append(m.all, b)
	}
	return b, err
}

// Free keeps b for the next Loader, with its full capacity.
func (m *pinned) Free(b []byte) error {
	m.free = append(m.free, b[:cap(b)])
	return nil
}

// Pinned reports whether the memory is page-locked.
func (m *pinned) Pinned() bool { return m.from.Pinned() }

// release frees all memory. No Loader may use it any more.
func (m *pinned) release() error {
	var errs []error
	for _, b := range m.all {
		errs = append(errs, m.from.Free(b))
	}
	return errors.Join(append(errs, m.close())...)
}
