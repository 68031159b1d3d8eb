package schedule

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

func newWorkerTuner(c *Config) workerTuner {
	return workerTuner{least: c.MinWorkers, most: c.MaxWorkers, home: c.Workers, workers: c.Workers, up: true}
}

// open reports whether anything may still change.
func (t *workerTuner) open() bool { return t.least < t.most }

// restart begins a new window after some batches, which were not made by the present number of
// workers.
func (t *workerTuner) restart(skip int) { t.skip, t.seen = max(1, skip), 0 }

// storage starts a second worker at the first batches that came from storage: one reads while the other
// hands over. It checks that only if one worker began. It reports whether the number of workers changed.
func (t *workerTuner) storage(of Reads) bool {
	if t.stored || !t.open() || t.home != 1 || t.workers != 1 || !of.FromStorage() {
		return false
	}
	t.stored, t.home, t.workers, t.rest = true, 2, 2, 4
	return true
}

// count counts a batch that is handed out at the time now of the loop, which waited for it. Batches that are
// not steady, as their pass begins or ends, are left out of the window: else one with more of them would
// lose. It reports whether the number of workers changed.
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
	pace, waits := took/time.Duration(t.seen), Share(waited-t.waited, took)
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
	case t.up && t.waits < LittleWait/2:
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
