package loader

import (
	"sync"

	"github.com/penstock/penstock/tensor"
)

// pageSize is the alignment of every buffer: the page of most machines, and what direct
// I/O and devices ask for.
const pageSize = 4096

// ring is the memory of all slots, one buffer per slot and field. It is allocated when the
// first buffer is asked for, all at once.
type ring struct {
	slots   int
	offsets []int // of each field's buffer in its slot
	stride  int   // bytes of a slot

	mu  sync.Mutex
	mem []byte
}

func newRing(specs []tensor.Spec, batch, slots int) *ring {
	r := &ring{slots: slots, offsets: make([]int, len(specs))}
	for i, s := range specs {
		r.offsets[i] = r.stride
		r.stride += (batch*s.RecordBytes() + pageSize - 1) &^ (pageSize - 1)
	}
	return r
}

// slot returns the memory of slot i, where field j begins at offsets[j].
func (r *ring) slot(i int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mem == nil {
		mem, err := newMemory(r.slots * r.stride)
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
	return freeMemory(mem)
}
