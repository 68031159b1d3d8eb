package sampler

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/digest"
)

// Weighted draws records with replacement, each with a probability in proportion to its weight: the
// way to see rare classes more often. Each position is drawn independently, in constant time, from
// a hash of (seed, epoch, position) and an alias table of 8 bytes per record (Walker, 1977; built
// after Vose, 1991). A search in cumulative weights would take time that grows with the number of
// records.
//
// The same record may come more than once in an epoch, so that its random stream depends on the
// position too: it is augmented differently each time.
type Weighted struct {
	draws int
	table []alias
	id    string
}

// alias is a cell of the table of the alias method: record i itself with probability keep/2^32,
// otherwise the record other.
type alias struct {
	keep  uint32
	other uint32
}

var _ interface {
	Identifier
	Validator
	Repeater
} = (*Weighted)(nil)

// NewWeighted returns the Sampler for records with these weights. Only their ratios
// matter. draws is the number of positions of an epoch, at least 1. Weights must be finite and not
// negative, and some positive; there are at most 2^32-1.
func NewWeighted(weights []float64, draws int) (*Weighted, error) {
	sum, err := checkWeights(weights)
	if err != nil {
		return nil, fmt.Errorf("sampler: weighted: %w", err)
	}
	if draws < 1 {
		return nil, fmt.Errorf("sampler: weighted: %d draws; an epoch must have at least 1: len(weights) draws as many as "+
			"there are records", draws)
	}
	return &Weighted{draws: draws, table: newAliases(weights, sum), id: fmt.Sprintf("weighted(%s,%d)", digest.Of(weights),
		draws)}, nil
}

// Balanced returns weights with which every value of a label is drawn equally often: the weight of
// a record is 1 divided by the number of records with the same value.
func Balanced(labels []float64) []float64 {
	times := make(map[float64]int)
	for _, v := range labels {
		times[v]++
	}
	weights := make([]float64, len(labels))
	for i, v := range labels {
		weights[i] = 1 / float64(max(1, times[v])) // NaN is equal to no value
	}
	return weights
}

// WeightedOnce draws records without replacement: at each position, one of the records that were
// not yet drawn in the epoch, with a probability in proportion to its weight. An epoch sorts the
// records by a key that is drawn at random for each (Efraimidis and Spirakis, 2006), and takes 16
// bytes per record.
type WeightedOnce struct {
	draws   int
	weights []float64
	id      string
}

var _ interface {
	Identifier
	Validator
} = (*WeightedOnce)(nil)

// NewWeightedOnce returns the Sampler for records with these weights. draws is the number of
// positions of an epoch, at most the number of positive weights.
func NewWeightedOnce(weights []float64, draws int) (*WeightedOnce, error) {
	if _, err := checkWeights(weights); err != nil {
		return nil, fmt.Errorf("sampler: weighted: %w", err)
	}
	positive := 0
	for _, w := range weights {
		if w > 0 {
			positive++
		}
	}
	if draws < 1 || draws > positive {
		return nil, fmt.Errorf("sampler: weighted: %d draws without replacement; there must be from 1 to the %d records "+
			"with positive weights", draws, positive)
	}
	return &WeightedOnce{draws, slices.Clone(weights), fmt.Sprintf("weighted-once(%s,%d)", digest.Of(weights), draws)}, nil
}

// Epoch returns the draws of an epoch. They are made when the first position is asked for, so that
// an Epoch that is made only to know its length costs nothing.
func (o *WeightedOnce) Epoch(_ int, seed uint64, epoch int) Sequence {
	key := permute.Key(seed, epoch, onceKey)
	return onceSequence{o.draws, sync.OnceValue(func() []int { return o.draw(key) })}
}

// onceKey separates the draws without replacement from other draws with the same seed.
const onceKey = 1<<16 + 6

func (o *WeightedOnce) draw(key uint64) []int {
	keys, order := make([]float64, len(o.weights)), make([]int, 0, len(o.weights))
	for i, w := range o.weights {
		if w > 0 {
			u := (float64(permute.Mix64(key+permute.Mix64(uint64(i)))>>11) + 0.5) / (1 << 53)
			keys[i], order = math.Log(u)/w, append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[b], keys[a]) })
	return order[:o.draws]
}

// Validate returns an error unless each record has one weight.
func (o *WeightedOnce) Validate(n int) error {
	if len(o.weights) != n {
		return fmt.Errorf("weighted: %d weights for %d records", len(o.weights), n)
	}
	return nil
}

// ID returns a digest of the weights.
func (o *WeightedOnce) ID() string { return o.id }

type onceSequence struct {
	n     int
	order func() []int
}

func (s onceSequence) Len() int { return s.n }

func (s onceSequence) Fill(pos int, dst []int) { copy(dst, s.order()[pos:]) }

// checkWeights returns the sum of weights, and refuses weights that are negative or not finite.
func checkWeights(weights []float64) (sum float64, err error) {
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return 0, fmt.Errorf("weight %d is %v; weights must be finite and not negative", i, w)
		}
		sum += w
	}
	switch {
	case len(weights) > math.MaxUint32:
		return 0, fmt.Errorf("%d weights are more than 2^32-1", len(weights))
	case !(sum > 0) || math.IsInf(sum, 1):
		return 0, errors.New("the weights must have a positive, finite sum")
	}
	return sum, nil
}

// newAliases builds the alias table: it pairs each record below the mean weight with a record above
// it.
func newAliases(weights []float64, sum float64) []alias {
	n := len(weights)
	t := make([]alias, n)
	share := make([]float64, n) // in units of the mean
	small, large := make([]uint32, 0, n), make([]uint32, 0, n)
	for i, w := range weights {
		share[i] = w / sum * float64(n)
		if share[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		t[s] = alias{uint32(min(share[s]*(1<<32), math.MaxUint32)), l}
		if share[l] -= 1 - share[s]; share[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) { // what is left differs from 1 by rounding
		t[i] = alias{math.MaxUint32, i}
		if weights[i] == 0 {
			t[i] = alias{0, heaviest(weights)}
		}
	}
	return t
}

func heaviest(weights []float64) (at uint32) {
	for i, w := range weights {
		if w > weights[at] {
			at = uint32(i)
		}
	}
	return at
}

// Epoch returns the draws of an epoch. It allocates a few words.
func (o *Weighted) Epoch(_ int, seed uint64, epoch int) Sequence {
	return weightedSequence{o, permute.Key(seed, epoch, weightKey)}
}

// weightKey separates the draws with replacement from other draws with the same seed.
const weightKey = 1<<16 + 2

// Validate returns an error unless each record has one weight.
func (o *Weighted) Validate(n int) error {
	if len(o.table) != n {
		return fmt.Errorf("weighted: %d weights for %d records", len(o.table), n)
	}
	return nil
}

// ID returns a digest of the weights.
func (o *Weighted) ID() string { return o.id }

// Repeats returns true: a record may come more than once.
func (o *Weighted) Repeats() bool { return true }

type weightedSequence struct {
	o   *Weighted
	key uint64
}

func (s weightedSequence) Len() int { return s.o.draws }

func (s weightedSequence) Fill(pos int, dst []int) {
	for i := range dst {
		h := permute.Mix64(s.key + permute.Mix64(uint64(pos+i)))
		at := permute.Below(h, uint64(len(s.o.table)))
		dst[i] = int(at)
		if cell := s.o.table[at]; uint32(permute.Mix64(h)) >= cell.keep {
			dst[i] = int(cell.other)
		}
	}
}
