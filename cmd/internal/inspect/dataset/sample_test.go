package dataset

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSampleIsASortedSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 30 {
		for count := range n + 1 {
			got := Sample(rng, n, count)
			if len(got) != count || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != count {
				t.Fatalf("%d of %d: %v", count, n, got)
			}
			if count > 0 && (got[0] < 0 || got[count-1] >= n) {
				t.Fatalf("%d of %d: %v", count, n, got)
			}
		}
	}
}
