package source

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"github.com/penstock/penstock/store"
)

// splitSource is a source whose samples have splits by their position.
type splitSource struct {
	Source
	info   Info
	ranges []splitRange // sorted by first, without gaps
}

// splitRange is a run of samples of one split. It ends where the next range begins.
type splitRange struct {
	first int64
	name  string
}

// NewSplitSource returns a source whose samples carry splits, which must cover every sample. It is Indexed, and
// Ranged, if s is.
func NewSplitSource(s Source, splits []store.Split) Source {
	w := &splitSource{Source: s, info: s.Info()}
	for _, p := range splits {
		w.info.Splits = append(w.info.Splits, p.Name)
		for _, r := range p.Ranges {
			w.ranges = append(w.ranges, splitRange{r[0], p.Name})
		}
	}
	slices.SortFunc(w.ranges, func(a, b splitRange) int { return cmp.Compare(a.first, b.first) })
	if indexed, ok := s.(Indexed); ok {
		return &indexedSplits{w, indexed}
	}
	return w
}

// Info implements Source.
func (s *splitSource) Info() Info { return s.info }

// Samples implements Source.
func (s *splitSource) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		i := int64(0)
		for sample, err := range s.Source.Samples() {
			sample.Split = s.splitOf(i)
			if !yield(sample, err) {
				return
			}
			i++
		}
	}
}

// splitOf returns the split of sample i by binary search.
func (s *splitSource) splitOf(i int64) string {
	return s.ranges[sort.Search(len(s.ranges), func(k int) bool { return s.ranges[k].first > i })-1].name
}

// InRanges implements Ranged.
func (s *indexedSplits) InRanges(field int) bool {
	r, ok := s.indexed.(Ranged)
	return ok && r.InRanges(field)
}

// ReadRange implements Ranged, for a field of which InRanges is true.
func (s *indexedSplits) ReadRange(field int, a, b int64, dst []byte) error {
	return s.indexed.(Ranged).ReadRange(field, a, b, dst)
}

// indexedSplits is a splitSource with random access.
type indexedSplits struct {
	*splitSource
	indexed Indexed
}

// Sample implements Indexed.
func (s *indexedSplits) Sample(i int64) (Sample, error) {
	sample, err := s.indexed.Sample(i)
	sample.Split = s.splitOf(i)
	return sample, err
}
