package schedule

import "time"

// Config configures a Schedule.
type Config struct {
	Slots Slots                // the memory of slots
	Clock func() time.Duration // the time, which is never 0

	Workers    int // that begin; 0 has the loop make its batches itself
	MinWorkers int // as few as there may be after tuning
	MaxWorkers int // as many
	Cores      int // that the process may use

	Prefetch  int // finished batches that are kept ready
	Unordered bool
	Timeout   time.Duration // the longest wait for one batch; 0 is no limit

	// Start starts MaxWorkers workers. It is called once, when there is something to do for them, with the lock held.
	Start func()

	// Stuck says why a batch, which is made in a slot, is not there after Timeout; the slot is -1 if the batch
	// was not begun. It is called with the lock held.
	Stuck func(epoch, step, slot int) error
}

// slots returns how many slots there are before workers are added.
func (c *Config) slots() int { return c.Prefetch + c.Workers + 1 }

// mostSlots returns how many slots may be needed.
func (c *Config) mostSlots() int { return c.Prefetch + c.MaxWorkers + 1 }
