package loader

import "time"

// tuner looks for the number of workers that a loop needs, between Options.Workers and
// Options.MaxWorkers, and for that of batches kept ready, between Prefetch and MaxPrefetch.
//
// It adds a worker while training waits, and takes it back, and adds no other, when that made
// nothing faster. It has twice as many batches kept ready if training waits and, between that,
// workers had to wait for a free buffer: what they might have made meanwhile would have been
// there. Where either side is always the slower one, it is not so, and Prefetch stays.
//
// It gives half of them back when over calmWindows windows training waited for next to nothing and
// three quarters of them were always there: what is left is then twice what was used. If it has to
// add some again, it will never again have fewer than that. So it comes to an end whatever happens:
// between two additions it can only give back, and each addition after that raises what it keeps.
//
// It decides on what it sees over a window of batches, which begins when the buffers hold
// what the present workers make. All under Loader.mu.
type tuner struct {
	seen    int           // batches since the last decision
	began   time.Duration // of the window
	waited  time.Duration // for batches, up to then
	full    bool          // a worker had no free buffer since
	rate    float64       // batches a second before a worker was added; 0 if none was
	settled bool          // no worker will be added

	least    int  // batches that were ready in a window whenever one was handed out; -1 if that cannot be told
	calm     int  // windows in a row in which most of them were
	gaveBack bool // batches were, since some were added
	floor    int  // what Prefetch will not be less than; 0 is Options.Prefetch
}

const (
	tuneWindow = 24   // batches, at least
	tuneGain   = 1.03 // less is no gain

	calmWindows = 8 // that tell that batches kept ready are too many
)

// tunes reports what may still change. The caller holds mu.
func (ld *Loader) tunes() (workers, ahead bool) {
	return !ld.tuner.settled && ld.opts.MaxWorkers > ld.opts.Workers, ld.ahead < ld.mostAhead
}

// spare returns by how much Prefetch may be lowered at once. The caller holds mu.
func (ld *Loader) spare() int {
	return min(ld.ahead/2, ld.ahead-max(ld.tuner.floor, ld.opts.Prefetch))
}

// tune counts a batch that is handed out now. The caller holds mu.
func (ld *Loader) tune(now time.Duration) {
	if workers, ahead := ld.tunes(); !workers && !ahead && ld.spare() == 0 {
		return
	}
	t, waited := &ld.tuner, ld.stats.Wait-ld.stats.Starts
	t.seen++
	ld.noteReady(ld.pass)
	switch warm := len(ld.slots); t.seen {
	case warm:
		t.began, t.waited, t.full, t.least = now, waited, false, -1
	case warm + max(warm, tuneWindow):
		window := now - t.began
		ld.decide(float64(max(warm, tuneWindow))/max(1e-9, window.Seconds()), share(waited-t.waited, window))
		t.seen = 0
	}
}

// decide changes the number of batches kept ready, or that of workers, or leaves both. The
// caller holds mu.
func (ld *Loader) decide(rate, waiting float64) {
	t := &ld.tuner
	workers, ahead := ld.tunes()
	switch {
	case ahead && t.full && waiting >= littleWait:
		ld.deepen()
	case ld.calms(waiting):
		ld.giveBack()
	case !workers:
	case t.rate > 0 && rate < t.rate*tuneGain:
		ld.active--
		t.settled = true
	case waiting < littleWait || ld.active == ld.opts.MaxWorkers:
		t.settled = true
	default:
		t.rate = rate
		ld.active++
		ld.work.Broadcast()
	}
}

// deepen has twice as many batches kept ready, or as many more as there is memory for. The
// caller holds mu.
func (ld *Loader) deepen() {
	t, more := &ld.tuner, min(ld.ahead, ld.mostAhead-ld.ahead)
	left := min(more, ld.surplus) // those that have not ended yet
	ld.surplus -= left
	got := left + ld.addSlots(more-left)
	ld.ahead += got
	if got < more { // memory is short
		ld.mostAhead = ld.ahead
	}
	if t.gaveBack {
		t.gaveBack, t.floor = false, ld.ahead
	}
	t.calm = 0
	ld.work.Broadcast()
}

// noteReady counts what the consumer could have next without waiting, while the workers are as far
// ahead as they can be: not at the beginning of a loop, nor when nothing is left to do. The caller
// holds mu.
func (ld *Loader) noteReady(p *pass) {
	if ld.spare() == 0 || p.next >= p.end || p.delivered <= len(ld.slots) {
		return
	}
	n := ld.readyNow(p)
	if t := &ld.tuner; t.least < 0 || n < t.least {
		t.least = n
	}
}

// readyNow returns how many batches can be handed out before one that is not done. The caller holds
// mu.
func (ld *Loader) readyNow(p *pass) (n int) {
	done := func(tick int) bool {
		s := ld.window[tick%len(ld.window)]
		return s != nil && s.done
	}
	if ld.opts.Unordered {
		for tick := p.low; tick < p.next; tick++ {
			if done(tick) {
				n++
			}
		}
		return n
	}
	p.reach = max(p.reach, p.low)
	for p.reach < p.next && done(p.reach) {
		p.reach++
	}
	return p.reach - p.low
}

// calms reports whether batches kept ready have been too many for long enough. The caller holds mu.
func (ld *Loader) calms(waiting float64) bool {
	t := &ld.tuner
	switch {
	case ld.spare() == 0 || t.least < 0:
		return false
	case waiting >= littleWait || t.least < ld.ahead-ld.ahead/4:
		t.calm = 0
		return false
	}
	t.calm++
	return t.calm >= calmWindows
}

// giveBack lowers Prefetch. The slots end when they come free. The caller holds mu.
func (ld *Loader) giveBack() {
	less := ld.spare()
	ld.ahead -= less
	ld.surplus += less
	ld.tuner.calm, ld.tuner.gaveBack = 0, true
}
