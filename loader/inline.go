package loader

import (
	"runtime/debug"
	"time"
)

// outlook is what a loop knows of the batches before it. Only the goroutine of the loop uses it.
type outlook struct {
	next int // first tick that was not looked at
	cold int // the last one before it whose batch takes longer to make than to hand over; -1 if none
}

// inlines reports whether loops may make batches themselves: those that are nothing but views
// of warm memory take less time to make than to hand over from one goroutine to another. Where
// there is a Timeout somebody else must make them, so as to be watched.
func (ld *Loader) inlines() bool {
	return ld.can.Mapped != nil && ld.viewable && ld.mayView && ld.opts.Collate.Worker == nil && ld.opts.Timeout == 0
}

// look decides who makes the batches that come next: the loop, while every batch that the
// workers might be ahead with is instant, and else the workers, which so have the time to
// bring in what is not in memory.
func (ld *Loader) look(p *pass) {
	if ld.hands == nil || ld.opts.crew() == 0 {
		return
	}
	o := &p.outlook
	last := min(p.parts[len(p.parts)-1].end(), p.low+ld.ahead+ld.opts.crew()+1)
	for ; o.next < last; o.next++ {
		if t := p.partOf(o.next); !ld.hands.instant(t, t.step(o.next)) {
			o.cold = o.next
		}
	}
	if inline := o.cold < p.low; inline != p.inline {
		ld.mu.Lock()
		defer ld.mu.Unlock()
		p.inline = inline
		ld.tuner.seen = 0
		ld.callWorkers(p)
	}
}

// instant reports whether a batch is all views of memory that is warm, so that making it is no
// more than to say where it lies. What is wrong with it, whoever makes it will tell.
func (w *worker) instant(t *part, step int) (yes bool) {
	var err error
	defer w.catch(&err)
	pos, n, pad := t.slice(step)
	first, is := t.runAt(pos, n, pad)
	if !is {
		first, is = w.runOf(t, pos, n, pad)
	}
	if !is || first < 0 || first+n > w.ld.src.Len() {
		return false
	}
	for i := range w.ld.fields {
		if !w.ld.can.Mapped.IsWarm(w.ld.fields[i].in.Name, first, first+n) {
			return false
		}
	}
	return true
}

// runOf is part.runAt for any Sequence: it has the records listed.
func (w *worker) runOf(t *part, pos, n, pad int) (first int, is bool) {
	next := w.ahead[:n]
	if front := next[:min(2, n)]; pad == 0 {
		t.choose(pos, 0, front) // most that are no run show it here: the workers will choose all of them
		if runLength(front) < len(front) {
			return 0, false
		}
	}
	t.choose(pos, pad, next)
	return next[0], runLength(next) == n
}

// callWorkers starts the workers, once, and wakes them, unless the loop makes its batches
// itself. The caller holds mu.
func (ld *Loader) callWorkers(p *pass) {
	if p.inline {
		return
	}
	ld.start()
	ld.work.Broadcast()
}

// fillHere makes the next batch in the goroutine of the loop, which looked at the clock just now,
// and returns when it was done, if it can tell without looking again, or 0. The caller holds mu.
func (ld *Loader) fillHere(p *pass, now time.Duration) (made time.Duration) {
	s := ld.assignStep(p)
	if s == nil {
		return 0
	}
	ld.stats.Inline++
	ld.mu.Unlock()
	defer ld.mu.Lock()
	// A fault in mapped memory becomes a panic, which catch turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	ld.hands.at = now
	ld.hands.serve(p, s)
	return ld.hands.at
}
