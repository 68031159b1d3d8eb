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
	memory  Memory
	offsets []int // of each field's buffer in its slot
	stride  int   // bytes of a slot

	mu    sync.Mutex
	slots int
	first int      // slots that were there when mem was allocated
	mem   []byte   // of these
	added [][]byte // of each that came later
	rows  [][]byte // of slot i and field f at i*fields+f: what a Memory gave for rows
}

func newRing(memory Memory, fields []field, batch int) *ring {
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

// extend adds n slots, or as many as the Memory has room for, and returns their number.
func (r *ring) extend(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range n {
		if r.mem != nil {
			mem, err := r.memory.Alloc(r.stride)
			if err != nil { // what there is must do
				n = k
				break
			}
			r.added = append(r.added, mem)
		}
		r.slots++
		r.rows = append(r.rows, make([][]byte, len(r.offsets))...)
	}
	return n
}

// slot returns the memory of slot i, where field j begins at offsets[j]. It is nil if no field
// has its place in the ring, as when all are ragged.
func (r *ring) slot(i int) ([]byte, error) {
	if r.stride == 0 {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mem == nil {
		mem, err := r.memory.Alloc(r.slots * r.stride)
		if err != nil {
			return nil, err
		}
		r.mem, r.first = mem, r.slots
	}
	if i >= r.first {
		return r.added[i-r.first], nil
	}
	return r.mem[i*r.stride : (i+1)*r.stride : (i+1)*r.stride], nil
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
	n := len(r.mem) + len(r.added)*r.stride
	for _, rows := range r.rows {
		n += len(rows)
	}
	return n
}

// free gives the memory back. No slot may be in use.
func (r *ring) free() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, mem := range slices.Concat(r.rows, r.added, [][]byte{r.mem}) {
		if mem != nil {
			errs = append(errs, r.memory.Free(mem))
		}
	}
	clear(r.rows)
	r.mem, r.added = nil, nil
	return errors.Join(errs...)
}
