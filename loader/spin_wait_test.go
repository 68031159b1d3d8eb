package loader

import "testing"

// A loop that looks in vain does so less and less, and again as soon as it helps; and not at all
// where a worker would lose its core by that.
func TestSpinning(t *testing.T) {
	ld := new(Loader)
	ld.pool.workers = 1
	ld.stats.Cores = 2
	wait := func() bool { // as take does
		if !ld.spinsLocked() {
			return false
		}
		seen := ld.events.Load()
		ld.mu.Unlock()
		reported := ld.spin(seen)
		ld.mu.Lock()
		ld.spinner.note(reported)
		return reported
	}
	ld.ready.L = &ld.mu
	ld.mu.Lock()
	defer ld.mu.Unlock()
	looks := 0
	for range 1000 {
		before := ld.spinner.rest
		if wait() {
			t.Fatal("there are events, and nobody reported them")
		}
		if before == 0 {
			looks++
		}
	}
	if looks < mostVain || looks > mostVain+3 {
		t.Errorf("%d looks of 1000 waits", looks)
	}

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for reported := false; !reported; {
			ld.mu.Lock()
			reported = ld.spinner.vain == 0
			ld.tellLocked()
			ld.mu.Unlock()
		}
	}()
	for !wait() { // those that are slept through, and maybe some before the other one has a turn
	}
	if ld.spinner != (spinner{}) {
		t.Errorf("after events: %+v", ld.spinner)
	}
	ld.mu.Unlock()
	<-ended
	ld.mu.Lock()

	ld.pool.workers = 2
	if wait() || ld.spinner != (spinner{}) {
		t.Errorf("with a worker on every core: %+v", ld.spinner)
	}
}
