package samples

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Share is a split and its share of the records.
type Share struct {
	Name  string
	Share float64 // in (0, 1]; those of all splits add up to 1
}

// ParseSplit reads NAME=SHARE,... such as train=0.9,val=0.1. Shares that do not add up to 1
// are an error.
func ParseSplit(text string) (list []Share, err error) {
	if text == "" {
		return nil, nil
	}
	sum := 0.0
	for _, part := range strings.Split(text, ",") {
		name, share, ok := strings.Cut(strings.TrimSpace(part), "=")
		x, err := strconv.ParseFloat(share, 64)
		if !ok || err != nil || !(x > 0) || x > 1 || name == "" {
			return nil, fmt.Errorf("%q is not NAME=SHARE with a share above 0, such as train=0.9,val=0.1", part)
		}
		for _, s := range list {
			if s.Name == name {
				return nil, fmt.Errorf("there are two splits %q", name)
			}
		}
		list = append(list, Share{name, x})
		sum += x
	}
	if math.Abs(sum-1) > 1e-9 {
		return nil, fmt.Errorf("the shares add up to %v, not to 1", sum)
	}
	return list, nil
}

// SplitText is what ParseSplit reads.
func SplitText(list []Share) string {
	var parts []string
	for _, s := range list {
		parts = append(parts, s.Name+"="+strconv.FormatFloat(s.Share, 'g', -1, 64))
	}
	return strings.Join(parts, ",")
}

// Splitter says which split a sample belongs to. Without strata that follows from the
// sample's content alone: it is the same in every run, whatever else is there.
//
// With strata the splits of each class have their shares to within one record: a record goes
// by its content to one of those splits that are behind. That depends on the records of its
// class that came before, so a record stays where it is when others follow it.
type Splitter struct {
	shares []Share
	strata bool
	counts map[int64][]int64 // of a class, by split
}

// NewSplitter returns a Splitter into shares, which strata have each for itself.
func NewSplitter(shares []Share, strata bool) *Splitter {
	return &Splitter{shares: shares, strata: strata, counts: make(map[int64][]int64)}
}

// Counts returns how many records of each class are in each split, with strata.
func (s *Splitter) Counts() map[int64][]int64 { return s.counts }

// Restore takes over the counts of another Splitter.
func (s *Splitter) Restore(counts map[int64][]int64) {
	if counts != nil {
		s.counts = counts
	}
}

// Possible reports whether counts can be those of a Splitter like s.
func (s *Splitter) Possible(counts map[int64][]int64) bool {
	for _, n := range counts {
		if len(n) != len(s.shares) || slices.Min(append(n[:len(n):len(n)], 0)) < 0 {
			return false
		}
	}
	return true
}

// Choose returns the split of the next sample.
func (s *Splitter) Choose(hash []byte, class int64) string {
	weights := make([]float64, len(s.shares))
	for i, p := range s.shares {
		weights[i] = p.Share
	}
	if s.strata {
		s.behind(class, weights)
	}
	i := pick(hash, weights)
	if s.strata {
		s.counts[class][i]++
	}
	return s.shares[i].Name
}

// behind turns shares into how many records each split lacks.
func (s *Splitter) behind(class int64, weights []float64) {
	counts := s.counts[class]
	if counts == nil {
		counts = make([]int64, len(s.shares))
		s.counts[class] = counts
	}
	total := int64(1)
	for _, n := range counts {
		total += n
	}
	for i, p := range s.shares {
		weights[i] = math.Max(0, float64(p.Share*float64(total))-float64(counts[i]))
	}
}

// pick chooses by the first 8 bytes of a hash, as likely as the weights say.
func pick(hash []byte, weights []float64) int {
	sum, last := 0.0, 0
	for i, w := range weights {
		if w > 0 {
			last = i
		}
		sum += w
	}
	u := float64(binary.BigEndian.Uint64(hash)>>11) / (1 << 53) * sum
	for i, w := range weights {
		if u < w {
			return i
		}
		u -= w
	}
	return last
}
