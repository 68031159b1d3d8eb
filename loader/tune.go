package loader

import "time"

// tuner looks for the number of workers that a loop needs, between Options.Workers and
// Options.MaxWorkers. It adds one while training waits, and takes it back, and stops, when
// that made nothing faster. It decides on the rate of batches over a window, which begins
// when the buffers hold what the present workers make. All under Loader.mu.
type tuner struct {
	seen    int           // batches since the last decision
	began   time.Duration // of the window
	waited  time.Duration // Stats.Wait then
	rate    float64       // batches a second before a worker was added; 0 if none was
	settled bool
}

const (
	tuneWindow = 24   // batches, at least
	tuneGain   = 1.03 // less is no gain
)

// tune counts a batch that is handed out now. The caller holds mu.
func (ld *Loader) tune(now time.Duration) {
	t := &ld.tuner
	if t.settled || ld.opts.MaxWorkers <= ld.opts.Workers {
		return
	}
	t.seen++
	switch warm := len(ld.slots); t.seen {
	case warm:
		t.began, t.waited = now, ld.stats.Wait
	case warm + max(warm, tuneWindow):
		window := now - t.began
		ld.decide(float64(max(warm, tuneWindow))/max(1e-9, window.Seconds()), share(ld.stats.Wait-t.waited, window))
		t.seen = 0
	}
}

// decide changes the number of workers, or leaves it. The caller holds mu.
func (ld *Loader) decide(rate, waiting float64) {
	t := &ld.tuner
	switch {
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
