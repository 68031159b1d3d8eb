//go:build !linux

package doctor

import "runtime"

// sharedMemory says that feed's shared memory does not exist on this system.
func sharedMemory() finding {
	return finding{
		Name: "shared memory", Found: "not used on " + runtime.GOOS,
		Advice: "feed and penstock.DataLoader share memory between processes on Linux only; use penstock.open or the Go " +
			"loader here",
	}
}
