//go:build !linux

package doctor

import "runtime"

func sharedMemory() finding {
	return finding{
		Name: "shared memory", Found: "not used on " + runtime.GOOS,
		Advice: "feed and penstock.Feeder share memory between processes on Linux only; use penstock.DataLoader or the Go loader here",
	}
}
