package feed

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/penstock/penstock/internal/sys/mmap"
)

// page is the size to which areas of an arena are rounded, so that each can be mapped on its own.
var page = mmap.Granularity()

// arena is memory that another process can map too. It only grows, so that a client that maps it never faults. It is
// the loader's Memory. It may be used by several goroutines.
type arena struct {
	memory memory
	views  bool // batches may be views of files, which the client maps itself

	mu    sync.Mutex
	areas map[*byte]area
	size  int64
}

// area is a part of an arena with its own mapping.
type area struct {
	at int64 // in the file
	n  int64
}

// newArena returns an arena over a file, which it closes.
func newArena(m memory) *arena { return &arena{memory: m, areas: make(map[*byte]area)} }

// Alloc returns at least n > 0 zeroed bytes that start on a page, cut to n.
func (a *arena) Alloc(n int) ([]byte, error) {
	whole := (int64(n) + page - 1) &^ (page - 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.memory.extend(a.size, whole); err != nil {
		return nil, fmt.Errorf("allocating %d bytes of shared memory: %w; lower batch_size or prefetch", n, err)
	}
	b, err := mmap.Shared(a.memory.file(), a.size, int(whole))
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes of shared memory: %w; lower batch_size or prefetch", n, err)
	}
	a.areas[unsafe.SliceData(b)] = area{a.size, whole}
	a.size += whole
	return b[:n], nil
}

// AllowsViews reports whether fields of batches may be outside of the arena.
func (a *arena) AllowsViews() bool { return a.views }

// AllowsView reports whether a field may be b, which is outside of the arena.
func (a *arena) AllowsView(b []byte) bool {
	_, is := mmap.PlaceOf(b)
	return is
}

// Free unmaps what Alloc returned. The client, which may still read it, keeps its pages.
func (a *arena) Free(b []byte) error {
	_, err := a.unmap(b)
	return err
}

// drop is Free for memory that the client has given back: its place in the file is not used again.
func (a *arena) drop(b []byte) error {
	part, err := a.unmap(b)
	return errors.Join(err, a.memory.discard(part.at, part.n))
}

func (a *arena) unmap(b []byte) (area, error) {
	first := unsafe.SliceData(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	part, ok := a.areas[first]
	if !ok {
		panic("feed: freeing memory that is none of the arena's")
	}
	delete(a.areas, first)
	return part, mmap.UnmapShared(unsafe.Slice(first, part.n))
}

// offset returns where in the file b is, which must be memory of Alloc.
func (a *arena) offset(b []byte) int64 {
	at, ok := a.find(b)
	if !ok {
		panic("feed: a batch outside the shared memory")
	}
	return at
}

// find returns where in the file b is, and false if it is elsewhere.
func (a *arena) find(b []byte) (int64, bool) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	a.mu.Lock()
	defer a.mu.Unlock()
	for first, part := range a.areas {
		start, n := uintptr(unsafe.Pointer(first)), uintptr(len(b))
		if at >= start && n <= uintptr(part.n) && at-start <= uintptr(part.n)-n {
			return part.at + int64(at-start), true
		}
	}
	return 0, false
}

// bytes returns the size of the file.
func (a *arena) bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size
}

// Close unmaps everything. The memory is gone when the client has unmapped it too.
func (a *arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for first, part := range a.areas {
		errs = append(errs, mmap.UnmapShared(unsafe.Slice(first, part.n)))
	}
	clear(a.areas)
	return errors.Join(append(errs, a.memory.file().Close())...)
}

// align is the alignment of fields in a slot's memory: a cache line.
const align = 64

func aligned(n int) int { return (n + align - 1) &^ (align - 1) }
