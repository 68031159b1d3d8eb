package loader

import (
	"runtime/debug"
	"time"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/schedule"
)

// hands makes batches in the goroutine of the loop.
type hands struct {
	pool    *pool
	worker  *worker
	tasks   []schedule.Task // that are made together
	batches []*fill.Batch
}

// make makes the next batch of a loop, which looked at the clock just
// now, if the loop is to make it. It returns when it was done, or 0 if that is not known.
func (h *hands) make(l *schedule.Loop, now time.Duration) time.Duration {
	inline, warm := l.IsInline()
	if !inline {
		return 0
	}
	// A fault in mapped memory becomes a panic, which a Filler turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	setup, filler := h.pool.setup, h.worker.filler
	filler.Start(now)
	most := 1
	if warm && !setup.plan.Ragged() && setup.opts.World.Size == 1 {
		most = schedule.MaxTogether
	}
	h.tasks = l.AssignInline(h.tasks[:0], most)
	switch {
	case len(h.tasks) == 0:
		return 0
	case most > 1 && h.cut():
		h.worker.costs.take(filler)
		l.DoneInline(h.tasks)
	default:
		for _, t := range h.tasks { // each says what is wrong
			h.pool.serve(h.worker, t)
		}
	}
	return filler.At()
}

// cut makes the batches of the tasks as views of one run, and reports whether that could be done: they follow
// each other, without any that were delivered before. Little is left to do then for a batch of small records,
// less than a look at the clock takes.
func (h *hands) cut() bool {
	first, last := &h.tasks[0], &h.tasks[len(h.tasks)-1]
	if last.Tick-first.Tick >= len(h.tasks) {
		return false
	}
	h.batches = h.batches[:0]
	for i := range h.tasks {
		h.batches = append(h.batches, h.pool.slots.at(h.tasks[i].Slot).batch)
	}
	if h.worker.filler.Cut(first.Ctx, h.batches, first.Epoch, first.Step) == nil {
		return true
	}
	for _, b := range h.batches {
		b.Uncut()
	}
	return false
}
