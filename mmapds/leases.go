package mmapds

import (
	"sync"
)

// leases counts who needs the mapping, and lets one caller wait until nobody does.
type leases struct {
	mu     sync.Mutex
	idle   sync.Cond // n became 0
	n      int
	closed bool
}

func (l *leases) init() { l.idle.L = &l.mu }

func (l *leases) take() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.n++
	return nil
}

func (l *leases) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 {
		panic("mmapds: Release without Retain")
	}
	if l.n--; l.n == 0 {
		l.idle.Broadcast()
	}
}

// close waits for the last lease. It reports false if another close came first.
func (l *leases) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	for l.n > 0 {
		l.idle.Wait()
	}
	return true
}
