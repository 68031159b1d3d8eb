package raw

import "sync"

// leases counts who uses a Source. The zero value is usable.
type leases struct {
	mu     sync.Mutex
	n      int
	ended  bool
	unused chan struct{} // closed when n is 0 after the end; nil before that
}

// take takes a lease; after the end it fails.
func (l *leases) take() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return ErrClosed
	}
	l.n++
	return nil
}

func (l *leases) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n--; l.n == 0 && l.ended {
		close(l.unused)
	}
}

// end waits for all leases. It reports whether this was the first call.
func (l *leases) end() bool {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return false
	}
	l.ended, l.unused = true, make(chan struct{})
	if l.n == 0 {
		close(l.unused)
	}
	l.mu.Unlock()
	<-l.unused
	return true
}
