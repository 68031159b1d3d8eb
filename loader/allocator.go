package loader

import (
	"sync"

	"github.com/penstock/penstock/loader/internal/memory"
)

// Allocator is where the buffers of batches come from: page-locked memory, memory that other
// processes share, or a framework's own. With an Allocator, every batch is copied there and none
// is a view of the Source, unless it has the method AllowsViews() bool and that returns true.
//
// An Allocator that is page-locked says so by Pinned() bool, and where it should be and is not, why
// by Why() string: Stats has both.
type Allocator interface {
	// Alloc returns n > 0 bytes that start on a page. It is called once for all buffers, when
	// the first batch is made; for each that MaxPrefetch lets the Loader add, where an error
	// leaves it at those it has; and by any goroutine for the rows of a field of variable
	// length whenever those of a batch are more than its buffer holds.
	Alloc(n int) ([]byte, error)

	// Free gives back what Alloc returned: when the Loader is closed and no batch is kept, when
	// larger memory was allocated in its place, or, of what MaxPrefetch let the Loader add, when it
	// turned out to be too much; by any goroutine.
	Free(b []byte) error
}

// allowsViews reports whether batches may be views of the Source.
func allowsViews(m Allocator) bool {
	v, ok := m.(interface{ AllowsViews() bool })
	return m == nil || ok && v.AllowsViews()
}

// MlockedMemory is an Allocator of the process that is page-locked by mlock, so that no batch is ever
// paged out: for training that stays on the processor. A device cannot read it by itself; for
// that there is the Allocator of package cuda's Device. The zero value is ready to use, by one
// Loader.
//
// Where the system refuses to lock, as RLIMIT_MEMLOCK is often 8 MiB, the memory is
// ordinary: Pinned is then false, and Why, which is Stats.Unpinned too, says what to do.
type MlockedMemory struct {
	// Views leaves batches whose records follow each other in the dataset views of it, as
	// they are without an Allocator. They are not locked.
	Views bool

	pages memory.Pages
	mu    sync.Mutex
	why   string
	n     int // allocations that are locked
}

// Alloc returns n > 0 bytes that start on a page.
func (m *MlockedMemory) Alloc(n int) ([]byte, error) {
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
func (m *MlockedMemory) Free(b []byte) error {
	m.mu.Lock()
	m.n = max(0, m.n-1)
	m.mu.Unlock()
	return m.pages.Free(b)
}

// Pinned reports whether there is memory, and all of it is page-locked.
func (m *MlockedMemory) Pinned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n > 0 && m.why == ""
}

// Why returns why memory is not page-locked, "" if it is or was not yet asked for.
func (m *MlockedMemory) Why() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// AllowsViews returns Views.
func (m *MlockedMemory) AllowsViews() bool { return m.Views }
