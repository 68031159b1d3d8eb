package loader

import "time"

// task is a batch to make, or a piece of one to fill.
type task struct {
	p     *pass
	s     *slot
	piece int // -1 is the whole batch
}

// assign waits for a task; without a slot it means that the Loader is closed. Steps are
// assigned in order, so that all before p.next have a slot: whatever is kept, the step that
// the consumer waits for gets done.
func (ld *Loader) assign(w *worker) task {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	ld.add(&w.spent)
	var since time.Duration
	for {
		t, ok := ld.task(w)
		if ok {
			if since > 0 {
				ld.stats.Idle += ld.now() - since
			}
			return t
		}
		if since == 0 {
			since = ld.now()
		}
		ld.tuner.full = ld.tuner.full || ld.short(w)
		ld.work.Wait()
	}
}

// task returns what there is to do, if anything. The caller holds mu.
func (ld *Loader) task(w *worker) (task, bool) {
	p := ld.pass
	switch {
	case p != nil && p.split != nil:
		return p.piece(), true
	case ld.closed:
		return task{}, true
	case p == nil || p.inline || p.opening && p.next > 0 || w.id >= ld.active:
		return task{}, false
	}
	s := ld.assignStep(p)
	return task{p, s, -1}, s != nil
}

// short reports whether a worker has nothing to do but for want of a free buffer. The caller
// holds mu.
func (ld *Loader) short(w *worker) bool {
	p := ld.pass
	return p != nil && !p.inline && !p.opening && w.id < ld.active && p.next < p.end && len(ld.free) == 0
}

// piece hands out a piece of the batch that is split. The caller holds mu.
func (p *pass) piece() task {
	t := task{p, p.split, p.split.given}
	p.split.given++
	if p.split.given == p.split.pieces {
		p.split = nil
	}
	return t
}

// assignStep gives the next step a slot, or returns nil if there is no step or no slot. The
// caller holds mu.
func (ld *Loader) assignStep(p *pass) *slot {
	p.skip()
	if p.next >= p.end || len(ld.free) == 0 || p.next-p.low >= len(ld.window) {
		return nil
	}
	last := len(ld.free) - 1
	s := ld.free[last]
	ld.free = ld.free[:last]
	s.tick, s.part = p.next, p.partOf(p.next)
	s.step = s.part.step(s.tick)
	s.opens = p.opening
	ld.window[s.tick%len(ld.window)] = s
	p.next++
	p.filling++
	return s
}

// opened lets the other workers begin.
func (ld *Loader) opened(p *pass) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	p.opening = false
	ld.work.Broadcast()
}

// divide lets the other workers begin with the first batch of a pass: it splits that into
// pieces, so that all make it together and the consumer has it as soon as it can be. It
// reports whether there is something to split.
func (ld *Loader) divide(p *pass, s *slot) bool {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	p.opening = false
	ld.work.Broadcast()
	pieces := min(ld.active, len(s.indices))
	if pieces < 2 {
		return false
	}
	s.pieces, s.given, s.left = pieces, 0, pieces
	p.split = s
	p.filling += pieces - 1
	return true
}

// pieceDone reports whether all pieces of s are. The error of the first record stays.
func (ld *Loader) pieceDone(p *pass, s *slot, lo int, err error) bool {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if err != nil && (s.err == nil || lo < s.errAt) {
		s.err, s.errAt = err, lo
	}
	if s.left--; s.left == 0 {
		return true
	}
	p.filling--
	return false
}
