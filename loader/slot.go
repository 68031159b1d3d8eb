package loader

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/memory"
)

// slot is the place of one batch. It goes round between the schedule, a worker and the consumer;
// whoever holds the slot owns its batch. gen is the exception: consumers of stale batches may read
// it at any time.
type slot struct {
	number int           // in the ring and the schedule
	gen    atomic.Uint64 // of the batch that is here; a Batch of another generation is stale
	batch  *fill.Batch
	keptAt atomic.Pointer[string] // file and line of Keep, in checked builds
}

// slots are the places of all batches, for the schedule. The list is replaced as a whole when slots
// are added, so that at reads it without a lock for every batch.
type slots struct {
	plan *fill.Plan
	ring *memory.Ring
	list atomic.Pointer[[]*slot] // by number
}

// at returns the slot with a number.
func (t *slots) at(number int) *slot { return (*t.list.Load())[number] }

// Extend adds n slots, or as many as there is memory for, and returns the number added. Calls must
// not overlap: the schedule calls Extend with its lock held.
func (t *slots) Extend(n int) int {
	var list []*slot
	if old := t.list.Load(); old != nil {
		list = append(list, *old...)
	}
	added := t.ring.Extend(n)
	for range added {
		number := len(list)
		list = append(list, &slot{number: number, batch: t.plan.NewBatch(number)})
	}
	t.list.Store(&list)
	return added
}

// Clear drops what the slot's batch refers to, so that the memory may be reused.
func (t *slots) Clear(number int) {
	s := t.at(number)
	s.keptAt.Store(nil)
	s.batch.Clear()
}

// Idle frees the ring, when the Loader is closed and the last kept batch was released.
func (t *slots) Idle() {
	_ = t.ring.Free() // an unmapping that fails leaves memory mapped, which harms nobody
}

// keptAt lists where the batches of the given slots were kept. Only checked builds record these
// lines: a lookup of the caller takes longer than Keep itself.
func (t *slots) keptAt(numbers []int) string {
	var b strings.Builder
	for _, i := range numbers {
		s := t.at(i)
		if at := s.keptAt.Load(); at != nil {
			fmt.Fprintf(&b, "\n\tbatch %d, kept at %s", s.batch.Step(), *at)
		}
	}
	return b.String()
}
