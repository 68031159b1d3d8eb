package loader

import (
	"sync/atomic"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/tensor"
)

// slot is the place of one batch: its views, its record numbers and its buffers. It goes
// round between the free list, a worker, the reorder window and the consumer; whoever has
// it owns all fields but those that are said to be the Loader's.
type slot struct {
	ld    *Loader
	index int           // in the ring
	gen   atomic.Uint64 // counts the batches that were here; a Batch of another generation is stale

	step    int
	all     []int         // room for BatchSize record numbers
	indices []int         // those of this batch, the front of all
	views   []tensor.View // one per field
	mem     []byte        // the slot's part of the ring, once it has been asked for
	leased  bool          // holds a Retain of the Source
	viewed  int64         // bytes that are views of the Source
	copied  int64         // bytes that were gathered into mem
	err     error         // why there is no batch

	// Under Loader.mu.
	done   bool   // filled, or failed
	kept   bool   // by Keep
	keptAt string // file and line of Keep, in checked builds
}

func newSlot(ld *Loader, index int) *slot {
	return &slot{ld: ld, index: index, all: make([]int, ld.opts.BatchSize), views: make([]tensor.View, len(ld.specs))}
}

// buffer returns the memory for n records of field f.
func (s *slot) buffer(f, n int) ([]byte, error) {
	if s.mem == nil {
		mem, err := s.ld.ring.slot(s.index)
		if err != nil {
			return nil, err
		}
		s.mem = mem
	}
	at := s.ld.ring.offsets[f]
	end := at + n*s.ld.bytes[f]
	return s.mem[at:end:end], nil
}

// unlease ends the slot's hold on the Source.
func (s *slot) unlease() {
	if s.leased {
		s.leased = false
		s.ld.src.Release()
	}
}

// clear drops what the slot refers to, so that its memory may be reused.
func (s *slot) clear() {
	s.unlease()
	clear(s.views)
	s.err = nil
	if invariants.Enabled {
		invariants.Poison(s.mem)
	}
}
