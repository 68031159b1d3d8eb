package cuda

import "sync"

// Locked is a loader.Memory of the process that is page-locked by mlock, so that no batch
// is ever paged out: for training that stays on the processor. A device cannot read it by
// itself; for that there is Device.Memory. The zero value is ready to use.
//
// Where the system refuses to lock, as RLIMIT_MEMLOCK is often 8 MiB, the memory is
// ordinary: Pinned is then false, and Why says what to do.
type Locked struct {
	mu  sync.Mutex
	why string
	on  bool
}

// Alloc returns n > 0 bytes that start on a page.
func (m *Locked) Alloc(n int) ([]byte, error) {
	b, why, err := lockedMemory(n)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.why, m.on = why, err == nil && why == ""
	return b, err
}

// Free gives back what Alloc returned.
func (m *Locked) Free(b []byte) error {
	m.mu.Lock()
	m.on = false
	m.mu.Unlock()
	return freeLocked(b)
}

// Pinned reports whether the memory that Alloc returned is page-locked.
func (m *Locked) Pinned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

// Why returns why the memory is not page-locked, "" if it is or was not yet asked for.
func (m *Locked) Why() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}
