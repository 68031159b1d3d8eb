package schedule

import "time"

// prefetchTuner looks for the number of batches that a loop needs kept ready, between
// Config.Prefetch and MaxPrefetch. It decides; the scheduler, under whose lock it is, does.
//
// It doubles the batches kept ready if training waits and, in between, workers had to wait for a
// free buffer: batches made meanwhile would have been ready. If one side is always the slower one,
// this does not happen, and Prefetch stays.
//
// It gives half of them back when over calmWindows windows training waited for next to nothing and
// three quarters of them were always ready: twice the number that was used then remains. If it has to
// add some again, it will never again have fewer than that. So it comes to an end whatever happens:
// between two additions it can only give back, and each addition after that raises what it keeps.
//
// It decides on what it sees over a window of batches, which begins when the buffers hold
// what the present workers make.
type prefetchTuner struct {
	prefetch    int // finished batches that may wait
	maxPrefetch int // and how many they may become
	floor       int // and what they will not be less than

	seen   int           // batches since the last decision
	began  time.Duration // of the window
	waited time.Duration // for batches, up to then
	full   bool          // a worker had no free buffer since

	least    int  // batches that were ready in a window whenever one was handed out; -1 if unknown
	calm     int  // windows in a row in which most of them were
	gaveBack bool // batches were, since some were added
}

const (
	tuneWindow = 24 // batches, at least

	calmWindows = 8 // that say that batches kept ready are too many
)

// verdict is a prefetchTuner's decision.
type verdict int

const (
	leave    verdict = iota
	deepen           // keep more batches ready
	giveBack         // keep fewer
)

func newPrefetchTuner(c *Config) prefetchTuner {
	return prefetchTuner{prefetch: c.Prefetch, maxPrefetch: c.MaxPrefetch, floor: c.Prefetch}
}

// open reports whether anything may still change.
func (t *prefetchTuner) open() bool { return t.prefetch < t.maxPrefetch || t.spare() > 0 }

// spare returns by how much prefetch may be lowered at once.
func (t *prefetchTuner) spare() int { return min(t.prefetch/2, t.prefetch-t.floor) }

// more returns by how much prefetch is to be raised.
func (t *prefetchTuner) more() int { return min(t.prefetch, t.maxPrefetch-t.prefetch) }

// noteReady takes how many batches the loop could have next without waiting, while the workers
// have made all batches that fit: not at the beginning of a loop, nor when nothing is left to do.
func (t *prefetchTuner) noteReady(n int) {
	if t.least < 0 || n < t.least {
		t.least = n
	}
}

// count counts a batch that is handed out now, with slots of them in all, after the loop waited
// so long for all batches. At the end of a window it decides.
func (t *prefetchTuner) count(now, waited time.Duration, slots int) verdict {
	t.seen++
	window := max(slots, tuneWindow)
	switch t.seen {
	case slots:
		t.began, t.waited, t.full, t.least = now, waited, false, -1
	case slots + window:
		took := now - t.began
		t.seen = 0
		return t.decide(Share(waited-t.waited, took))
	}
	return leave
}

// decide returns what to do about the number of batches kept ready.
func (t *prefetchTuner) decide(waiting float64) verdict {
	switch {
	case t.prefetch < t.maxPrefetch && t.full && waiting >= LittleWait:
		return deepen
	case t.calms(waiting):
		return giveBack
	}
	return leave
}

// calms reports whether batches kept ready have been too many for long enough.
func (t *prefetchTuner) calms(waiting float64) bool {
	switch {
	case t.spare() == 0 || t.least < 0:
		return false
	case waiting >= LittleWait || t.least < t.prefetch-t.prefetch/4:
		t.calm = 0
		return false
	}
	t.calm++
	return t.calm >= calmWindows
}

// deepened records that prefetch was raised by got, when more was requested.
func (t *prefetchTuner) deepened(got, more int) {
	t.prefetch += got
	if got < more { // memory is short
		t.maxPrefetch = t.prefetch
	}
	if t.gaveBack {
		t.gaveBack, t.floor = false, t.prefetch
	}
	t.calm = 0
}

// giveBack lowers prefetch, and returns by how much.
func (t *prefetchTuner) giveBack() int {
	less := t.spare()
	t.prefetch -= less
	t.calm, t.gaveBack = 0, true
	return less
}
