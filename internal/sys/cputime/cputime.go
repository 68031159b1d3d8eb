// Package cputime says how long this process has computed, which other work on the machine
// does not add to.
package cputime

import "time"

// Process returns how long the threads of this process have run on cores, all together; 0 where
// the system does not report.
func Process() time.Duration { return process() }

var began = time.Now()

// Clock is Process to measure by: where that is not known it is the time since the program
// began, and measuring needs a quiet machine.
func Clock() time.Duration {
	if t := process(); t > 0 {
		return t
	}
	return time.Since(began)
}
