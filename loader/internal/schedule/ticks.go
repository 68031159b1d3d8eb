package schedule

import (
	"errors"
	"strconv"
)

// MaxDisplacement is how far ahead of an earlier batch Unordered may deliver a batch. It is the
// number of bits that a Position has for early batches.
const MaxDisplacement = 64

// Ticks is a set of delivered ticks, relative to the first tick that was not delivered.
type Ticks uint64

func (t Ticks) has(i int) bool { return i < MaxDisplacement && t>>i&1 == 1 }
func (t *Ticks) add(i int)     { *t |= 1 << i }

// shift moves the base of the set by one tick.
func (t *Ticks) shift() { *t >>= 1 }

// String returns the set as a hexadecimal number; it is empty for the empty set.
func (t Ticks) String() string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(t), 16)
}

// ParseTicks returns the set that String wrote. The first bit must be 0: it stands for the first
// batch that was not delivered.
func ParseTicks(s string) (Ticks, error) {
	if s == "" {
		return 0, nil
	}
	t, err := strconv.ParseUint(s, 16, MaxDisplacement)
	if err == nil && t&1 == 1 {
		err = errors.New("the first batch that was not handed out was")
	}
	return Ticks(t), err
}

// Position is a place in a run.
type Position struct {
	Epoch int
	Step  int   // first that was not delivered
	Early Ticks // the ones after it that were
}
