package raw

import "sync"

// leases counts the users of a Source, so that Close does not unmap memory that is being read. The zero value is
// usable.
type leases struct {
	mu     sync.Mutex
	n      int
	ended  bool
	unused chan struct{} // made by end, and closed when n is 0 after that
}

// take takes a lease; after end it returns ErrClosed.
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

// end refuses further leases and waits until all are given back. It returns false if it was called before.
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
