package loader

import "sync"

// pageSize is the alignment of every buffer: the page of most machines, and what direct
// I/O and devices ask for.
const pageSize = 4096

// ring is the memory of all slots, one buffer per slot and field. It is allocated when the
// first buffer is asked for, all at once.
type ring struct {
	memory  Memory
	slots   int
	offsets []int // of each field's buffer in its slot
	stride  int   // bytes of a slot

	mu  sync.Mutex
	mem []byte
}

func newRing(memory Memory, fields []field, batch, slots int) *ring {
	if memory == nil {
		memory = anonymous{}
	}
	r := &ring{memory: memory, slots: slots, offsets: make([]int, len(fields))}
	for i, f := range fields {
		r.offsets[i] = r.stride
		r.stride += wholePages(batch * f.size)
	}
	return r
}

func wholePages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

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
		r.mem = mem
	}
	return r.mem[i*r.stride : (i+1)*r.stride : (i+1)*r.stride], nil
}

// bytes returns the size of what is allocated.
func (r *ring) bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mem)
}

// free gives the memory back. No slot may be in use.
func (r *ring) free() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mem == nil {
		return nil
	}
	mem := r.mem
	r.mem = nil
	return r.memory.Free(mem)
}
