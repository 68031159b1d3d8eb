package loader

import "testing"

// A loop that looks in vain does so less and less, and again as soon as it helps; and not at all
// where a worker would lose its core by that.
func TestSpinning(t *testing.T) {
	ld := new(Loader)
	ld.tuner.workers = 1
	ld.stats.Cores = 2
	linger := func() bool { // as take does
		if !ld.spinsLocked() {
			return false
		}
		seen := ld.news.Load()
		ld.mu.Unlock()
		told := ld.spin(seen)
		ld.mu.Lock()
		ld.patience.note(told)
		return told
	}
	ld.ready.L = &ld.mu
	ld.mu.Lock()
	defer ld.mu.Unlock()
	looks := 0
	for range 1000 {
		before := ld.patience.rest
		if linger() {
			t.Fatal("there are news, and nobody told them")
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
		for told := false; !told; {
			ld.mu.Lock()
			told = ld.patience.vain == 0
			ld.tellLocked()
			ld.mu.Unlock()
		}
	}()
	for !linger() { // those that are slept through, and maybe some before the other one has a turn
	}
	if ld.patience != (patience{}) {
		t.Errorf("after news: %+v", ld.patience)
	}
	ld.mu.Unlock()
	<-ended
	ld.mu.Lock()

	ld.tuner.workers = 2
	if linger() || ld.patience != (patience{}) {
		t.Errorf("with a worker on every core: %+v", ld.patience)
	}
}
