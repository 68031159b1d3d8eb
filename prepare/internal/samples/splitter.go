package samples

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Splitter chooses the split of each sample. Without strata, the choice follows from the sample's content alone: it is
// the same in every run, whatever other samples there are, so that no sample of a test split moves to training when a
// dataset grows.
//
// With strata, the splits of each class have their shares to within one record. A record and its copies count once: the
// first of them goes by its content to a split that lacks records, and its copies follow it, so that no copy of a test
// record is trained on. The choice depends on the records of the class that came before, so a record stays in its split
// when others follow it.
type Splitter struct {
	shares []Share
	strata bool
	bySize []int             // splits, the largest first
	counts map[int64][]int64 // of a class, by split
	first  *DigestSet        // contents with their splits; nil: no content comes twice, or none has strata
	fresh  []byte            // of first, since the last call of Fresh: entries of groupBytes
}

// groupBytes is the length of a digest and the number of its split.
const groupBytes = len(Digest{}) + 4

// Strata are the classes of which each is divided by the shares on its own.
type Strata uint8

const (
	NoStrata   Strata = iota
	ByClass           // where no content comes twice
	WithCopies        // by class, where a content may come again: it is remembered, so that its copies follow it
)

// NewSplitter returns a Splitter into shares.
func NewSplitter(shares []Share, strata Strata) *Splitter {
	s := &Splitter{shares: shares, strata: strata != NoStrata, counts: make(map[int64][]int64)}
	for i := range shares {
		s.bySize = append(s.bySize, i)
	}
	slices.SortStableFunc(s.bySize, func(a, b int) int { return cmp.Compare(shares[b].Share, shares[a].Share) })
	if strata == WithCopies {
		s.first = new(DigestSet)
	}
	return s
}

// Classes returns how many classes have come, with strata.
func (s *Splitter) Classes() int { return len(s.counts) }

// Known reports whether a sample of a class has come, with strata.
func (s *Splitter) Known(class int64) bool { return s.counts[class] != nil }

// Counts returns how many records of each class are in each split, with strata.
func (s *Splitter) Counts() map[int64][]int64 { return s.counts }

// Fresh returns the contents that are new since the last call, for Restore.
func (s *Splitter) Fresh() []byte {
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

// FreshBytes returns the length of the result of Fresh.
func (s *Splitter) FreshBytes() int { return len(s.fresh) }

// Restore takes over the counts of another Splitter, and contents that are new to s.
func (s *Splitter) Restore(counts map[int64][]int64, fresh []byte) {
	if counts != nil {
		s.counts = counts
	}
	for g := range slices.Chunk(fresh, groupBytes) {
		if s.first != nil {
			s.first.Add(Digest(g[:len(Digest{})]), int64(binary.LittleEndian.Uint32(g[len(Digest{}):])))
		}
	}
}

// Possible reports whether counts and contents can come from a Splitter with the options of s. They are read from a
// journal, which may be of another version or corrupt.
func (s *Splitter) Possible(counts map[int64][]int64, fresh []byte) bool {
	for _, n := range counts {
		if len(n) != len(s.shares) || slices.Min(append(n[:len(n):len(n)], 0)) < 0 {
			return false
		}
	}
	if len(fresh)%groupBytes != 0 {
		return false
	}
	for g := range slices.Chunk(fresh, groupBytes) {
		if int64(binary.LittleEndian.Uint32(g[len(Digest{}):])) >= int64(len(s.shares)) {
			return false
		}
	}
	return true
}

// Add enters a record that is in a split already. A record of a split that s does not have does not count.
func (s *Splitter) Add(content Digest, class int64, split string) {
	i := slices.IndexFunc(s.shares, func(p Share) bool { return p.Name == split })
	if !s.strata || i < 0 {
		return
	}
	if s.first != nil {
		if _, added := s.first.Add(content, int64(i)); !added {
			return
		}
	}
	s.of(class)[i]++
}

// Choose returns the split of the next sample. hash decides among the splits that are possible; with
// strata, samples of the same content get the same split.
func (s *Splitter) Choose(hash, content Digest, class int64) string {
	if !s.strata {
		weights := make([]float64, len(s.shares))
		for i, p := range s.shares {
			weights[i] = p.Share
		}
		return s.shares[pick(hash[:], weights)].Name
	}
	if s.first != nil {
		if i, ok := s.first.Find(content); ok {
			return s.shares[i].Name
		}
	}
	counts := s.of(class)
	i := s.next(hash[:], counts)
	counts[i]++
	if s.first != nil {
		s.first.Add(content, int64(i))
		s.fresh = binary.LittleEndian.AppendUint32(append(s.fresh, content[:]...), uint32(i))
	}
	return s.shares[i].Name
}

// of returns the counts of a class.
func (s *Splitter) of(class int64) []int64 {
	counts := s.counts[class]
	if counts == nil {
		counts = make([]int64, len(s.shares))
		s.counts[class] = counts
	}
	return counts
}

// next returns the split of the next record of a class.
func (s *Splitter) next(hash []byte, counts []int64) int {
	total := int64(1)
	for _, n := range counts {
		total += n
	}
	weights := s.weights(counts)
	for range s.shares {
		i := pick(hash, weights)
		if weights[i] == 0 {
			break
		}
		if s.keeps(counts, total, i) {
			return i
		}
		weights[i] = 0
	}
	return s.last(counts, total)
}

// last returns the split that lacks most.
func (s *Splitter) last(counts []int64, total int64) (most int) {
	lacked := math.Inf(-1)
	for i, p := range s.shares {
		if lacks := float64(p.Share*float64(total)) - float64(counts[i]); lacks > lacked {
			most, lacked = i, lacks
		}
	}
	return most
}

// weights returns the probability of each split for the next record. The splits are asked one after
// the other, from the largest on: a record goes into a split with the chance that the split's share
// of the remaining splits gives it, and otherwise to the next split.
func (s *Splitter) weights(counts []int64) []float64 {
	weights := make([]float64, len(s.shares))
	left, share, total := 1.0, 0.0, int64(1)
	for i, p := range s.shares {
		share += p.Share
		total += counts[i]
	}
	for _, i := range s.bySize[:len(s.bySize)-1] {
		part := s.shares[i].Share / share
		p := chance(part, float64(part*float64(total))-float64(counts[i]))
		weights[i] = left * p
		left -= weights[i]
		share -= s.shares[i].Share
		total -= counts[i]
	}
	weights[s.bySize[len(s.bySize)-1]] = math.Max(0, left)
	return weights
}

// chance returns the probability with which the next record goes into a split. lacks is how many records
// the split lacks of its exact share, with this record counted. So the split's count is always its exact
// share, rounded down or up, and each record, wherever it stands, goes into the split as often as the
// share says. If the split that lacks most were chosen instead, an order with a period would give some
// of its places to one split only.
func chance(share, lacks float64) float64 {
	switch {
	case lacks <= 0: // it has its share, rounded up
		return 0
	case lacks >= 1: // it would have less than its share, rounded down
		return 1
	case lacks < share: // the exact share has just passed a whole number, which the count has reached before
		return lacks / (1 + lacks - share)
	}
	return share / (1 + share - lacks)
}

// horizon bounds how far keeps looks.
const horizon = 1 << 12

// keeps reports whether split next is not more than a record ahead, and every split can still be at most
// one record short, now and later, once the record that makes it total records is in next. Each later record
// helps one split only.
func (s *Splitter) keeps(counts []int64, total int64, next int) bool {
	if float64(counts[next]) >= float64(s.shares[next].Share*float64(total))+rounding {
		return false
	}
	if len(s.shares) < 3 {
		return true
	}
	for h := range int64(horizon) {
		need, ahead := int64(0), 0.0
		for i, p := range s.shares {
			n := counts[i]
			if i == next {
				n++
			}
			lacks := float64(p.Share*float64(total+h)) - float64(n)
			need += int64(math.Max(0, math.Ceil(lacks-1-rounding)))
			ahead += math.Max(0, -lacks)
		}
		if need > h {
			return false
		}
		if ahead <= 1 { // then the others lack one record in sum, and need no more than there are
			return true
		}
	}
	return true
}

// rounding is the tolerance for sums of shares.
const rounding = 1e-6

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
