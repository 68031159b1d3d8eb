package loadbench

import (
	"time"

	"github.com/penstock/penstock/loader"
)

// setup is one row to measure.
type setup struct {
	name, note  string
	unavailable string // why it cannot run
	src         loader.Source
	opts        loader.Options
	persistent  bool          // one Loader for all epochs, else one for each
	device      bool          // batches go to a CUDA device
	batches     int           // to stop after; 0 means all of the epochs
	minTime     time.Duration // to stop after, in addition to batches
	epochs      int           // to stop after; 0 means as many as batches need
	step        time.Duration
	published   *Published
	diagnosed   bool // it is the row whose diagnosis ends the run
	floor       floor
}

// floor is the least that the setup needs from the machine.
type floor struct {
	delay  time.Duration // a record, or a batch if once
	once   bool
	sleeps bool // the delay takes no CPU time, so that workers beyond the cores help
	makes  bool // records are generated
	views  bool // nothing is copied
}

// least returns the least time that the machine needs for the work of r: workers in parallel
// with the consumer, or one after the other if the consumer does everything.
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

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
