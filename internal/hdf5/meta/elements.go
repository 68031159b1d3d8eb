package meta

import (
	"sync"
)

// Heap reads elements of variable length; a dataset stores references to them. Its methods may be called from any
// goroutine.
type Heap struct {
	d     *Dataset
	mu    sync.Mutex
	heaps globalHeaps
	held  int64 // bytes of the heaps that are kept
}

// heapBytes limits the heaps of a file that are kept in memory, besides the heap that was read last.
const heapBytes = 16 << 20

// Heap returns the Heap of the elements of a dataset of class Vlen, or with members of it.
func (d *Dataset) Heap() *Heap { return &Heap{d: d, heaps: globalHeaps{}} }

// RefBytes returns the size of a stored reference.
func (h *Heap) RefBytes() int { return 8 + h.d.file.Superblock.OffsetSize }

// Elements returns how many elements a reference counts, and their bytes, size bytes each. The bytes are shared and
// must not be changed. It returns the same errors as Dataset.Value.
func (h *Heap) Elements(ref []byte, size int64) (n int64, b []byte, err error) {
	defer guard(&err)
	s := h.d.file.session(nil)
	s.Left = max(s.Left, maxStructure)
	c := &cursor{Src: s, B: ref}
	count, addr, index := c.U32(), c.Addr(), c.U32()
	switch {
	case c.Err != nil:
		return 0, nil, inPath(c.Err, h.d.Path)
	case count == 0 || addr == 0 || addr == undef:
		return 0, nil, nil
	}
	p, err := h.object(s, addr, index)
	if err != nil {
		return 0, nil, inPath(err, h.d.Path)
	}
	total, ok := product(uint64(count), uint64(size))
	if !ok || total > uint64(len(p)) {
		err := s.ErrorAt(ErrCorrupt, addr, "global heap", "object %d has %d bytes, %d elements of %d need more", index,
			len(p), count, size)
		return 0, nil, inPath(err, h.d.Path)
	}
	return int64(count), p[:total:total], nil
}

// object returns an object of a global heap, from the collections in memory if possible. Neighboring elements mostly
// lie in one collection, so it is kept. When collections take more than heapBytes, all of them are dropped, which is
// simpler than dropping the oldest and costs one more read for each collection that is needed again.
func (h *Heap) object(s *source, addr uint64, index uint32) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := s.Left
	if h.held > heapBytes && h.heaps[addr] == nil {
		clear(h.heaps)
		h.held = 0
	}
	p, err := h.heaps.Object(s, addr, index)
	h.held += before - s.Left
	return p, err
}
