package fill

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/tensor"
)

// Batch is one step of an epoch: its record numbers, the values of these records, and the memory
// that holds the values. One goroutine at a time owns a Batch. The only exception is the first
// batch of a pass, of which several goroutines fill disjoint ranges of places at once. After Seal
// any number of goroutines may read it.
//
// A Batch is reused for many steps: all slices are allocated once, for the largest batch, and cut
// to the length of each step. So a steady epoch allocates nothing.
type Batch struct {
	plan *Plan
	slot int // slot of the Ring; -1 if the memory is the caller's

	epoch *order.Epoch
	step  int

	position int         // position of the first record in the epoch
	run      int         // length of the run of consecutive records that the batch begins with
	all      []int       // room for Plan.Batch record numbers
	indices  []int       // the record numbers of this batch, the front of all
	ends     atomic.Bool // only the first and the last of indices are set: list sets the others
	listing  sync.Mutex
	allMask  []bool // room for Plan.Batch mask values
	mask     []bool // false for padding and replaced records

	views   []tensor.View // one per field
	viewing []bool        // the fields that are views of the Source
	mem     []byte        // the slot's part of the Ring, once it has been asked for
	offsets [][]int64     // one per field; nil if its records have one length
	rows    [][]byte      // values of ragged fields, grown to the largest batch
	own     [][]byte      // the caller's memory instead of the slot's, one slice per field
	made    [][][]byte    // rows of ragged fields that a function made, by field and place
	leased  bool          // the Batch holds a Retain of the Source
}

// NewBatch returns a Batch for a slot of the Ring. With slot -1 the Batch has no slot, and the
// caller provides its memory by SetMemory.
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

// SetMemory makes b write into the caller's memory, one slice per field, instead of the Ring. b
// copies the list of slices, not the bytes: the caller keeps ownership of the memory and must leave
// it alone until the batch is read.
func (b *Batch) SetMemory(own [][]byte) { b.own = append(b.own[:0], own...) }

// Epoch returns the epoch that the batch belongs to.
func (b *Batch) Epoch() *order.Epoch { return b.epoch }

// Step returns the number of the batch in its epoch.
func (b *Batch) Step() int { return b.step }

// Len returns the number of records in the batch.
func (b *Batch) Len() int { return len(b.indices) }

// Mask returns one bool per record: false for a record that pads the epoch or replaces a bad
// record.
func (b *Batch) Mask() []bool { return b.mask }

// Indices returns the record numbers of the batch. Cut makes several batches at once and writes
// only the first and the last number of each, because most loops never ask for the numbers. The
// first call of Indices fills in the numbers between. The mutex makes that safe for several
// readers: after Seal any goroutine may call Indices.
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

// Field returns the values of the named field. An unknown name is a programming error, so that
// Field panics and the caller needs no error check in the training loop.
func (b *Batch) Field(name string) tensor.View {
	if i, is := b.plan.places[name]; is {
		return b.views[i]
	}
	panic("loader: the batch has no field " + name + "; see Options.Fields")
}

// Offsets returns where each record's rows start in a field of variable length. Padded images have
// sizes instead of offsets, although the Batch has room for offsets. Padded instances have offsets
// and sizes.
func (b *Batch) Offsets(name string) []int64 {
	if i, is := b.plan.places[name]; is && b.offsets[i] != nil {
		if padding := b.plan.Fields[i].Padding; padding == nil || padding.Instances {
			return b.offsets[i][:len(b.indices)+1]
		}
	}
	panic("loader: the batch has no field " + name + " of variable length")
}

// Bytes returns how many bytes of the batch are views of the Source, and how many bytes were copied
// or computed.
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

// IsView reports whether every field is a view of the Source, so that Fill has nothing to do.
func (b *Batch) IsView() bool { return !slices.Contains(b.viewing, false) }

// anyView reports whether at least one field is a view. Such a batch must keep its lease of the
// Source until the batch ends.
func (b *Batch) anyView() bool { return slices.Contains(b.viewing, true) }

// Reserve takes the slot's memory from the Ring for the fields that are not views. A batch of views
// only does not ask: the Ring allocates all slots at the first request, and a dataset that is only
// viewed should cost no memory.
func (b *Batch) Reserve() (err error) {
	if b.own == nil && b.mem == nil && !b.IsView() {
		b.mem, err = b.plan.Ring.Slot(b.slot)
	}
	return err
}

// buffer returns the memory for the batch's records of field f. Its capacity is cut to its length,
// so that an append by a caller cannot run into the next field of the slot.
func (b *Batch) buffer(f int) []byte {
	n := len(b.indices) * b.plan.Fields[f].Size
	if b.own != nil {
		return b.own[f][:n:n]
	}
	at := b.plan.Ring.Offset(f)
	return b.mem[at : at+n : at+n]
}

// rowsOf returns how many rows the Source stores for places [lo, hi) of field f: one row per
// record, or, for a field of variable length, the sum of the lengths. Until Seal, offsets holds
// lengths and not yet offsets.
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

// blank clears place i of all fields, as policy Blank asks. Options refuse Blank for fields that
// stay ragged in the batch, so that every field here has one length. A ragged field that a function
// converts to one length gets length 0: the record has no rows.
func (b *Batch) blank(i int) {
	for f := range b.plan.Fields {
		size := b.plan.Fields[f].Size
		clear(b.buffer(f)[i*size : (i+1)*size])
		if b.offsets[f] != nil {
			b.offsets[f][i+1] = 0 // a length, until Seal adds them up
		}
	}
}

// outside returns the place of the first record that is not in the Source, or -1. The batch begins
// with b.run consecutive numbers, so that only the two ends of this run need a check; the numbers
// after the run are checked one by one. Without this check a wrong Sampler would read past the end
// of a mapping.
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

// Release ends the Batch's lease of the Source. It is idempotent, because a batch without views
// releases in Seal, and Clear releases again.
func (b *Batch) Release() {
	if b.leased {
		b.leased = false
		b.plan.Source.Records.Release()
	}
}

// Clear drops what the Batch refers to, so that its memory may be reused for another step. Checked
// builds overwrite the buffers: a slice that a caller kept beyond the batch then shows 0xCC instead
// of plausible values of a later batch.
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

// recycle returns the memory of padded records to the Plan's spare list. padRows has copied these
// records into the padded array by then. Records of other ragged fields keep their memory in b.made
// for the next batch.
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
