package schedule

// tuneLocked counts a batch that is handed out now, and puts to work as many workers as the tuner
// decides. The first batches of loops are left out of the waiting time, since every number of
// workers starts cold.
func (l *Loop) tuneLocked() {
	s := l.s
	wait := s.watch.times.Wait - s.watch.times.Starts
	if s.pool.open() && s.pool.count(wait+s.watch.times.Body, wait, l.steadyLocked()) {
		s.staffLocked(l.p)
	}
}

// steadyLocked reports whether workers make batches at their steady pace. They do not at the
// beginning of a pass, when all slots are free, nor at its end, when nothing is left to begin. In a
// short pass all batches count: it may have no steady batch.
func (l *Loop) steadyLocked() bool {
	p, need := l.p, l.s.needLocked()
	return p.front.inline || p.delivered > need && p.next < p.end || p.delivered+p.end-p.front.low < 4*need
}
