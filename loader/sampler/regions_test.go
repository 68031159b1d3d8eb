package sampler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/sampler"
)

func TestRegionsIsAPermutation(t *testing.T) {
	for _, c := range []struct{ n, count, batch int }{{1, 1, 1}, {7, 7, 7}, {10, 3, 3}, {10, 3, 6}, {100, 4, 8}, {103, 4, 8}, {5, 4, 400}, {40_011, 8, 64}} {
		for _, inner := range []sampler.Sampler{nil, sampler.Block{Size: 4}, sampler.Sequential{}} {
			o := sampler.Regions{Count: c.count, Batch: c.batch, Inner: inner}
			require.NoError(t, o.Validate(c.n))
			first, second := fillAll(t, o, c.n, 9, 0), fillAll(t, o, c.n, 9, 1)
			checkPermutation(t, fmt.Sprint(c), first, upTo(c.n))
			checkPermutation(t, fmt.Sprint(c), second, upTo(c.n))
			size, each := c.n/c.count, c.batch/c.count
			for pos, r := range first[:size/each*each*c.count] { // of each global batch, region by region
				if region := pos % c.batch / each; r/size != region {
					t.Fatalf("%+v: record %d at %d is not of region %d", c, r, pos, region)
				}
			}
			if c.n >= 100 && inner == nil && (slices.Equal(first, second) || slices.Equal(first, fillAll(t, o, c.n, 8, 0))) {
				t.Errorf("%+v: the same order in two epochs or with two seeds", c)
			}
		}
	}
}

func TestRegionsDiffer(t *testing.T) {
	const n, count = 4000, 4
	seq := sampler.Regions{Count: count, Batch: n}.Epoch(n, 1, 0)
	all := make([]int, n)
	seq.Fill(0, all)
	for r := range count - 1 {
		same := 0
		for i := range n / count {
			if all[r*n/count+i]+n/count == all[(r+1)*n/count+i] {
				same++
			}
		}
		if same > 10 { // one is expected of independent permutations
			t.Errorf("regions %d and %d have %d records at the same place", r, r+1, same)
		}
	}
}

func TestRegionsAreAsRandomAsAShuffle(t *testing.T) {
	const n, batch = 1_000_000, 4096
	if got := sampler.Randomness(sampler.Regions{Count: 64, Batch: batch}, n, batch, 1, 1); got < 0.98 {
		t.Errorf("randomness of a global batch: %.3f", got)
	}
}
