package loadbench

import (
	"fmt"

	"github.com/penstock/penstock/loader"
)

// capped is an Order that ends each epoch after so many records.
type capped struct {
	loader.Order
	most int
}

// Epoch returns the start of the epoch that the Order has.
func (c capped) Epoch(n int, seed uint64, epoch int) loader.Sequence {
	return cappedSequence{c.Order.Epoch(n, seed, epoch), c.most}
}

// ID tells the order, and where it ends.
func (c capped) ID() string { return fmt.Sprintf("%s[:%d]", orderName(c.Order), c.most) }

type cappedSequence struct {
	loader.Sequence
	most int
}

func (s cappedSequence) Len() int { return min(s.most, s.Sequence.Len()) }

// orderName returns how tables name an order.
func orderName(o loader.Order) string {
	switch o := o.(type) {
	case loader.Shuffle:
		return "shuffle"
	case interface{ ID() string }:
		return o.ID()
	}
	return "sequential"
}
