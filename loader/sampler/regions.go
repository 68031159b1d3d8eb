package sampler

import (
	"fmt"

	"github.com/penstock/penstock/internal/permute"
)

// Regions is a shuffle whose reads stay near each other. It cuts the dataset into Count regions of
// consecutive records, shuffles each region separately, and fills every global batch with equally
// many records of each, region by region. With as many hosts as regions, a host then reads one
// region and no other in every epoch: a cache that holds a Count-th of the dataset serves all
// epochs after the first, where Shuffle would send every record past every host. A global batch is
// as varied as a batch of Shuffle; the choice of records that meet in one host's part is not.
//
// The records that are left over, fewer than Batch and Count together, come last, region by region.
type Regions struct {
	Count int     // regions: the hosts, or a multiple of them
	Batch int     // records of a global batch, Options.BatchSize times World.Size; a multiple of Count
	Inner Sampler // within a region; nil means Shuffle
}

var _ interface {
	Identifier
	Validator
} = Regions{}

// Epoch returns the permutation that belongs to (Count, Batch, Inner, n, seed, epoch). It sets up
// Count inner orders.
func (o Regions) Epoch(n int, seed uint64, epoch int) Sequence {
	s := regionsSequence{n: n, size: n / o.Count, each: o.Batch / o.Count, inner: make([]Sequence, o.Count)}
	s.steps = s.size / s.each
	order := o.inner()
	for i := range s.inner {
		s.inner[i] = order.Epoch(s.size, permute.Mix64(seed+uint64(i+1)*regionKey), epoch)
	}
	return s
}

// Validate refuses options with which the Sampler cannot order n records.
func (o Regions) Validate(n int) error {
	switch {
	case o.Count < 1 || o.Count > n:
		return fmt.Errorf("Regions: Count is %d; it must be from 1 to the number of records, %d", o.Count, n)
	case o.Batch <= 0:
		return fmt.Errorf("Regions: Batch is %d; it must be BatchSize times World.Size", o.Batch)
	case o.Batch < o.Count || o.Batch%o.Count != 0:
		return fmt.Errorf("Regions: a batch of all processes has %d records, which cannot be divided evenly among %d "+
			"regions; choose a multiple", o.Batch, o.Count)
	}
	if err := Validate(o.inner(), n/o.Count); err != nil {
		return err
	}
	if Repeats(o.inner()) || o.inner().Epoch(n/o.Count, 0, 0).Len() != n/o.Count {
		return fmt.Errorf("Regions: Inner is %s, which does not visit each record once; Shuffle, Block and Sequential do",
			ID(o.Inner))
	}
	return nil
}

// ID returns "regions(128,4096)/shuffle" for 128 regions and global batches of 4,096 records.
func (o Regions) ID() string {
	return fmt.Sprintf("regions(%d,%d)/%s", o.Count, o.Batch, ID(o.inner()))
}

func (o Regions) inner() Sampler {
	if o.Inner == nil {
		return Shuffle{}
	}
	return o.Inner
}

// regionKey gives each region a seed of its own.
const regionKey = 0x9e3779b97f4a7c15

type regionsSequence struct {
	n     int
	size  int // records of a region
	each  int // records of a region in a global batch
	steps int // global batches with their full share of every region
	inner []Sequence
}

func (s regionsSequence) Len() int { return s.n }

func (s regionsSequence) Fill(pos int, dst []int) {
	for len(dst) > 0 {
		region, in, n := s.at(pos)
		n = min(n, len(dst))
		s.stretch(region, in, dst[:n])
		pos, dst = pos+n, dst[n:]
	}
}

// at returns the region of position pos, the place in the region's order, and for how many
// positions that order continues. Records outside of all regions count as one more region.
func (s regionsSequence) at(pos int) (region, in, n int) {
	if batch := s.each * len(s.inner); pos < s.steps*batch {
		step, in := pos/batch, pos%batch
		return in / s.each, step*s.each + in%s.each, s.each - in%s.each
	}
	pos -= s.steps * s.each * len(s.inner)
	left := s.size - s.steps*s.each
	if pos < left*len(s.inner) {
		return pos / left, s.steps*s.each + pos%left, left - pos%left
	}
	pos -= left * len(s.inner)
	return len(s.inner), pos, s.n - s.size*len(s.inner) - pos
}

// stretch sets dst to the records of a region's order from place in on.
func (s regionsSequence) stretch(region, in int, dst []int) {
	if region == len(s.inner) {
		sequential(s.n).Fill(region*s.size+in, dst)
		return
	}
	s.inner[region].Fill(in, dst)
	for i := range dst {
		dst[i] += region * s.size
	}
}
