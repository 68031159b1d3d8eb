package loader

import (
	"sync/atomic"

	"github.com/penstock/penstock/loader/internal/fill"
)

// slot is the place of one batch. It goes round between the free list, a worker, the reorder window and the consumer; the
// one that holds it owns all fields but those that are said to be the scheduler's.
type slot struct {
	index int           // in the ring
	gen   atomic.Uint64 // of the batch that is here; a Batch of another generation is stale
	batch *fill.Batch

	part   *part
	step   int
	tick   int
	opens  bool  // the other workers wait until it is prepared
	inline bool  // the loop makes it
	err    error // why there is no batch

	// Under the scheduler's mu.
	state  slotState
	pieces pieces
	keptAt string // file and line of Keep, in checked builds
}

// slotState is where a slot is on its way.
type slotState int

const (
	slotFree    slotState = iota // in the free list
	slotFilling                  // in the window; a worker makes its batch
	slotDone                     // in the window; the batch is made, or failed
	slotGiven                    // the loop body has the batch
	slotKept                     // and Keep holds it
)

// pieces says how far a batch is that several workers make.
type pieces struct {
	n     int // that the batch was split into
	given int // of those, handed out
	left  int // and not done
	errAt int // first record of the piece that the slot's err is of
}

// clear drops what the slot refers to, so that its memory may be reused.
func (s *slot) clear() {
	s.batch.Clear()
	s.err, s.part, s.inline = nil, nil, false
	s.pieces = pieces{}
}
