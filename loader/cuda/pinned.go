package cuda

import (
	"cmp"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"sync"
	"unsafe"
)

// Pinned is a loader.Allocator of page-locked memory that all devices can read directly
// while the CPU does other work: the Loader gathers its batches into it, and a
// Prefetcher copies them from there. It is not limited by RLIMIT_MEMLOCK.
//
//	ld, err := loader.New(ds, loader.Options{BatchSize: 256, Allocator: dev.Allocator()})
type Pinned struct{ dev *Device }

// Allocator returns page-locked memory for loader.Options.Allocator. The Loader must be closed before the
// Device is.
func (d *Device) Allocator() *Pinned { return &Pinned{d} }

// Pinned returns true: where memory cannot be page-locked, Alloc fails.
func (*Pinned) Pinned() bool { return true }

// Alloc returns n > 0 bytes: memory that was freed before, or new memory from cuMemHostAlloc. New
// memory is up to an eighth larger than n, so that it serves again where lengths vary.
func (m *Pinned) Alloc(n int) ([]byte, error) {
	if b := m.dev.takeIdle(n); b != nil {
		return b, nil
	}
	step := max(os.Getpagesize(), 1<<bits.Len(uint(n))>>4)
	b, err := m.dev.pin((n + step - 1) / step * step)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// Free keeps memory for a later Alloc, of any Loader, until the Device is closed: freeing
// page-locked memory in the middle of a run would wait for the device. No copy from the memory may
// be under way.
func (m *Pinned) Free(b []byte) error {
	b = b[:cap(b)]
	if m.dev.keepIdle(b) {
		return nil
	}
	return m.dev.unpin(b)
}

// keepIdle keeps b until Close, and returns false if the device is closed already.
func (d *Device) keepIdle(b []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.idle = append(d.idle, b)
	}
	return !d.closed
}

// takeIdle returns n bytes of the smallest idle memory that is large enough and at most half
// unused; nil if no idle memory fits.
func (d *Device) takeIdle(n int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	best := -1
	for i, b := range d.idle {
		if len(b) >= n && len(b)/2 <= max(n, os.Getpagesize()) && (best < 0 || len(b) < len(d.idle[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b := d.idle[best]
	d.idle = slices.Delete(d.idle, best, best+1)
	return b[:n]
}

// pin returns page-locked memory. The memory keeps the device open.
func (d *Device) pin(n int) ([]byte, error) {
	if err := d.retain(); err != nil {
		return nil, err
	}
	var p unsafe.Pointer
	err := d.do(fmt.Sprintf("cuMemHostAlloc of %d bytes", n), func() Result {
		return d.drv.MemHostAlloc(&p, uintptr(n), hostAllocPortable)
	})
	if err != nil {
		_ = d.drop() // the error that counts is why there is no memory
		return nil, err
	}
	b := unsafe.Slice((*byte)(p), n)
	locked.add(b)
	return b, nil
}

// unpin frees memory of pin.
func (d *Device) unpin(b []byte) error {
	locked.remove(b)
	err := d.free("cuMemFreeHost", func() Result { return d.drv.MemFreeHost(unsafe.Pointer(unsafe.SliceData(b))) })
	if e := d.drop(); err == nil {
		err = e
	}
	return err
}

// locked is all memory that this package has page-locked for this process's devices. A copy from
// other memory would not be asynchronous, so that every source is looked up here.
var locked ranges

// ranges is a set of memory ranges that do not overlap.
type ranges struct {
	mu    sync.Mutex
	list  []memoryRange // by start
	bytes int
}

type memoryRange struct{ start, end uintptr }

func rangeOf(b []byte) memoryRange {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return memoryRange{start, start + uintptr(len(b))}
}

// atLocked returns the index of the range that begins at start, or where such a range belongs.
func (r *ranges) atLocked(start uintptr) (int, bool) {
	return slices.BinarySearchFunc(r.list, start, func(m memoryRange, s uintptr) int { return cmp.Compare(m.start, s) })
}

func (r *ranges) add(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := rangeOf(b)
	i, _ := r.atLocked(m.start)
	r.list = slices.Insert(r.list, i, m)
	r.bytes += len(b)
}

func (r *ranges) remove(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, found := r.atLocked(rangeOf(b).start); found {
		r.list = slices.Delete(r.list, i, i+1)
		r.bytes -= len(b)
	}
}

// holds reports whether b lies in one range.
func (r *ranges) holds(b []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := rangeOf(b)
	i, found := r.atLocked(m.start)
	if !found {
		i--
	}
	return i >= 0 && r.list[i].start <= m.start && m.end <= r.list[i].end
}

// total returns the bytes of all ranges.
func (r *ranges) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
