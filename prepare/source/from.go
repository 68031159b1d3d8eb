package source

import "iter"

// Seekable is a Source that can begin at any sample without reading those before it.
type Seekable interface {
	Source

	// From is Samples without the first n.
	From(n int64) iter.Seq2[Sample, error]
}

// From yields the samples of s without the first n, at the least cost that s allows.
func From(s Source, n int64) iter.Seq2[Sample, error] {
	if spanned, ok := s.(Seekable); ok {
		return spanned.From(n)
	}
	if indexed, ok := s.(Indexed); ok && !readInOrder[s.Info().Kind] {
		return InOrder(indexed, n)
	}
	return func(yield func(Sample, error) bool) {
		left := n
		for sample, err := range s.Samples() {
			if left > 0 && err == nil {
				left--
				continue
			}
			if !yield(sample, err) {
				return
			}
		}
	}
}

// readInOrder are the kinds whose samples are not asked for one by one: a folder of images
// would hold the names of all, and a dataset compares its checksums only in order.
var readInOrder = map[string]bool{"imagefolder": true, "flat": true, "hdf5": true}

// InOrder asks for the samples from number n on, one after the other.
func InOrder(s Indexed, n int64) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for i := n; i < s.Info().Count; i++ {
			sample, err := s.Sample(i)
			if !yield(sample, err) || err != nil {
				return
			}
		}
	}
}
