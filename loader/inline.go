package loader

import (
	"runtime/debug"
	"time"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/schedule"
)

// hands makes batches in the goroutine of the loop. Its worker is separate from the pool's workers,
// so that the loop and the workers never share a Filler.
type hands struct {
	pool    *pool
	worker  *worker
	tasks   []schedule.Task // that are made together
	batches []*fill.Batch
}

// make makes the next batch of a loop if the loop is to make it, and returns when the batch was
// finished, or 0 if that is not known. now is the loop's latest reading of the clock.
//
// Several warm batches are made together if there is one rank: then consecutive batches are
// neighbors in the Source, and one view serves them all.
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
		for _, t := range h.tasks { // one by one, so that the error names the batch
			h.pool.serve(h.worker, t)
		}
	}
	return filler.At()
}

// cut makes the batches of the tasks as views of one run, and reports whether that was possible.
// The tasks must follow each other: with Unordered, some batches between them may have been
// delivered before. For small records cut leaves less work per batch than a reading of the clock
// takes.
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
