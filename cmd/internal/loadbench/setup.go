package loadbench

import (
	"time"

	"github.com/penstock/penstock/loader"
)

// setup is one row to measure.
type setup struct {
	name, note  string
	unavailable string // why it cannot run; "" if it can
	src         loader.Source
	opts        loader.Options
	persistent  bool          // one Loader for all epochs, otherwise one for each
	device      bool          // batches go to a CUDA device
	batches     int           // end after these; 0 means all batches of the epochs
	minTime     time.Duration // and not before this time
	epochs      int           // end after these; 0 means as many as the batches need
	step        time.Duration
	published   *Published
	diagnosed   bool // the run's last line is this row's diagnosis
	floor       floor
}

// floor is the least work that a setup needs on any machine.
type floor struct {
	delay  time.Duration // per record, or per batch if once is set
	once   bool
	sleeps bool // the delay takes no CPU time, so workers beyond the number of cores help
	makes  bool // records are generated
	views  bool // nothing is copied
}

// least returns the shortest time in which the machine can do the work of r: with workers, making
// and using batches overlap, and the slower of the two counts; without workers they add up. It is a
// bound, not a prediction: it leaves out scheduling, page faults and cache misses.
func (s *setup) least(r *Result, m *Machine) time.Duration {
	f := s.floor
	units := r.Records
	if f.once {
		units = r.Batches
	}
	delay := f.delay.Seconds() * float64(units)
	var compute float64
	if f.makes {
		compute = float64(r.Bytes) / max(1, m.Generate)
	} else if !f.views {
		compute = float64(r.Bytes) / max(1, m.Memcpy)
	}
	if !f.sleeps {
		delay, compute = 0, compute+delay
	}
	pool := float64(max(1, r.Workers))
	cores := min(pool, float64(m.Cores))
	make := delay/pool + compute/cores
	use := float64(r.Bytes)/max(1, m.Read) + s.step.Seconds()*float64(r.Batches)
	if r.Workers == 0 {
		return seconds(make + use)
	}
	return seconds(max(make, use))
}

// seconds converts seconds to a Duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
