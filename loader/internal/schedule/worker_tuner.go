package schedule

import "time"

// workerTuner searches for the number of workers with which batches come fastest, between least and
// most. Of two numbers that are equally fast it takes the smaller. With no workers the loop makes
// its batches itself.
//
// The tuner compares the time per batch, the loop body included, over a window of batches with
// another number to the windows before and after it with the present number. The comparison to both
// sides cancels a drift, such as a cache that becomes warm. A better number stays. A worse one is
// tried again later, after ever longer rests as long as nothing wins, so that trials cost next to
// nothing and the tuner still notices when conditions change.
type workerTuner struct {
	least, most int
	home        int // best number so far
	workers     int // present number; differs from home in a trial

	stored bool // storage was slow, and that was dealt with

	up    bool          // the next trial is of more workers
	far   bool          // the last one between none and few was from none to two, or from few to none
	tries int           // trials in a row that lost
	lost  int           // points by which these trials lost
	rest  int           // windows before the next trial
	pace  time.Duration // time per batch at home
	waits float64       // part of that for which the loop waited
	other int           // number tried last
	tried time.Duration // time per batch in that trial; 0 once it was judged

	skip   int                                 // batches until the window begins
	seen   int                                 // batches in the window so far
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

// restart begins a new window after skip batches that the present number of workers did not make.
func (t *workerTuner) restart(skip int) { t.skip, t.seen = max(1, skip), 0 }

// storage starts a second worker at the first batches that came from storage: one worker reads
// while the other hands over. It starts the second worker only if the search began with one
// worker, and reports whether the number changed. Windows of slow batches would take long to
// find this out.
func (t *workerTuner) storage(of Reads) bool {
	if t.stored || !t.open() || t.home != 1 || t.workers != 1 || !of.FromStorage() {
		return false
	}
	t.stored, t.home, t.workers, t.rest = true, 2, 2, 4
	return true
}

// count counts a batch that is handed out at the loop's time now. Batches that are not steady are
// left out of the window, because a window with more such batches would lose for no reason. count
// reports whether the number of workers changed.
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

// atHome ends a window with the present number of workers. It compares the trial before the
// window with it, and may begin another trial.
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

// wins reports whether the trial was better than the windows with the present number before and
// after it. More workers must gain something, since each costs memory and cores; fewer workers must
// only not lose.
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

// lose turns the search to the other direction, or, after both directions lost, to a rest. The rest
// is longer the more was lost.
func (t *workerTuner) lose(points int) {
	t.up = !t.up
	t.lost += points
	if t.tries++; t.tries%2 == 0 {
		t.rest = min(4<<min(t.lost, 10), tuneRest)
	}
}

// next begins a trial, unless the tuner rests or there is no other number to try.
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

// candidate returns the number to try in the present direction. Near zero there are two candidates,
// by turns: handing batches over may cost more than one worker gains, and less than two workers
// gain. While the loop hardly waits, more workers cannot help, and none are tried.
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
