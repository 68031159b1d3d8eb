package fill

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/tensor"
)

// Batch is the records of one step: which they are, their values, and the memory for these. One goroutine at a
// time fills it, but for ranges of places that several fill at once. When it is sealed any number may read it.
type Batch struct {
	plan *Plan
	slot int // of the Ring; -1 if the memory is the caller's

	epoch *order.Epoch
	step  int

	position int         // in the epoch, of the first record
	run      int         // records from the first on that follow each other in the Source
	all      []int       // room for Plan.Batch record numbers
	indices  []int       // the record numbers of this batch, the front of all
	ends     atomic.Bool // only the first and the last of indices are set: list sets the others
	listing  sync.Mutex
	allMask  []bool // room for as many
	mask     []bool // which records count

	views   []tensor.View // one per field
	viewing []bool        // the fields that are views of the Source
	mem     []byte        // the slot's part of the Ring, once it has been asked for
	offsets [][]int64     // one per field; nil if its records have one length
	rows    [][]byte      // values of ragged fields, grown to the largest batch
	own     [][]byte      // the caller's memory in place of it, one per field
	made    [][][]byte    // rows of ragged fields that a function made, by field and place
	leased  bool          // holds a Retain of the Source
}

// NewBatch returns a Batch for a slot of the Ring, or, if slot is -1, for memory that SetMemory says.
func (p *Plan) NewBatch(slot int) *Batch {
	n, f := p.Batch, len(p.Fields)
	b := &Batch{
		plan: p, slot: slot, all: make([]int, n), allMask: make([]bool, n),
		views: make([]tensor.View, f), viewing: make([]bool, f), offsets: make([][]int64, f), rows: make([][]byte, f),
	}
	for i := range p.Fields {
		if p.Fields[i].In.Ragged || p.Fields[i].Ragged {
			b.offsets[i] = make([]int64, n+1)
		}
		if p.Fields[i].Grown() {
			if b.made == nil {
				b.made = make([][][]byte, f)
			}
			b.made[i] = make([][]byte, n)
		}
	}
	return b
}

// SetMemory has the next batches made in memory of the caller, one slice per field.
func (b *Batch) SetMemory(own [][]byte) { b.own = append(b.own[:0], own...) }

// Epoch returns the epoch that the batch is of.
func (b *Batch) Epoch() *order.Epoch { return b.epoch }

// Step returns the number of the batch in its epoch.
func (b *Batch) Step() int { return b.step }

// Len returns the number of records.
func (b *Batch) Len() int { return len(b.indices) }

// Mask says of each record whether it counts.
func (b *Batch) Mask() []bool { return b.mask }

// Indices returns the numbers of the records.
func (b *Batch) Indices() []int {
	if b.ends.Load() {
		b.listing.Lock()
		defer b.listing.Unlock()
		if b.ends.Load() {
			order.Consecutive(b.indices[0], b.indices)
			b.ends.Store(false)
		}
	}
	return b.indices
}

// Field returns the values of a field.
func (b *Batch) Field(name string) tensor.View {
	if i, is := b.plan.places[name]; is {
		return b.views[i]
	}
	panic("loader: the batch has no field " + name + "; see Options.Fields")
}

// Offsets returns the offsets of a field of variable length.
func (b *Batch) Offsets(name string) []int64 {
	if i, is := b.plan.places[name]; is && b.offsets[i] != nil {
		if padding := b.plan.Fields[i].Padding; padding == nil || padding.Instances {
			return b.offsets[i][:len(b.indices)+1]
		}
	}
	panic("loader: the batch has no field " + name + " of variable length")
}

// Bytes returns how many bytes of the batch are views of the Source, and how many were copied.
func (b *Batch) Bytes() (viewed, copied int64) {
	for f, viewing := range b.viewing {
		if n := int64(len(b.views[f].Bytes())); viewing {
			viewed += n
		} else {
			copied += n
		}
	}
	return viewed, copied
}

// IsView reports whether nothing is left to fill after View.
func (b *Batch) IsView() bool { return !slices.Contains(b.viewing, false) }

func (b *Batch) anyView() bool { return slices.Contains(b.viewing, true) }

// Reserve makes memory for the fields that are not views.
func (b *Batch) Reserve() (err error) {
	if b.own == nil && b.mem == nil && !b.IsView() {
		b.mem, err = b.plan.Ring.Slot(b.slot)
	}
	return err
}

// buffer returns the memory for the batch's records of field f.
func (b *Batch) buffer(f int) []byte {
	n := len(b.indices) * b.plan.Fields[f].Size
	if b.own != nil {
		return b.own[f][:n:n]
	}
	at := b.plan.Ring.Offset(f)
	return b.mem[at : at+n : at+n]
}

// rowsOf returns how many rows the Source has of places [lo, hi) of field f: one a record, or of
// variable length as many as offsets says, which are lengths until Seal.
func (b *Batch) rowsOf(f, lo, hi int) int64 {
	if !b.plan.Fields[f].In.Ragged {
		return int64(hi - lo)
	}
	rows := int64(0)
	for _, n := range b.offsets[f][lo+1 : hi+1] {
		rows += n
	}
	return rows
}

// blank clears place i of all fields, each of which has one length. A record of variable length that a function would
// have converted has no rows.
func (b *Batch) blank(i int) {
	for f := range b.plan.Fields {
		size := b.plan.Fields[f].Size
		clear(b.buffer(f)[i*size : (i+1)*size])
		if b.offsets[f] != nil {
			b.offsets[f][i+1] = 0 // a length, until Seal adds them up
		}
	}
}

// outside returns the place of the first record that is not in the Source, or -1. Of the run
// that the batch begins with only the ends are looked at.
func (b *Batch) outside() int {
	n, first, last := b.plan.Source.Records.Len(), b.indices[0], b.indices[b.run-1]
	switch {
	case uint(first) >= uint(n):
		return 0
	case uint(last) >= uint(n):
		return n - first
	}
	if i := order.Outside(b.indices[b.run:], n); i >= 0 {
		return b.run + i
	}
	return -1
}

// Release ends the Batch's hold on the Source.
func (b *Batch) Release() {
	if b.leased {
		b.leased = false
		b.plan.Source.Records.Release()
	}
}

// Clear drops what the Batch refers to, so that its memory may be reused.
func (b *Batch) Clear() {
	b.Release()
	clear(b.views)
	clear(b.viewing)
	b.epoch = nil
	b.ends.Store(false)
	if invariants.Enabled {
		invariants.Poison(b.mem)
		for _, rows := range b.rows {
			invariants.Poison(rows)
		}
	}
}

// recycle gives back the memory of records that were padded.
func (b *Batch) recycle() {
	for f, records := range b.made {
		if b.plan.Fields[f].Padding == nil {
			continue
		}
		for i, record := range records {
			b.plan.spare.put(record)
			records[i] = nil
		}
	}
}
