package loader

import (
	"runtime/debug"
	"time"
)

// inlines reports whether loops may make batches themselves: those that are nothing but views
// of warm memory take less time to make than to hand over from one goroutine to another. Where
// there is a Timeout somebody else must make them, so as to be watched.
func (c *setup) inlines() bool {
	return c.plan.Viewable() && c.opts.Collate.Worker == nil && c.opts.Timeout == 0
}

// look decides who makes the batches that come next: the loop, while every batch that the
// workers might make in advance is instant, or if that is faster than any number of workers; and
// else the workers, which so have the time to bring in what is not in memory.
func (ld *Loader) look(p *pass) {
	warm := ld.views && ld.isWarm(p)
	inline := warm || p.alone
	if warm == p.warm && inline == p.inline {
		return
	}
	ld.mu.Lock()
	defer ld.mu.Unlock()
	p.warm, p.inline = warm, inline
	ld.tuner.seen = 0
	ld.pool.restart(p.next - p.low)
	ld.callWorkersLocked(p)
}

// isWarm reports whether every batch that the workers might make in advance is instant.
func (ld *Loader) isWarm(p *pass) bool {
	o := &p.outlook
	last := min(p.parts[len(p.parts)-1].end(), p.low+ld.tuner.prefetch+ld.opts.maxWorkers()+1)
	for o.next < last {
		t := p.partOf(o.next)
		step, many := t.step(o.next), min(manySteps, t.end()-o.next)
		if many > 1 && ld.hands.filler.IsInstant(t.order, step, many) {
			o.next += many
			continue
		}
		if !ld.hands.filler.IsInstant(t.order, step, 1) {
			o.cold = o.next
		}
		o.next++
	}
	return o.cold < p.low
}

const manySteps = 16 // that are looked at, and made, together

// makeInline makes the next batch in the goroutine of the loop, which looked at the clock just
// now, if it is to make it. It returns when it was done, or 0 if that is not known.
func (ld *Loader) makeInline(p *pass, now time.Duration) time.Duration {
	if !p.inline {
		return 0
	}
	// A fault in mapped memory becomes a panic, which catch turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	ld.hands.filler.Start(now)
	if p.warm && !ld.plan.Ragged() && ld.opts.World.Size == 1 {
		return ld.makeViews(p)
	}
	list := ld.inlineSteps(p, 1)
	if len(list) == 0 {
		return 0
	}
	ld.serve(ld.hands, p, list[0])
	return ld.hands.filler.At()
}

// makeViews makes as many batches as there are slots for. Where they are one run of the Source, all are cut from
// one view: what is left to do for a batch of small records is little beside a look at the clock.
func (ld *Loader) makeViews(p *pass) time.Duration {
	w := ld.hands
	list := ld.inlineSteps(p, manySteps)
	if len(list) == 0 {
		return 0
	}
	if !ld.cut(p, list) {
		for _, s := range list { // each says what is wrong
			s.batch.Uncut()
			ld.serve(w, p, s)
		}
		return w.filler.At()
	}
	ld.mu.Lock()
	defer ld.mu.Unlock()
	for _, s := range list {
		s.state = slotDone
	}
	p.filling -= len(list)
	ld.stats.add(w.filler.TakeCost(), ld.plan.Fields)
	return w.filler.At()
}

// cut makes batches as views of one run, and reports whether that could be done: they follow each other, without any that were
// delivered before.
func (ld *Loader) cut(p *pass, list []*slot) bool {
	if list[len(list)-1].tick-list[0].tick >= len(list) {
		return false
	}
	ld.cuts = ld.cuts[:0]
	for _, s := range list {
		ld.cuts = append(ld.cuts, s.batch)
	}
	return ld.hands.filler.Cut(p.ctx, ld.cuts, list[0].part.order, list[0].step) == nil
}

// inlineSteps returns the slots of batches of one epoch, most at most, that the loop is to make now.
func (ld *Loader) inlineSteps(p *pass, most int) (list []*slot) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if p.filling > 0 || ld.finishedLocked(p) != nil {
		return nil
	}
	list = ld.list[:0]
	for len(list) < most && (len(list) == 0 || p.next < list[0].part.end()) {
		s := ld.assignStepLocked(p)
		if s == nil {
			break
		}
		s.inline = true
		list = append(list, s)
	}
	ld.list = list
	return list
}
