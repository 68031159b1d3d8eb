//go:build !linux

package decode

import (
	"testing"
	"time"
)

var started = time.Now()

// cpuTime stands in for CPU time where that is not to be had.
func cpuTime(*testing.B) float64 { return time.Since(started).Seconds() }
