package sampler

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/permute"
)

// Split is a Sampler of a random part of the records: the records whose places in a permutation by
// Seed are between the fractions From and To of its length. Parts with the same Seed and adjacent
// ranges are disjoint and leave no record out: {0, 0.9} and {0.9, 1} are a training and a
// validation set, the same in every epoch and in every process. No list of records is stored.
type Split struct {
	Seed     uint64  // of the permutation; has nothing to do with Options.Seed
	From, To float64 // 0 <= From < To <= 1
	Inner    Sampler // of the records of the part; nil means Sequential
}

var _ interface {
	Identifier
	Validator
	Repeater
} = Split{}

// Epoch returns the order of the records of the part.
func (o Split) Epoch(n int, seed uint64, epoch int) Sequence {
	from, to := o.bounds(n)
	return splitSequence{inner(o.Inner, to-from, seed, epoch), permute.New(n, o.Seed, splitEpoch), from}
}

// splitEpoch is the epoch number of the permutation that divides the records. No training epoch has
// this number, so that the order within a part is unrelated to the division.
const splitEpoch = -1 << 62

func (o Split) bounds(n int) (from, to int) {
	return int(math.RoundToEven(float64(n) * o.From)), int(math.RoundToEven(float64(n) * o.To))
}

// Validate refuses an invalid range, and a range without a record.
func (o Split) Validate(n int) error {
	if !(o.From >= 0 && o.From < o.To && o.To <= 1) {
		return fmt.Errorf("Split: From is %v and To is %v; they must be shares, 0 <= From < To <= 1", o.From, o.To)
	}
	from, to := o.bounds(n)
	if from == to && n > 0 {
		return fmt.Errorf("Split: [%v, %v) of %d records is empty", o.From, o.To, n)
	}
	return Validate(o.Inner, to-from)
}

// Repeats reports whether Inner draws with replacement.
func (o Split) Repeats() bool { return Repeats(o.Inner) }

// ID identifies the part and the inner Sampler.
func (o Split) ID() string {
	return fmt.Sprintf("split(%d,%v,%v)/%s", o.Seed, o.From, o.To, ID(o.Inner))
}

type splitSequence struct {
	Sequence
	places permute.Permutation
	from   int
}

func (s splitSequence) Batches(whole bool) Batches { return BatchesOf(s.Sequence, whole) }

func (s splitSequence) Fill(pos int, dst []int) {
	s.Sequence.Fill(pos, dst)
	for i := range dst {
		dst[i] += s.from
	}
	s.places.Map(dst)
}
