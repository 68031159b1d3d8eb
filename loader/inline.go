package loader

import (
	"errors"
	"runtime/debug"
	"time"
)

// inlines reports whether loops may make batches themselves: those that are nothing but views
// of warm memory take less time to make than to hand over from one goroutine to another. Where
// there is a Timeout somebody else must make them, so as to be watched.
func (c *setup) inlines() bool {
	return c.can.Mapped != nil && c.viewable && c.mayView && c.opts.Collate.Worker == nil && c.opts.Timeout == 0
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
		if many > 1 && ld.hands.instant(t, step, many) {
			o.next += many
			continue
		}
		if !ld.hands.instant(t, step, 1) {
			o.cold = o.next
		}
		o.next++
	}
	return o.cold < p.low
}

const manySteps = 16 // that are looked at, and made, together

// instant reports whether some batches, as one run if there are several, are all views of memory
// that is warm, so that making them is no more than to say where they are. Errors surface when a batch is made.
func (w *worker) instant(t *part, step, steps int) (yes bool) {
	var err error
	defer w.catch(&err)
	pos, n, pad := t.span(step, steps)
	first, is := t.runAt(pos, n, pad)
	if !is && steps == 1 {
		first, is = t.runOf(w.upcoming[:n], pos, n, pad)
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

// runOf is part.runAt for any Sequence: it has the records listed in next.
func (t *part) runOf(next []int, pos, n, pad int) (first int, is bool) {
	if front := next[:min(2, n)]; pad == 0 {
		t.choose(pos, 0, front) // the first two show most steps that are not runs: the workers will choose all of them
		if runLength(front) < len(front) {
			return 0, false
		}
	}
	t.choose(pos, pad, next)
	return next[0], runLength(next) == n
}

// makeInline makes the next batch in the goroutine of the loop, which looked at the clock just
// now, if it is to make it. It returns when it was done, or 0 if that is not known.
func (ld *Loader) makeInline(p *pass, now time.Duration) time.Duration {
	if !p.inline {
		return 0
	}
	// A fault in mapped memory becomes a panic, which catch turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	ld.hands.at = now
	if p.warm && !ld.ragged && ld.opts.World.Size == 1 {
		return ld.makeViews(p)
	}
	list := ld.inlineSteps(p, 1)
	if len(list) == 0 {
		return 0
	}
	ld.hands.serve(p, list[0])
	return ld.hands.at
}

// makeViews makes as many batches as there are slots for. Where they are one run of the Source, all are cut from
// one view: what is left to do for a batch of small records is little beside a look at the clock.
func (ld *Loader) makeViews(p *pass) time.Duration {
	w := ld.hands
	list := ld.inlineSteps(p, manySteps)
	if len(list) == 0 {
		return 0
	}
	if w.cut(p, list) != nil {
		for _, s := range list { // each says what is wrong
			s.unlease()
			clear(s.viewing)
			s.ends.Store(false)
			w.serve(p, s)
		}
		return w.at
	}
	ld.mu.Lock()
	defer ld.mu.Unlock()
	for _, s := range list {
		s.state = slotDone
	}
	p.filling -= len(list)
	ld.stats.add(&w.times, ld.fields)
	return w.at
}

// inlineSteps returns the slots of batches of one epoch, most at most, that the loop is to make now.
func (ld *Loader) inlineSteps(p *pass, most int) (list []*slot) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if p.filling > 0 || ld.finishedLocked(p) != nil {
		return nil
	}
	list = ld.hands.slots[:0]
	for len(list) < most && (len(list) == 0 || p.next < list[0].part.end()) {
		s := ld.assignStepLocked(p)
		if s == nil {
			break
		}
		s.inline = true
		list = append(list, s)
	}
	ld.hands.slots = list
	return list
}

// cut makes batches that follow each other, without those that pad an epoch, as views of one run.
func (w *worker) cut(p *pass, list []*slot) (err error) {
	defer w.catch(&err)
	ld, t, size := w.ld, list[0].part, w.ld.opts.BatchSize
	pos, n, pad := t.span(list[0].step, len(list))
	first, is := t.runAt(pos, n, pad)
	if !is || first < 0 || first+n > ld.src.Len() || list[len(list)-1].tick-list[0].tick >= len(list) || p.ctx.Err() != nil {
		return errNotCut
	}
	for i, s := range list {
		if err := ld.src.Retain(); err != nil {
			return err
		}
		s.leased = true
		a, m := first+i*size, min(size, n-i*size)
		s.position, s.run, s.indices, s.mask = pos+i*size, m, s.all[:m], s.allMask[:m]
		s.indices[0], s.indices[m-1] = a, a+m-1
		s.ends.Store(true)
		copy(s.mask, ld.allValid)
	}
	bytes := 0
	for f := range ld.fields {
		fd := &ld.fields[f]
		if !ld.can.Contiguous(fd.in.Name, first, first+n) {
			return errNotCut
		}
		w.mark.set(list[0], f, first)
		v, err := w.ld.slice(fd, first, first+n, nil)
		if err != nil {
			return err
		}
		bytes += len(v.Bytes())
		for i, s := range list {
			s.views[f], s.viewing[f] = v.Slice(i*size, i*size+len(s.indices)), true
		}
	}
	w.read(w.lap(), list[0].indices[:1], bytes)
	return nil
}

var errNotCut = errors.New("the batches are not one run")
