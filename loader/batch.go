package loader

import (
	"fmt"
	"runtime"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/loader/internal/schedule"
	"github.com/penstock/penstock/tensor"
)

// Batch holds one step's records. A Batch is a small value that may be copied freely. It is valid
// in the loop body that receives it, or from Keep until Release; after that time all its methods
// except Release panic. A Batch may be handed to other goroutines while it is valid.
//
// A slot is reused for many batches. gen is the slot's generation when the batch was handed out,
// and every method compares it with the slot's current generation. So a stale Batch is noticed,
// instead of showing the records of a later step.
type Batch struct {
	ld  *Loader
	s   *slot
	gen uint64
}

// The generation of a slot and its kept state share one atomic number, so that Keep, Release and
// the end of the loop body decide by a single compare-and-swap which of them comes first.
// Generations are even; the lowest bit is set while Keep holds the batch.
const (
	keptBit = 1
	nextGen = 2
)

// stale is the message of the panic for a Batch that is used too late. It is a panic and no error,
// because its bytes belong to another step by then: going on would train on wrong data.
const stale = "loader: a Batch is used after its time: it is valid in the loop body that receives it, and longer " +
	"only by Keep, until Release"

// slot returns the batch's slot, and panics if the slot holds another batch by now.
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
// Field returns, and where the last record ends: Len+1 numbers from 0 on, which attention
// kernels call cu_seqlens. Of a field that a Transform made from such records, as Pad does,
// it counts the rows that were stored. The slice is valid for as long as the Batch and must
// not be written to. Offsets panics if the field has no rows of its own lengths.
func (b Batch) Offsets(name string) []int64 { return b.slot().batch.Offsets(name) }

// Indices returns the numbers of the records in the Source. The slice is valid for as long
// as the Batch and must not be written to.
func (b Batch) Indices() []int {
	return b.slot().batch.Indices()
}

// Mask returns one bool per record: whether the record counts. Mask is false for records that fill
// up the last batch of an epoch, so that all ranks have equally many, and for records that OnError
// put in the place of bad records. A sum over the dataset, such as an evaluation, leaves out
// records whose Mask is false. The slice is valid for as long as the Batch and must not be written
// to.
func (b Batch) Mask() []bool { return b.slot().batch.Mask() }

// Len returns the number of records: BatchSize, or fewer in the last batch of an epoch. It
// is the same on all ranks.
func (b Batch) Len() int { return b.slot().batch.Len() }

// Epoch returns the number of the epoch.
func (b Batch) Epoch() int { return b.slot().batch.Epoch().Number }

// Step returns the number of the batch in its epoch, from 0.
func (b Batch) Step() int { return b.slot().batch.Step() }

// Keep makes the batch valid beyond its loop body and its epoch, until Release. Keep must be called
// in the loop body; a second Keep changes nothing. At most Options.Prefetch batches can be kept at
// a time; one more is an error, which wraps ErrKept. Without this limit a loop that keeps every
// batch would wait forever for a free buffer.
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

// Release ends the batch now, kept or not, and returns its slot to the schedule. Any goroutine may
// call Release. Only the first Release of a batch has an effect, since it changes the generation: a
// Release may always be deferred, and a late one cannot free the slot's next batch.
func (b Batch) Release() {
	if b.s != nil && (b.s.gen.CompareAndSwap(b.gen, b.gen+nextGen) ||
		b.s.gen.CompareAndSwap(b.gen|keptBit, b.gen+nextGen)) {
		b.ld.schedule.Free(b.s.number)
	}
}

// leave ends the batch at the end of its loop body, unless the batch is kept. leave of the zero
// Batch does nothing.
func (b Batch) leave() {
	if b.s != nil && b.s.gen.CompareAndSwap(b.gen, b.gen+nextGen) {
		b.ld.schedule.Free(b.s.number)
	}
}
