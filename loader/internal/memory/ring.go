// Package memory holds the buffers of a Loader's batches: a ring with one slot per batch that exists at a
// time, and its pages. It knows slot numbers, field numbers and sizes.
package memory

import (
	"errors"
	"slices"
	"sync"
)

// Allocator provides the memory of a Ring: loader.Allocator documents its methods.
type Allocator interface {
	Alloc(n int) ([]byte, error)
	Free(b []byte) error
}

// Pages is the Allocator of the process's own memory, which starts on pages.
type Pages struct{}

// Alloc returns n > 0 zeroed bytes that start on a page.
func (Pages) Alloc(n int) ([]byte, error) { return newPages(n) }

// Free unmaps what Alloc returned. A slice that is still in use would fault.
func (Pages) Free(b []byte) error { return freePages(b) }

// PageSize is the alignment of every buffer: the page of most machines, and what direct
// I/O and devices ask for.
const PageSize = 4096

// Ring is the memory of all slots, one buffer per slot and field. Nothing is allocated before the
// first buffer is requested, because a dataset whose batches are all views needs no buffers. Then
// all slots are cut from one block: a device registers or pins one range instead of many. Slots
// added later are allocated separately, since the block is in use and cannot move.
type Ring struct {
	from    Allocator
	offsets []int // where each field's buffer begins in a slot
	stride  int   // bytes of a slot

	mu    sync.Mutex
	parts [][]byte // by slot; nil before memory is asked for
	block []byte   // one allocation for the first slots
	cut   int      // number of slots cut from block
	rows  [][]byte // memory of Allocator for rows: slot i, field f at i*fields+f
}

// NewRing returns a Ring without slots or memory, for fields whose values in a batch have the given
// sizes at most; the size is 0 for a field whose records have lengths of their own. If from is nil, the memory
// comes from Pages.
func NewRing(from Allocator, sizes []int) *Ring {
	if from == nil {
		from = Pages{}
	}
	r := &Ring{from: from, offsets: make([]int, len(sizes))}
	for i, size := range sizes {
		r.offsets[i] = r.stride
		r.stride += WholePages(size)
	}
	return r
}

// Stride returns the bytes of one slot.
func (r *Ring) Stride() int { return r.stride }

// Offset returns where the buffer of field f begins in a slot.
func (r *Ring) Offset(f int) int { return r.offsets[f] }

// WholePages returns n rounded up to whole pages.
func WholePages(n int) int { return (n + PageSize - 1) &^ (PageSize - 1) }

// Extend adds n slots, or as many as the Allocator has room for, and returns the number added. New
// slots are numbered after the existing ones. A shortage is no error: the loader keeps working with
// the slots that it has.
func (r *Ring) Extend(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range n {
		var mem []byte
		if r.block != nil {
			var err error
			if mem, err = r.from.Alloc(r.stride); err != nil { // what there is must do
				return i
			}
		}
		r.parts = append(r.parts, mem)
		r.rows = append(r.rows, make([][]byte, len(r.offsets))...)
	}
	return n
}

// Slot returns the memory of slot i, where field j begins at offsets[j]. The memory is nil if no
// field has a fixed size, as when all fields are ragged.
func (r *Ring) Slot(i int) ([]byte, error) {
	if r.stride == 0 {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.block == nil {
		mem, err := r.from.Alloc(len(r.parts) * r.stride)
		if err != nil {
			return nil, err
		}
		r.block, r.cut = mem, len(r.parts)
		for k := range r.parts {
			r.parts[k] = mem[k*r.stride : (k+1)*r.stride : (k+1)*r.stride]
		}
	}
	return r.parts[i], nil
}

// Grow returns memory for n > 0 bytes of rows of field f in slot i. The previous memory for these
// rows is kept if it is large enough, and freed otherwise. The new memory is allocated before the
// old is freed: a failed allocation then leaves the ring as it was.
func (r *Ring) Grow(i, f, n int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := &r.rows[i*len(r.offsets)+f]
	if len(*at) >= n {
		return *at, nil
	}
	mem, err := r.from.Alloc(WholePages(n))
	if err != nil {
		return nil, err
	}
	old := *at
	*at = mem
	if old != nil {
		err = r.from.Free(old)
	}
	return mem, err
}

// Bytes returns the bytes that the ring has allocated.
func (r *Ring) Bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.block)
	for _, mem := range slices.Concat(r.parts[r.cut:], r.rows) {
		n += len(mem)
	}
	return n
}

// Free returns all memory to the Allocator. No slot may be in use. The ring may be used again
// afterwards, and allocates anew.
func (r *Ring) Free() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, mem := range slices.Concat(r.rows, r.parts[r.cut:], [][]byte{r.block}) {
		if mem != nil {
			errs = append(errs, r.from.Free(mem))
		}
	}
	clear(r.rows)
	clear(r.parts)
	r.block, r.cut = nil, 0
	return errors.Join(errs...)
}
