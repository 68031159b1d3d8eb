package cputime

import (
	"runtime"
	"testing"
	"time"
)

// Work takes time of both clocks.
func TestClocks(t *testing.T) {
	for name, now := range map[string]func() time.Duration{"Process": Process, "Clock": Clock} {
		if name == "Process" && now() == 0 {
			t.Logf("%s does not say", runtime.GOOS)
			continue
		}
		start := now()
		for sum := 0; now() == start; sum++ {
			runtime.KeepAlive(sum)
		}
		if now() < start {
			t.Errorf("%s runs backwards", name)
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Clock() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
