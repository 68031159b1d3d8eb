package loader

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/memory"
)

// slot is the place of one batch. It goes round between the schedule, a worker and the consumer; the
// one that holds it owns its batch.
type slot struct {
	number int           // in the ring and the schedule
	gen    atomic.Uint64 // of the batch that is here; a Batch of another generation is stale
	batch  *fill.Batch
	keptAt atomic.Pointer[string] // file and line of Keep, in checked builds
}

// slots are the places of all batches: the schedule.Slots of a Loader.
type slots struct {
	plan *fill.Plan
	ring *memory.Ring
	list atomic.Pointer[[]*slot] // by number
}

// at returns a slot.
func (t *slots) at(number int) *slot { return (*t.list.Load())[number] }

// Extend adds n slots, or as many as there is memory for. The schedule's lock orders the calls.
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

// Clear drops what a slot refers to, so that its memory may be reused.
func (t *slots) Clear(number int) {
	s := t.at(number)
	s.keptAt.Store(nil)
	s.batch.Clear()
}

// Idle gives back the memory of all.
func (t *slots) Idle() {
	_ = t.ring.Free() // an unmapping that fails leaves memory mapped, which harms nobody
}

// keptAt lists where the batches of some slots were kept, in checked builds.
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
