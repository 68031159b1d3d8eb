package source

import "iter"

// Seekable is a Source that can start at any sample without reading the samples before it.
type Seekable interface {
	Source

	// From is Samples without the first n samples.
	From(n int64) iter.Seq2[Sample, error]
}

// From yields the samples of s without the first n, in the cheapest way that s has: its own From, random access, or
// reading and dropping samples. Resumed runs start this way.
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

// readInOrder are the kinds whose samples From drops one by one although the source is Indexed: a folder of images
// would have to hold all names in memory, and a dataset compares its checksums only while it is read in order.
var readInOrder = map[string]bool{"imagefolder": true, "flat": true, "hdf5": true}

// InOrder yields the samples from number n on through random access.
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
