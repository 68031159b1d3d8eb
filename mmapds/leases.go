package mmapds

import (
	"sync"
	"sync/atomic"
)

// leases counts the users of the mapping, and lets Close wait until there are none. take adds first
// and checks closed afterwards: in the other order Close could see no lease, and unmap, between the
// check and the addition. Only Close and the last drop after it use the mutex.
type leases struct {
	n      atomic.Int64
	closed atomic.Bool
	mu     sync.Mutex
	idle   sync.Cond // closed, and n became 0
}

func (l *leases) init() { l.idle.L = &l.mu }

// take adds a lease, or returns ErrClosed.
func (l *leases) take() error {
	l.n.Add(1)
	if l.closed.Load() {
		l.drop()
		return ErrClosed
	}
	return nil
}

// drop removes a lease, and wakes close if that was the last. The lock is needed, since close could
// otherwise miss the signal between its check and its wait.
func (l *leases) drop() {
	left := l.n.Add(-1)
	if left < 0 {
		l.n.Add(1)
		panic("mmapds: Release without Retain")
	}
	if left == 0 && l.closed.Load() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle.Broadcast()
	}
}

// close waits for the last lease. It returns false if another close came first.
func (l *leases) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Swap(true) {
		return false
	}
	for l.n.Load() > 0 {
		l.idle.Wait()
	}
	return true
}
