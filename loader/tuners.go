package loader

import "time"

// workerTuner looks for the number of workers with which batches come fastest, from least to
// most. Of two numbers that are as good it takes the smaller one. With none, the loop makes its
// batches itself.
//
// It compares what a batch takes, the body of the loop included, over a window of batches with
// another number and over those before and after it with the present one. A better number stays. A
// worse one is tried again later: after ever more windows, as long as nothing wins, so that trials
// cost next to nothing. So it also finds what changes: a cache that becomes warm, or a body that
// needs the cores.
type workerTuner struct {
	least, most int
	home        int // the best number so far
	workers     int // at work now: another one in a trial

	stored bool // storage was slow, and that was dealt with

	up    bool          // the next trial is of more workers
	far   bool          // the last one between none and few was from none to two, or from few to none
	tries int           // trials in a row that lost
	lost  int           // and by how much, in points
	rest  int           // windows before the next trial
	pace  time.Duration // for a batch, at home
	waits float64       // part of that for which the loop waited
	other int           // the number that was tried last
	tried time.Duration // for a batch, with it; 0 if that was judged

	skip   int                                 // batches until the window begins
	seen   int                                 // batches in it
	began  time.Duration                       // time of the loop then
	waited time.Duration                       // and what it had waited
	last   struct{ now, waited time.Duration } // when a batch was counted
}

// The least number of batches and the least time of a window. Later windows, when nothing
// wins any more, are longer.
const (
	tuneBatches = 8
	tuneTime    = time.Millisecond
	tuneLevels  = 3  // doublings
	tuneRest    = 32 // windows between two trials, at most
)

func newWorkerTuner(o *Options) workerTuner {
	start := max(0, o.Workers)
	return workerTuner{least: max(0, o.fewest), most: o.maxWorkers(), home: start, workers: start, up: true}
}

// open reports whether anything may still change.
func (t *workerTuner) open() bool { return t.least < t.most }

// restart begins a new window after some batches, which were not made by the present number of
// workers.
func (t *workerTuner) restart(skip int) { t.skip, t.seen = max(1, skip), 0 }

// storage has a second worker begin with the first batches that came from storage: one reads on while the other
// hands over. It asks whether they did only where one worker began. It reports whether the number of workers changed.
func (t *workerTuner) storage(did func() bool) bool {
	if t.stored || !t.open() || t.home != 1 || t.workers != 1 || !did() {
		return false
	}
	t.stored, t.home, t.workers, t.rest = true, 2, 2, 4
	return true
}

// count counts a batch that is handed out at the time now of the loop, which waited for it. Batches that are not steady, as
// their pass begins or ends, are left out of the window: else one with more of them would lose. It reports whether the
// number of workers changed.
func (t *workerTuner) count(now, waited time.Duration, steady bool) bool {
	last := t.last
	t.last.now, t.last.waited = now, waited
	switch {
	case t.skip > 0:
		t.skip--
		t.began, t.waited = now, waited
		return false
	case !steady:
		t.began += now - last.now
		t.waited += waited - last.waited
		return false
	}
	t.seen++
	took := now - t.began
	pace, waits := took/time.Duration(t.seen), share(waited-t.waited, took)
	level := min(t.lost/2, tuneLevels)
	enough := took >= tuneTime && t.seen%max(1, t.workers) == 0 // workers may end all at once
	whole := enough && t.seen >= max(2*t.workers, tuneBatches<<level) && took >= tuneTime<<level
	hopeless := enough && t.workers != t.home && t.seen >= tuneBatches/2 && pace > t.pace+t.pace/4
	if !whole && !hopeless {
		return false
	}
	before := t.workers
	t.seen, t.began, t.waited = 0, now, waited
	switch {
	case hopeless:
		t.workers = t.home
		t.lose(2)
	case t.workers != t.home:
		t.tried, t.workers = pace, t.home
	default:
		t.atHome(pace, waits)
	}
	return t.workers != before
}

// atHome takes a window with the present number: it judges the trial before it, and may begin
// another.
func (t *workerTuner) atHome(pace time.Duration, waits float64) {
	before := t.pace
	t.pace, t.waits = pace, waits
	if t.tried > 0 {
		steady := max(before, pace) <= min(before, pace)*5/4 || t.lost >= 2*tuneLevels
		if t.wins(before, pace) && (steady || t.other > t.home) {
			t.home, t.workers = t.other, t.other
			t.tries, t.lost, t.rest, t.tried = 0, 0, 0, 0
			return
		}
		t.tried = 0
		if steady {
			t.lose(1)
		} else {
			t.lost++ // in longer windows it is tried again
		}
	}
	t.next()
}

// wins reports whether the trial was better than what a batch took at home before and after it.
// More workers must gain something, whatever else became faster meanwhile; fewer must not lose.
func (t *workerTuner) wins(before, after time.Duration) bool {
	least, mean := min(before, after), (before+after)/2
	switch {
	case t.other < t.home:
		return t.tried <= mean+mean/100
	case t.other == 1: // all that one can gain is the loop's own work
		return t.tried < least-least/50
	}
	return t.tried < least-least/25
}

// lose goes on to the other direction, or after both to a rest, which is longer the more was lost.
func (t *workerTuner) lose(points int) {
	t.up = !t.up
	t.lost += points
	if t.tries++; t.tries%2 == 0 {
		t.rest = min(4<<min(t.lost, 10), tuneRest)
	}
}

// next begins a trial, unless it is not the time for one, or there is nothing to try.
func (t *workerTuner) next() {
	if t.rest > 0 {
		t.rest--
		return
	}
	for range 2 {
		if t.other = t.candidate(); t.other != t.home {
			t.workers = t.other
			return
		}
		t.up = !t.up
	}
}

// candidate returns the number to try in the present direction. Near none there are two, by turns:
// handing batches over may cost more than one worker gains, but less than two do.
func (t *workerTuner) candidate() int {
	switch {
	case t.up && t.waits < littleWait/2:
		return t.home
	case t.up && t.home == 0:
		t.far = !t.far
		if t.far {
			return min(2, t.most)
		}
		return 1
	case t.up:
		return min(t.most, t.home+max(1, t.home/2))
	case t.home == 2 || t.home == 3:
		t.far = !t.far
		if t.far {
			return t.least
		}
	}
	return max(t.least, t.home-max(1, t.home/4))
}

// prefetchTuner looks for the number of batches that a loop needs kept ready, between
// Options.Prefetch and MaxPrefetch. It decides; the scheduler, under whose lock it is, does.
//
// It has twice as many batches kept ready if training waits and, between that,
// workers had to wait for a free buffer: what they might have made meanwhile would have been
// there. Where either side is always the slower one, it is not so, and Prefetch stays.
//
// It gives half of them back when over calmWindows windows training waited for next to nothing and
// three quarters of them were always there: what is left is then twice what was used. If it has to
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

// verdict is what a prefetchTuner decides.
type verdict int

const (
	leave    verdict = iota
	deepen           // keep more batches ready
	giveBack         // keep fewer
)

func newPrefetchTuner(o *Options) prefetchTuner {
	return prefetchTuner{prefetch: o.Prefetch, maxPrefetch: o.MaxPrefetch, floor: o.Prefetch}
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
		return t.decide(share(waited-t.waited, took))
	}
	return leave
}

// decide returns what to do about the number of batches kept ready.
func (t *prefetchTuner) decide(waiting float64) verdict {
	switch {
	case t.prefetch < t.maxPrefetch && t.full && waiting >= littleWait:
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
	case waiting >= littleWait || t.least < t.prefetch-t.prefetch/4:
		t.calm = 0
		return false
	}
	t.calm++
	return t.calm >= calmWindows
}

// deepened notes that prefetch was raised by got, of more that were asked for.
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
