package source

import (
	"iter"
	"math/bits"
)

// without is a source that leaves out some samples by their position.
type without struct {
	Source
	info Info
	gone []uint64 // bit i%64 of word i/64 is set if sample i is left out
}

// Without returns s without the samples whose bit is set in gone: bit i%64 of word i/64 for sample i. It is Indexed
// if s is.
func Without(s Source, gone []uint64) Source {
	w := &without{s, s.Info(), gone}
	for _, word := range gone {
		w.info.Count -= int64(bits.OnesCount64(word))
	}
	indexed, ok := s.(Indexed)
	if !ok {
		return w
	}
	places := make([]int64, 0, w.info.Count)
	for i := range s.Info().Count {
		if !w.isGone(i) {
			places = append(places, i)
		}
	}
	return &indexedWithout{w, indexed, places}
}

func (w *without) isGone(i int64) bool { return w.gone[i/64]>>(i%64)&1 == 1 }

// Info implements Source.
func (w *without) Info() Info { return w.info }

// Samples implements Source.
func (w *without) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		i := int64(0)
		for sample, err := range w.Source.Samples() {
			if (err != nil || !w.isGone(i)) && !yield(sample, err) {
				return
			}
			i++
		}
	}
}

// indexedWithout is without with random access.
type indexedWithout struct {
	*without
	indexed Indexed
	places  []int64 // position in the source of each sample that is left
}

// Sample implements Indexed.
func (w *indexedWithout) Sample(i int64) (Sample, error) { return w.indexed.Sample(w.places[i]) }
