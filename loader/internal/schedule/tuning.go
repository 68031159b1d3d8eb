package schedule

// tuneLocked counts a batch that is handed out now, and has as many workers at work as the tuner decides.
func (l *Loop) tuneLocked() {
	s := l.s
	wait := s.watch.times.Wait - s.watch.times.Starts
	if s.pool.open() && s.pool.count(wait+s.watch.times.Body, wait, l.steadyLocked()) {
		s.staffLocked(l.p)
	}
}

// steadyLocked reports whether the workers make batches as they will for most of the pass: not so when it
// begins and ends. Of a short one, all batches count.
func (l *Loop) steadyLocked() bool {
	p, need := l.p, l.s.needLocked()
	return p.front.inline || p.delivered > need && p.next < p.end || p.delivered+p.end-p.front.low < 4*need
}
