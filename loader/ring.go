package loader

import (
	"errors"
	"slices"
	"sync"
)

// pageSize is the alignment of every buffer: the page of most machines, and what direct
// I/O and devices ask for.
const pageSize = 4096

// ring is the memory of all slots, one buffer per slot and field. It is allocated when the
// first buffer is asked for, all at once; for each slot that is added later, by itself.
type ring struct {
	memory  Allocator
	offsets []int // of each field's buffer in its slot
	stride  int   // bytes of a slot

	mu     sync.Mutex
	parts  [][]byte // by slot; nil before memory is asked for, and of a slot that was given back
	block  []byte   // what the first parts are cut from
	cut    int      // how many they are
	vacant []int    // slots that were given back
	rows   [][]byte // of slot i and field f at i*fields+f: what an Allocator gave for rows
}

func newRing(memory Allocator, fields []field, batch int) *ring {
	if memory == nil {
		memory = anonymous{}
	}
	r := &ring{memory: memory, offsets: make([]int, len(fields))}
	for i, f := range fields {
		r.offsets[i] = r.stride
		r.stride += wholePages(batch * f.size)
	}
	return r
}

func wholePages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// extend adds n slots, or as many as the Allocator has room for, and returns their numbers.
func (r *ring) extend(n int) (slots []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range n {
		i := len(r.parts)
		if last := len(r.vacant) - 1; last >= 0 {
			i = r.vacant[last]
		}
		var mem []byte
		if r.block != nil && i >= r.cut {
			var err error
			if mem, err = r.memory.Alloc(r.stride); err != nil { // what there is must do
				break
			}
		}
		r.place(i, mem)
		slots = append(slots, i)
	}
	return slots
}

// place makes i a slot, with its own memory if it has some. The caller holds mu.
func (r *ring) place(i int, mem []byte) {
	if i == len(r.parts) {
		r.parts = append(r.parts, mem)
		r.rows = append(r.rows, make([][]byte, len(r.offsets))...)
		return
	}
	r.vacant = r.vacant[:len(r.vacant)-1]
	if mem != nil {
		r.parts[i] = mem
	}
}

// giveBack ends a slot, which extend may return again, and frees what memory is its own. Where
// that fails, it stays allocated, which harms nobody.
func (r *ring) giveBack(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.rows[i*len(r.offsets) : (i+1)*len(r.offsets)]
	if i >= r.cut {
		own = append(own[:len(own):len(own)], r.parts[i])
		r.parts[i] = nil
	}
	for _, mem := range own {
		if mem != nil {
			_ = r.memory.Free(mem)
		}
	}
	clear(r.rows[i*len(r.offsets) : (i+1)*len(r.offsets)])
	r.vacant = append(r.vacant, i)
}

// slot returns the memory of slot i, where field j begins at offsets[j]. It is nil if no field
// has its place in the ring, as when all are ragged.
func (r *ring) slot(i int) ([]byte, error) {
	if r.stride == 0 {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.block == nil {
		mem, err := r.memory.Alloc(len(r.parts) * r.stride)
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

// grow returns memory for n > 0 bytes of rows of field f in slot i. What it returned before
// for these is freed, if it is too small.
func (r *ring) grow(i, f, n int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := &r.rows[i*len(r.offsets)+f]
	if len(*at) >= n {
		return *at, nil
	}
	mem, err := r.memory.Alloc(wholePages(n))
	if err != nil {
		return nil, err
	}
	old := *at
	*at = mem
	if old != nil {
		err = r.memory.Free(old)
	}
	return mem, err
}

// bytes returns the size of what is allocated.
func (r *ring) bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.block)
	for _, mem := range slices.Concat(r.parts[r.cut:], r.rows) {
		n += len(mem)
	}
	return n
}

// free gives the memory back. No slot may be in use.
func (r *ring) free() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, mem := range slices.Concat(r.rows, r.parts[r.cut:], [][]byte{r.block}) {
		if mem != nil {
			errs = append(errs, r.memory.Free(mem))
		}
	}
	clear(r.rows)
	clear(r.parts)
	r.block, r.cut = nil, 0
	return errors.Join(errs...)
}
