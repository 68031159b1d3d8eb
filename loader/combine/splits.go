package combine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader"
)

// Splits divides the elements of an axis into parts, such as a training and a validation set. The
// ranges of a part go into a [Window]: windows of two parts then share no element, where a split of
// the windows themselves would leak training data into the validation set.
type Splits struct {
	Shares []float64 // of each part; at most 1 in all
	Block  int       // elements of a block that belongs to one part, drawn by Seed; with 0, parts follow each other
	Gap    int       // elements that are left out where another part ends
	Seed   uint64
}

// Of returns the ranges of each part of an axis of n elements.
func (s Splits) Of(n int) ([][][2]int, error) {
	if s.Block < 0 || s.Gap < 0 {
		return nil, fmt.Errorf("combine: splits: a block of %d and a gap of %d; they must not be negative", s.Block, s.Gap)
	}
	if s.Seed != 0 && s.Block == 0 {
		return nil, fmt.Errorf("combine: splits: Seed is %d, and draws blocks only; set Block, or leave Seed out", s.Seed)
	}
	total, block := n, 1
	drawn := func(i int) int { return i }
	if s.Block > 0 {
		block = s.Block
		total = (n + block - 1) / block
		drawn = permute.New(total, s.Seed, 0).At
	}
	part, err := s.parts(total, drawn)
	if err != nil {
		return nil, err
	}
	out := make([][][2]int, len(s.Shares))
	for a := 0; a < total; {
		b := a + 1
		for b < total && part[b] == part[a] {
			b++
		}
		first, end := a*block, min(n, b*block)
		if a > 0 {
			first += s.Gap
		}
		if k := part[a]; k >= 0 && first < end {
			out[k] = append(out[k], [2]int{first, end})
		}
		a = b
	}
	return out, nil
}

// OfGroups returns the ranges of records of each part. All records in which a field has one value are in one part,
// which is drawn by Seed. It reads the field.
func (s Splits) OfGroups(ctx context.Context, src loader.Source, field string) ([][][2]int, error) {
	if s.Block != 0 || s.Gap != 0 {
		return nil, errors.New("combine: splits: Block and Gap are not for groups; leave them out")
	}
	m, err := newMember(src)
	if err != nil {
		return nil, err
	}
	cuts, err := borders(ctx, &m, field)
	if err != nil {
		return nil, fmt.Errorf("combine: splits: %w", err)
	}
	runs := divide([][2]int{{0, src.Len()}}, cuts)
	numbers, groups, err := groupsOf(ctx, &m, field, runs)
	if err != nil {
		return nil, fmt.Errorf("combine: splits: %w", err)
	}
	part, err := s.parts(groups, permute.New(groups, s.Seed, 0).At)
	if err != nil {
		return nil, err
	}
	out := make([][][2]int, len(s.Shares))
	for i, r := range runs {
		if k := part[numbers[i]]; k >= 0 {
			out[k] = append(out[k], r)
		}
	}
	return out, nil
}

// groupsOf numbers the values that a field has in runs of records, in the order of their first
// appearance. One value may have several runs.
func groupsOf(ctx context.Context, src *member, field string, runs [][2]int) (numbers []int, n int, err error) {
	if err := src.Retain(); err != nil {
		return nil, 0, err
	}
	defer src.Release()
	specs := src.Specs()
	firsts := make([]int, len(runs))
	for i, r := range runs {
		firsts[i] = r[0]
	}
	size := specs[fieldOf(specs, field)].RecordBytes()
	data := make([]byte, len(runs)*size)
	if err := src.Gather(ctx, field, firsts, data); err != nil {
		return nil, 0, err
	}
	known := make(map[string]int)
	if d := specs[fieldOf(specs, field)].DType; d.IsFloat() {
		comparable(data, d)
	}
	for i := range runs {
		value := string(data[i*size : (i+1)*size])
		if _, ok := known[value]; !ok {
			known[value] = len(known)
		}
		numbers = append(numbers, known[value])
	}
	return numbers, len(known), nil
}

// parts returns the part of each of n elements, -1 for an element in no part. Cumulated shares are
// rounded, so that parts differ from their shares by at most one element.
func (s Splits) parts(n int, drawn func(int) int) ([]int, error) {
	part, sum, at := make([]int, n), 0.0, 0
	for i := range part {
		part[i] = -1
	}
	for k, share := range s.Shares {
		if sum += share; !(share > 0) || sum > 1+1e-9 {
			return nil, fmt.Errorf("combine: splits: the shares are %v; they must be above 0, and at most 1 in all", s.Shares)
		}
		for end := min(n, int(math.RoundToEven(float64(n)*sum))); at < end; at++ {
			part[drawn(at)] = k
		}
	}
	if len(s.Shares) == 0 {
		return nil, errors.New("combine: splits: no share is given")
	}
	return part, nil
}
