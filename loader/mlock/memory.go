// Package mlock has an Allocator of the loader whose memory is page-locked by the system call mlock.
package mlock

import (
	"sync"

	"github.com/penstock/penstock/loader/internal/memory"
)

// Memory is a loader.Allocator of the process that is page-locked by mlock, so that no batch is ever
// paged out: for training on the CPU. A device cannot read it directly; for
// that, use the Allocator of package cuda's Device. The zero value is ready to use, by one
// Loader.
//
// If the system refuses to lock, as RLIMIT_MEMLOCK is often 8 MiB, the memory is ordinary:
// Pinned is then false, and Why, also in Stats.Unpinned, states what to do.
type Memory struct {
	// Views leaves batches of consecutive records views of the dataset, as they are
	// without an Allocator. Views are not page-locked.
	Views bool

	pages memory.Pages
	mu    sync.Mutex
	why   string
	n     int // allocations that are locked
}

// Alloc returns n > 0 bytes that start on a page.
func (m *Memory) Alloc(n int) ([]byte, error) {
	b, err := m.pages.Alloc(n)
	if err != nil {
		return nil, err
	}
	why := memory.Lock(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if why == "" {
		m.n++
	} else {
		m.why = why
	}
	return b, nil
}

// Free gives back what Alloc returned.
func (m *Memory) Free(b []byte) error {
	m.mu.Lock()
	m.n = max(0, m.n-1)
	m.mu.Unlock()
	return m.pages.Free(b)
}

// Pinned reports whether memory was allocated, and all of it is page-locked.
func (m *Memory) Pinned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n > 0 && m.why == ""
}

// Why returns why memory is not page-locked, "" if it is or was not yet asked for.
func (m *Memory) Why() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// AllowsViews returns Views.
func (m *Memory) AllowsViews() bool { return m.Views }
