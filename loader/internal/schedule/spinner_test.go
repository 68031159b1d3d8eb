package schedule

import "testing"

// A loop that looks in vain does so less and less, and again as soon as it helps; and not at all
// where a worker would lose its core by that.
func TestSpinning(t *testing.T) {
	var (
		s       Schedule
		workers = 1
	)
	const cores = 2
	s.ready.L = &s.mu
	wait := func() bool { // as Take does
		if !s.spinner.spins(workers, cores) {
			return false
		}
		seen := s.events.n.Load()
		s.mu.Unlock()
		reported := s.events.spin(seen)
		s.mu.Lock()
		s.spinner.note(reported)
		return reported
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	looks := 0
	for range 1000 {
		before := s.spinner.rest
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
			s.mu.Lock()
			reported = s.spinner.vain == 0
			s.tellLocked()
			s.mu.Unlock()
		}
	}()
	for !wait() { // those that are slept through, and maybe some before the other one has a turn
	}
	if s.spinner != (spinner{}) {
		t.Errorf("after events: %+v", s.spinner)
	}
	s.mu.Unlock()
	<-ended
	s.mu.Lock()

	workers = cores
	if wait() || s.spinner != (spinner{}) {
		t.Errorf("with a worker on every core: %+v", s.spinner)
	}
}
