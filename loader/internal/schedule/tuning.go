package schedule

import "time"

// tuneLocked counts a batch that is handed out now, and does what the tuners decide.
func (l *Loop) tuneLocked(now time.Duration) {
	s := l.s
	wait := s.watch.times.Wait - s.watch.times.Starts
	if s.pool.open() && s.pool.count(wait+s.watch.times.Body, wait, l.steadyLocked()) {
		s.staffLocked(l.p)
	}
	if !l.p.front.inline && s.tuner.open() {
		l.tunePrefetchLocked(now, wait)
	}
}

// steadyLocked reports whether the workers make batches as they will for most of the pass: not so when it
// begins and ends. Of a short one, all batches count.
func (l *Loop) steadyLocked() bool {
	p, need := l.p, l.s.needLocked()
	return p.front.inline || p.delivered > need && p.next < p.end || p.delivered+p.end-p.front.low < 4*need
}

func (l *Loop) tunePrefetchLocked(now, wait time.Duration) {
	s, p, t := l.s, l.p, &l.s.tuner
	if t.spare() > 0 && p.next < p.end && p.delivered > s.slots.live {
		t.noteReady(p.ready(&s.slots))
	}
	switch t.count(now, wait, s.needLocked()) {
	case deepen:
		l.deepenLocked()
	case giveBack:
		s.slots.surplus += t.giveBack()
		s.slots.endFree()
	}
}

// deepenLocked has twice as many batches kept ready, or as many more as there is memory for.
func (l *Loop) deepenLocked() {
	s := l.s
	more := s.tuner.more()
	left := min(more, s.slots.surplus) // those that have not ended yet
	s.slots.surplus -= left
	s.tuner.deepened(left+s.slots.add(more-left), more)
	s.work.Broadcast()
}
