//go:build !linux

package transforms

import "time"

var began = time.Now()

// cpuTime returns the time that has passed: where the CPU's is not to be had, benchmarks need
// a quiet machine.
func cpuTime() time.Duration { return time.Since(began) }
