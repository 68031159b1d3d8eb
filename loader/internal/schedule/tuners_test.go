package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// loop is a training loop whose batches take a time that depends on the number of workers. It
// waits for a share of that.
type loop struct {
	pace  func(workers, batch int) time.Duration
	waits func(workers int) float64
}

// run returns what batches took from one on, on average, and the last number of workers.
func (l loop) run(t *workerTuner, rng *rand.Rand, noise float64, from, to int) (mean time.Duration, workers int) {
	var now, waited, sum time.Duration
	for i := range to {
		d := time.Duration(float64(l.pace(t.workers, i)) * (1 + noise*rng.NormFloat64()))
		now += d
		waited += time.Duration(float64(d) * l.waits(t.workers))
		if i >= from {
			sum += d
		}
		if t.count(now, waited, true) {
			t.restart(2 + t.workers)
		}
	}
	return sum / time.Duration(to-from), t.home
}

func always(share float64) func(int) float64 { return func(int) float64 { return share } }

// ms returns a loop's pace from that with 0, 1, ... workers, in milliseconds.
func ms(list ...float64) func(int, int) time.Duration {
	return func(n, _ int) time.Duration {
		return time.Duration(list[min(n, len(list)-1)] * float64(time.Millisecond))
	}
}

// The tuner finds what is within a twentieth of the best number of workers, its trials included,
// after a hundred batches, whatever it begins with.
func TestWorkerTunerFindsTheBest(t *testing.T) {
	for name, c := range map[string]struct {
		loop loop
		most int
		want []int
	}{
		"two cores decode":            {loop{ms(10, 10, 5, 5, 5), always(0.9)}, 4, []int{2}},
		"one memory bus":              {loop{ms(10, 10.5, 11, 12, 12), always(0.9)}, 4, []int{0}},
		"handing over costs":          {loop{ms(1, 1.3, 1.2, 1.3, 1.4), always(0.9)}, 4, []int{0}},
		"a step with one worker":      {loop{ms(10, 5.2, 5.1, 5.1, 5.1), func(n int) float64 { return []float64{0.5, 0.03, 0, 0, 0}[n] }}, 4, []int{1, 2}},
		"a step that needs all cores": {loop{ms(20, 20, 21, 22, 23), func(n int) float64 { return []float64{0.02, 0, 0, 0, 0}[n] }}, 4, []int{0, 1}},
		"storage":                     {loop{ms(8, 8, 4, 3, 2), always(0.9)}, 4, []int{4}},
		"64 cores":                    {loop{func(n, _ int) time.Duration { return 64 * time.Millisecond / time.Duration(min(max(1, n), 60)) }, always(0.9)}, 64, nil},
		"64 cores, a bus for eight":   {loop{func(n, _ int) time.Duration { return 64 * time.Millisecond / time.Duration(min(max(1, n), 8)) }, always(0.9)}, 64, nil},
	} {
		for _, start := range []int{1, c.most - 1} {
			for _, noise := range []float64{0, 0.02} {
				tuner := &workerTuner{most: c.most, home: start, workers: start, up: true}
				from := 100
				if c.most > 4 {
					from = 2500 // a window has a batch of each worker at least
				}
				mean, got := c.loop.run(tuner, rand.New(rand.NewPCG(1, 2)), noise, from, from+4000)
				best := c.loop.pace(0, 0)
				for n := range c.most {
					best = min(best, c.loop.pace(n+1, 0))
				}
				if float64(mean) > float64(best)/0.95 {
					t.Errorf("%s, from %d workers, noise %v: a batch takes %v with %d workers in the end; the best is %v", name, start, noise, mean, got, best)
				}
				if ok := c.want == nil; noise == 0 {
					for _, n := range c.want {
						ok = ok || n == got
					}
					if !ok {
						t.Errorf("%s, from %d workers: ends with %d, want %d", name, start, got, c.want)
					}
				}
			}
		}
	}
}

// Pages that are touched for the first time take longer, fewer of them as time goes on. A trial meanwhile
// does not count against a number of workers.
func TestWorkerTunerWhileMemoryWarms(t *testing.T) {
	pace := ms(1.3, 1, 0.7, 0.8, 0.9)
	l := loop{func(n, i int) time.Duration {
		return time.Duration(float64(pace(n, i)) * (1 + 6*math.Exp(-float64(i)/10)))
	}, always(0.9)}
	tuner := &workerTuner{most: 4, home: 1, workers: 1, up: true}
	if mean, got := l.run(tuner, rand.New(rand.NewPCG(1, 2)), 0.02, 100, 500); got != 2 || mean > 750*time.Microsecond {
		t.Errorf("%d workers, %v a batch", got, mean)
	}
}

// The tuner follows a loop that changes: here from one where workers help to one where the body
// needs the cores, and back.
func TestWorkerTunerFollowsChanges(t *testing.T) {
	help, harm := ms(10, 10, 5, 5, 5), ms(5, 6, 8, 9, 9)
	l := loop{func(n, i int) time.Duration {
		if i/5000%2 == 0 {
			return help(n, i)
		}
		return harm(n, i)
	}, always(0.5)}
	for _, c := range []struct{ batches, want int }{{4999, 2}, {9999, 0}, {14_999, 2}} {
		tuner := &workerTuner{most: 4, home: 1, workers: 1, up: true}
		if _, got := l.run(tuner, rand.New(rand.NewPCG(1, 2)), 0, 0, c.batches); got != c.want {
			t.Errorf("after %d batches: %d workers, want %d", c.batches, got, c.want)
		}
	}
}

// The beginning and the end of each pass, where batches take longer and shorter, say nothing of a number of workers.
func TestWorkerTunerOfShortPasses(t *testing.T) {
	tuner := &workerTuner{most: 4, home: 1, workers: 1, up: true}
	var now, waited time.Duration
	for i := range 3000 {
		steady := i%32 >= 5 && i%32 < 27
		took := []time.Duration{0, 10, 11, 12, 13}[tuner.workers] * time.Millisecond
		switch {
		case i%32 < 5:
			took *= 2
		case !steady:
			took /= 4
		}
		if tuner.workers == 0 {
			took = 11 * time.Millisecond
		}
		now, waited = now+took, waited+took/2
		tuner.count(now, waited, steady)
		if tuner.home != 1 || tuner.pace != 0 && tuner.pace != 10*time.Millisecond {
			t.Fatalf("after batch %d: %d workers, %v a batch", i, tuner.home, tuner.pace)
		}
	}
	if tuner.tries == 0 {
		t.Error("no other number was tried")
	}
}

// reads says whether all records come from storage.
type reads bool

func (r reads) FromStorage() bool { return bool(r) }

// Batches that come from storage start a second worker, once, if one had started.
func TestWorkerTunerOfStorage(t *testing.T) {
	for _, c := range []struct {
		tuner workerTuner
		want  int
	}{
		{workerTuner{most: 4, home: 1, workers: 1}, 2},
		{workerTuner{most: 4, home: 1, workers: 2}, 2}, // a trial, which goes on
		{workerTuner{most: 4, home: 3, workers: 3}, 3},
		{workerTuner{most: 4}, 0},
		{workerTuner{least: 1, most: 1, home: 1, workers: 1}, 1},
	} {
		before := c.tuner
		if c.tuner.storage(reads(false)) || c.tuner != before {
			t.Errorf("%+v: changed for memory", before)
		}
		if got := c.tuner.storage(reads(true)); c.tuner.workers != c.want || got != (before.workers != c.want) || c.tuner.storage(reads(true)) {
			t.Errorf("%+v: changed is %v, %d workers, want %d", before, got, c.tuner.workers, c.want)
		}
	}
}

// A loop that never waits tries no more workers.
func TestWorkerTunerWithoutNeed(t *testing.T) {
	tuner := &workerTuner{least: 1, most: 4, home: 1, workers: 1, up: true}
	l := loop{ms(5, 5, 5, 5, 5), always(0)}
	for range 1000 {
		l.run(tuner, rand.New(rand.NewPCG(1, 2)), 0.05, 0, 1)
		if tuner.workers != 1 {
			t.Fatalf("%d workers", tuner.workers)
		}
	}
}

// Windows are long enough in time where batches are tiny.
func TestWorkerTunerTinyBatches(t *testing.T) {
	tuner := &workerTuner{most: 4, home: 1, workers: 1, up: true}
	l := loop{ms(0.01, 0.01, 0.005, 0.006, 0.007), always(0.9)}
	mean, got := l.run(tuner, rand.New(rand.NewPCG(1, 2)), 0.3, 3000, 30_000)
	if got != 2 || mean > 5250 {
		t.Errorf("%d workers, %v a batch", got, mean)
	}
}
