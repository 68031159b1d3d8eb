package mirror

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Ranges of the state's file that are locked. They are no bytes of the state: a lock may cover any
// range.
const (
	lockSetup  = 0       // while state and skeleton are made
	lockUsers  = 1 << 10 // + k: held by process k while it lives
	lockBlocks = 1 << 20 // + block: while it is fetched
)

// locks are locks of an open file description (F_OFD_SETLK). They end with the process, whatever ends it, and exclude
// other processes only. Classic POSIX locks would end when any descriptor of the file in this process is closed.
type locks struct{ file *os.File }

// set sets or removes the lock of a range, without waiting.
func (l locks) set(kind int16, from, n int64) error {
	how := unix.Flock_t{Type: kind, Start: from, Len: n}
	return unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, &how)
}

// try locks a range, or returns false if another process holds a part of it.
func (l locks) try(from, n int64) bool { return l.set(unix.F_WRLCK, from, n) == nil }

// free unlocks a range.
func (l locks) free(from, n int64) { _ = l.set(unix.F_UNLCK, from, n) }

// held reports whether another process holds a part of a range. If that cannot be found out, it
// says yes, which keeps data.
func (l locks) held(from, n int64) bool {
	how := unix.Flock_t{Type: unix.F_WRLCK, Start: from, Len: n}
	if err := unix.FcntlFlock(l.file.Fd(), unix.F_OFD_GETLK, &how); err != nil {
		return true
	}
	return how.Type != unix.F_UNLCK
}

// wait locks a range, and tries again while others hold it, up to a limit. OFD locks have no wait
// with a timeout.
func (l locks) wait(from, n int64, limit time.Duration) bool {
	for began, pause := time.Now(), time.Millisecond; !l.try(from, n); pause = min(2*pause, 50*time.Millisecond) {
		if time.Since(began) > limit {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// openState maps the state in a folder, and creates it if it is missing or does not fit. If the
// disk has no room for the state, the state is in the memory of this process, and the error says
// so.
func openState(root *os.Root, blocks, segments int64) (*state, error) {
	f, err := root.OpenFile(stateName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &state{lock: locks{f}, me: -1}
	if !s.lock.wait(lockSetup, 1, setupLimit) {
		f.Close()
		return nil, fmt.Errorf("another process has been setting it up for %v", setupLimit)
	}
	defer s.lock.free(lockSetup, 1)
	full := s.mapFile(f, blocks, segments)
	if full != nil {
		s.memory = make([]byte, stateBytes(blocks, segments)+8)
		s.close = f.Close
		s.begin(blocks, segments)
	}
	s.lay(blocks, segments)
	if full == nil {
		s.enter()
	}
	return s, full
}

// setupLimit is how long a process may take to prepare a mirror before others give up.
const setupLimit = time.Minute

// mapFile maps the file, after it got disk space for all of its bytes: a page that finds no room
// when it is touched would end the process by a signal.
func (s *state) mapFile(f *os.File, blocks, segments int64) error {
	size := stateBytes(blocks, segments)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != size {
		if err := errors.Join(f.Truncate(0), allocate(f, size)); err != nil {
			return err
		}
	}
	s.memory, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	s.close = func() error { return errors.Join(unix.Munmap(s.memory), f.Close()) }
	if !s.fits(blocks, segments) {
		clear(s.memory)
		s.begin(blocks, segments)
	}
	return nil
}

// allocate gives a file its length, with disk space for all of it. On file systems without
// fallocate, it writes zeros.
func allocate(f *os.File, size int64) error {
	err := fallocate(f, 0, 0, size)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	zero := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zero)) {
		if _, err := f.WriteAt(zero[:min(int64(len(zero)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// enter finds a free bit for this process by its lock, and clears what a dead process left under
// the bit.
func (s *state) enter() {
	for k := range maxUsers {
		if s.lock.try(lockUsers+int64(k), 1) {
			s.me = k
			for i := range s.users {
				s.unuse(int64(i))
			}
			return
		}
	}
}

// others reports whether another living process uses a segment. A bit without its lock is of a
// process that has died.
func (s *state) others(segment int64) bool {
	users := atomic.LoadUint64(&s.users[segment])
	for k := range maxUsers {
		if users>>k&1 == 1 && k != s.me && s.lock.held(lockUsers+int64(k), 1) {
			return true
		}
	}
	return false
}

// leave ends all uses by this process.
func (s *state) leave() error {
	for i := range s.users {
		s.unuse(int64(i))
	}
	return s.close() // ends the locks, too
}
