package transforms

import "github.com/penstock/penstock/internal/kernel"

// weightCache keeps the weights of the axes resized lately. A folder of photos has few
// distinct sides, so nearly all are found.
type weightCache struct {
	entries [64]weightEntry
	clock   uint64
}

type weightEntry struct {
	weights kernel.Weights
	used    uint64 // clock of the last use; 0 is an empty entry
}

// get returns the weights for outputs [from, to). They stay valid for the next 63 calls.
func (c *weightCache) get(in, out, from, to int, f kernel.Filter) *kernel.Weights {
	c.clock++
	oldest := &c.entries[0]
	for i := range c.entries {
		e := &c.entries[i]
		w := &e.weights
		if w.In == in && w.Out == out && w.From == from && w.To == to && w.Filter == f {
			e.used = c.clock
			return w
		}
		if e.used < oldest.used {
			oldest = e
		}
	}
	oldest.weights.Init(in, out, from, to, f)
	oldest.used = c.clock
	return &oldest.weights
}
