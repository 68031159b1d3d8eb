// Package measure compares programs that do the same work, in turn, in one run.
//
// A machine that others use is slow in one second and fast in the next. So the work is cut
// into small parts, all contenders do a part one after the other, and the result is the
// ratio of two contenders within a round: its median, lowest and highest over the rounds.
// CPU times depend less on what other programs do than wall-clock times.
package measure

import (
	"time"

	"github.com/penstock/penstock/internal/sys/usage"
)

// Cost is the time that work took, in seconds.
type Cost struct {
	Wall float64 `json:"wall"`           // by the clock
	CPU  float64 `json:"cpu"`            // CPU time of all threads of the process
	Read float64 `json:"read,omitempty"` // bytes that storage read for the process, where the system counts them
}

// CPU returns the CPU time.
func CPU(s Cost) float64 { return s.CPU }

// Wall returns the time by the clock.
func Wall(s Cost) float64 { return s.Wall }

// Read returns the bytes read from storage.
func Read(s Cost) float64 { return s.Read }

// Time measures f.
func Time(f func() error) (Cost, error) {
	began := Begin()
	err := f()
	return began.Cost(), err
}

// Began is when work began.
type Began struct {
	wall time.Time
	cpu  time.Duration
	read int64
}

// Begin looks at the clocks.
func Begin() Began { return Began{time.Now(), usage.Clock(), usage.StorageRead()} }

// Cost returns the cost of the work up to now.
func (b Began) Cost() Cost {
	return Cost{time.Since(b.wall).Seconds(), (usage.Clock() - b.cpu).Seconds(), float64(usage.StorageRead() - b.read)}
}

// Per returns the cost of one of n items.
func (s Cost) Per(n int) Cost {
	return Cost{s.Wall / float64(n), s.CPU / float64(n), s.Read / float64(n)}
}

func (s Cost) plus(o Cost) Cost { return Cost{s.Wall + o.Wall, s.CPU + o.CPU, s.Read + o.Read} }
