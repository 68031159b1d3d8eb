package loader

import (
	"errors"
	"slices"
	"sync"
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
		s.mem, err = s.ld.ring.slot(s.index)
	}
	return err
}

// buffer returns the memory for the batch's records of field f.
func (s *slot) buffer(f int) []byte {
	n := len(s.indices) * s.ld.fields[f].size
	if s.own != nil {
		return s.own[f][:n:n]
	}
	at := s.ld.ring.offsets[f]
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
		r.placeLocked(i, mem)
		slots = append(slots, i)
	}
	return slots
}

// placeLocked makes i a slot, with its own memory if it has some.
func (r *ring) placeLocked(i int, mem []byte) {
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

// grow returns memory for n > 0 bytes of rows of field f in slot i. Memory that it returned before
// for these is freed if it is too small.
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
