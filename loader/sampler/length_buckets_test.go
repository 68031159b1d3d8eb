package sampler_test

import (
	"testing"

	"github.com/penstock/penstock/loader/sampler"
)

func TestBucketsVisitEachRecordOnce(t *testing.T) {
	for _, n := range []int{1, 5, 16, 100, 1003} {
		for _, buckets := range []int{1, 3, 1000} {
			lengths := make([]int, n)
			for i := range lengths {
				lengths[i] = i * i % 91
			}
			o, err := sampler.NewLengthBuckets(lengths, 16, buckets)
			if err != nil {
				t.Fatal(err)
			}
			checkPermutation(t, "records", fillAll(t, o, n, 3, 1), upTo(n))
		}
	}
}
