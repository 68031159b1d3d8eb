package loader

import "time"

// tuner looks for the number of workers that a loop needs, between Options.Workers and
// Options.MaxWorkers, and for that of batches kept ready, between Ahead and MaxAhead.
//
// It adds a worker while training waits, and takes it back, and adds no other, when that made
// nothing faster. It has twice as many batches kept ready if training waits and, between that,
// workers had to wait for a free buffer: what they might have made meanwhile would have been
// there. Where either side is always the slower one, it is not so, and Ahead stays.
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
}

const (
	tuneWindow = 24   // batches, at least
	tuneGain   = 1.03 // less is no gain
)

// tunes reports what may still change. The caller holds mu.
func (ld *Loader) tunes() (workers, ahead bool) {
	return !ld.tuner.settled && ld.opts.MaxWorkers > ld.opts.Workers, ld.ahead < ld.mostAhead
}

// tune counts a batch that is handed out now. The caller holds mu.
func (ld *Loader) tune(now time.Duration) {
	if workers, ahead := ld.tunes(); !workers && !ahead {
		return
	}
	t, waited := &ld.tuner, ld.stats.Wait-ld.stats.Starts
	t.seen++
	switch warm := len(ld.slots); t.seen {
	case warm:
		t.began, t.waited, t.full = now, waited, false
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
	more := min(ld.ahead, ld.mostAhead-ld.ahead)
	got := ld.addSlots(more)
	ld.ahead += got
	if got < more { // memory is short
		ld.mostAhead = ld.ahead
	}
	ld.work.Broadcast()
}
