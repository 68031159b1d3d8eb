package loader

import (
	"sync/atomic"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/tensor"
)

// slot is the place of one batch: its views, its record numbers and its buffers. It goes
// round between the free list, a worker, the reorder window and the consumer; the one that holds
// it owns all fields but those that are said to be the scheduler's.
type slot struct {
	ld    *Loader
	index int           // in the ring
	gen   atomic.Uint64 // of the batch that is here; a Batch of another generation is stale

	part   *part
	step   int
	tick   int
	opens  bool // the other workers wait until it is prepared
	inline bool // the loop makes it
	recordList
	values
	leased bool  // holds a Retain of the Source
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

// recordList is which records a batch has.
type recordList struct {
	position int         // in the epoch, of the first record
	run      int         // records from the first on that follow each other in the Source
	all      []int       // room for BatchSize record numbers
	indices  []int       // those of this batch, the front of all
	ends     atomic.Bool // of indices, only the first and the last are there: list sets the others
	allMask  []bool      // room for as many
	mask     []bool      // which records count
}

// list sets all record numbers of a batch that is one run.
func (s *slot) list() {
	if !s.ends.Load() {
		return
	}
	s.ld.mu.Lock()
	defer s.ld.mu.Unlock()
	if s.ends.Load() {
		consecutive(s.indices[0], s.indices)
		s.ends.Store(false)
	}
}

// values is what a batch has of them, and the memory for it.
type values struct {
	views   []tensor.View // one per field
	viewing []bool        // the fields that are views of the Source
	mem     []byte        // the slot's part of the ring, once it has been asked for
	offsets [][]int64     // one per field; nil if its records have one length
	rows    [][]byte      // values of ragged fields, grown to the largest batch
	own     [][]byte      // the caller's memory in place of it, one per field
}

func newSlot(ld *Loader, index int) *slot {
	b, f := ld.opts.BatchSize, len(ld.fields)
	s := &slot{
		ld: ld, index: index,
		recordList: recordList{all: make([]int, b), allMask: make([]bool, b)},
		values:     values{views: make([]tensor.View, f), viewing: make([]bool, f), offsets: make([][]int64, f), rows: make([][]byte, f)},
	}
	for i := range ld.fields {
		if ld.fields[i].in.Ragged {
			s.offsets[i] = make([]int64, b+1)
		}
	}
	return s
}

// field returns the values of a field.
func (s *slot) field(name string) tensor.View {
	for i := range s.ld.fields {
		if s.ld.fields[i].out.Name == name {
			return s.views[i]
		}
	}
	panic("loader: the batch has no field " + name + "; see Options.Fields")
}

// offsetsOf returns the offsets of a field.
func (s *slot) offsetsOf(name string) []int64 {
	for i := range s.ld.fields {
		if s.ld.fields[i].out.Name == name && s.offsets[i] != nil {
			return s.offsets[i][:len(s.indices)+1]
		}
	}
	panic("loader: the batch has no field " + name + " of variable length")
}

// room makes memory for the fields that are not views.
func (s *slot) room() (err error) {
	if s.own == nil && s.mem == nil && !s.viewOnly() {
		s.mem, err = s.ld.ring.Slot(s.index)
	}
	return err
}

// buffer returns the memory for the batch's records of field f.
func (s *slot) buffer(f int) []byte {
	n := len(s.indices) * s.ld.fields[f].size
	if s.own != nil {
		return s.own[f][:n:n]
	}
	at := s.ld.ring.Offset(f)
	return s.mem[at : at+n : at+n]
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
	clear(s.viewing)
	s.err, s.part, s.inline = nil, nil, false
	s.ends.Store(false)
	s.pieces = pieces{}
	if invariants.Enabled {
		invariants.Poison(s.mem)
		for _, rows := range s.rows {
			invariants.Poison(rows)
		}
	}
}
