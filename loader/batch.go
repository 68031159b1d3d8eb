package loader

import (
	"fmt"
	"runtime"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/loader/internal/schedule"
	"github.com/penstock/penstock/tensor"
)

// Batch is one step's records: a small value that may be copied freely. It is valid in the
// loop body that receives it, or from Keep until Release; all its methods but Release
// panic after that time. A Batch may be handed to other goroutines while it is valid.
type Batch struct {
	ld  *Loader
	s   *slot
	gen uint64
}

// A generation is even. The bit below it says that Keep holds the batch.
const (
	keptBit = 1
	nextGen = 2
)

const stale = "loader: a Batch is used after its time: it is valid in the loop body that receives it, and longer " +
	"only by Keep, until Release"

// slot returns the batch's slot, and panics if the slot was reused.
func (b Batch) slot() *slot {
	if b.s == nil || b.s.gen.Load()&^keptBit != b.gen {
		panic(stale)
	}
	return b.s
}

// Field returns the values of a field, one record after the other in the order of Indices.
// The first axis is the batch's: its length is Len. The bytes are valid for as long as the
// Batch, and may be read-only memory: they must not be written to. Field panics if the
// batch has no such field.
func (b Batch) Field(name string) tensor.View { return b.slot().batch.Field(name) }

// Offsets returns where the records of a field of variable length start among the rows that
// Field returns, and where the last one ends: Len+1 numbers from 0 on, which attention
// kernels call cu_seqlens. Of a field that a Transform made from such records, as Pad does,
// it counts the rows that were stored. The slice is valid for as long as the Batch and must
// not be written to. Offsets panics if the field has no rows of its own lengths.
func (b Batch) Offsets(name string) []int64 { return b.slot().batch.Offsets(name) }

// Indices returns the numbers of the records in the Source. The slice is valid for as long
// as the Batch and must not be written to.
func (b Batch) Indices() []int {
	return b.slot().batch.Indices()
}

// Mask says of each record whether it counts. False are records that fill up the last
// batch of an epoch so that all ranks have as many, and those that OnError put in the place of
// bad records. A sum over the dataset, as of an evaluation, leaves these out. The
// slice is valid for as long as the Batch and must not be written to.
func (b Batch) Mask() []bool { return b.slot().batch.Mask() }

// Len returns the number of records: BatchSize, or fewer in the last batch of an epoch. It
// is the same on all ranks.
func (b Batch) Len() int { return b.slot().batch.Len() }

// Epoch returns the number of the epoch.
func (b Batch) Epoch() int { return b.slot().batch.Epoch().Number }

// Step returns the number of the batch in its epoch, from 0.
func (b Batch) Step() int { return b.slot().batch.Step() }

// Keep makes the batch valid beyond its loop body and its epoch, until Release. It must be
// called in the loop body; a second Keep changes nothing. At most Options.Prefetch batches can
// be kept at a time: one more is an error, which wraps ErrKept.
func (b Batch) Keep() error {
	s, ld := b.slot(), b.ld
	isKept := func() bool { return s.gen.Load() == b.gen|keptBit }
	if isKept() {
		return nil
	}
	switch ld.schedule.Keep(s.number, func() bool { return s.gen.CompareAndSwap(b.gen, b.gen|keptBit) }) {
	case schedule.Held:
		if invariants.Enabled {
			_, file, line, _ := runtime.Caller(1)
			at := fmt.Sprintf("%s:%d", file, line)
			s.keptAt.Store(&at)
		}
		return nil
	case schedule.TooMany:
		if s.gen.Load() == b.gen {
			return fmt.Errorf("loader: batch %d: Keep: %w%s", s.batch.Step(), ErrKept, ld.slots.keptAt(ld.schedule.Kept()))
		}
	}
	if isKept() { // by another goroutine meanwhile
		return nil
	}
	panic(stale)
}

// Release ends the batch now, kept or not, and gives its memory back. It may be called by
// any goroutine. Only the first Release of a batch has an effect, so that one may always be
// deferred.
func (b Batch) Release() {
	if b.s != nil && (b.s.gen.CompareAndSwap(b.gen, b.gen+nextGen) ||
		b.s.gen.CompareAndSwap(b.gen|keptBit, b.gen+nextGen)) {
		b.ld.schedule.Free(b.s.number)
	}
}

// leave ends the batch unless it is kept. The zero Batch has ended.
func (b Batch) leave() {
	if b.s != nil && b.s.gen.CompareAndSwap(b.gen, b.gen+nextGen) {
		b.ld.schedule.Free(b.s.number)
	}
}
