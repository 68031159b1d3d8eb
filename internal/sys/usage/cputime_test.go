package usage

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

// The machine is at least as busy as this process, and has its cores.
func TestMachine(t *testing.T) {
	before, cores := Machine()
	if cores == 0 {
		t.Skip("the system does not say how busy the machine is")
	}
	start := Process()
	for sum := 0; Process()-start < 50*time.Millisecond; sum++ {
		runtime.KeepAlive(sum)
	}
	if after, _ := Machine(); after-before < 20*time.Millisecond || cores < 1 {
		t.Errorf("%v busy on %d cores after 50 ms of computing", after-before, cores)
	}
	if StorageRead() < 0 {
		t.Error("less than nothing was read")
	}
}

func TestAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Clock() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
