package feed

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/penstock/penstock/internal/sys/mmap"
)

// page is the size to which areas of an arena are rounded, so that each can be mapped on its own.
// On Windows it is the allocation granularity, which is larger than a page.
var page = mmap.Granularity()

// arena is memory that feed and its client both map. Its file only grows: if it could shrink, a
// client that reads a batch in the part that was cut off would die of a fault. It is the loader's
// Allocator. Any goroutine may use it.
type arena struct {
	memory memory
	views  bool // fields of batches may be views of dataset files, which the client maps itself

	// mu guards areas, by the address of their first byte, and size, which is the size of the file.
	mu    sync.Mutex
	areas map[*byte]area
	size  int64
}

// area is a part of the file with a mapping of its own.
type area struct {
	at int64 // offset in the file
	n  int64
}

// newArena returns an arena over a file. The arena closes the file.
func newArena(m memory) *arena { return &arena{memory: m, areas: make(map[*byte]area)} }

// Alloc returns n > 0 zeroed bytes that start on a page. They are appended to the file.
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

// AllowsViews reports whether fields of batches may be outside of the arena, for the loader.
func (a *arena) AllowsViews() bool { return a.views }

// AllowsView reports whether a field may be b, which is outside of the arena: it must be mapped
// from a file, so that the client can map the same bytes.
func (a *arena) AllowsView(b []byte) bool {
	_, is := mmap.PlaceOf(b)
	return is
}

// Free unmaps memory of Alloc. The file keeps the pages, which the client may still read.
func (a *arena) Free(b []byte) error {
	_, err := a.unmap(b)
	return err
}

// drop is Free for memory that the client does not read any more: its pages are given back to the
// system. The place in the file stays empty.
func (a *arena) drop(b []byte) error {
	part, err := a.unmap(b)
	return errors.Join(err, a.memory.discard(part.at, part.n))
}

// unmap removes the mapping that starts with b, and returns its place in the file.
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

// offset returns the offset in the file of b, which must be memory of Alloc.
func (a *arena) offset(b []byte) int64 {
	at, ok := a.find(b)
	if !ok {
		panic("feed: a batch outside the shared memory")
	}
	return at
}

// find returns the offset of b in the file, or false if b is not memory of the arena. An arena has
// few areas (the loader's slots and the desk's memory), so they are searched one by one.
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

// Close unmaps everything and closes the file. The system frees the memory when the client has
// unmapped it, too.
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

// align is the alignment of fields in a slot's memory: a cache line, which suits every element type
// and vector instruction.
const align = 64

// aligned rounds n up to a multiple of align.
func aligned(n int) int { return (n + align - 1) &^ (align - 1) }
