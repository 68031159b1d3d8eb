package loader_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/loader"
)

func TestRegionsIsAPermutation(t *testing.T) {
	for _, c := range []struct{ n, count, batch int }{{1, 1, 1}, {7, 7, 7}, {10, 3, 3}, {10, 3, 6}, {100, 4, 8}, {103, 4, 8}, {5, 4, 400}, {40_011, 8, 64}} {
		for _, inner := range []loader.Order{nil, loader.RunShuffle{Run: 4}, loader.Sequential{}} {
			o := loader.Regions{Count: c.count, Batch: c.batch, Inner: inner}
			if err := o.Validate(c.n); err != nil {
				t.Fatal(err)
			}
			first, second := fillAll(t, o, c.n, 9, 0), fillAll(t, o, c.n, 9, 1)
			checkPermutation(t, fmt.Sprint(c), first, upTo(c.n))
			checkPermutation(t, fmt.Sprint(c), second, upTo(c.n))
			if c.n >= 100 && inner == nil && (slices.Equal(first, second) || slices.Equal(first, fillAll(t, o, c.n, 8, 0))) {
				t.Errorf("%+v: the same order in two epochs or with two seeds", c)
			}
		}
	}
}

func TestRegionsDiffer(t *testing.T) {
	const n, count = 4000, 4
	seq := loader.Regions{Count: count, Batch: n}.Epoch(n, 1, 0)
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

// Each host reads its region, but for the last global batches, and in every epoch.
func TestRegionsKeepAHostAtItsRegion(t *testing.T) {
	const n, hosts, ranks, batch = 10_007, 4, 8, 16
	order := loader.Regions{Count: hosts, Batch: batch * ranks}
	for rank := range ranks {
		host := rank / (ranks / hosts)
		ld := open(t, newMemorySource(n, 4), loader.Options{BatchSize: batch, Order: order, Seed: 5, World: loader.World{Rank: rank, Size: ranks}})
		for epoch := range 2 {
			got := visit(t, ld, epoch)
			outside := 0
			for _, r := range got {
				if r < host*(n/hosts) || r >= (host+1)*(n/hosts) {
					outside++
				}
			}
			if outside > 2*batch {
				t.Errorf("rank %d, epoch %d: %d of %d records are outside of region %d", rank, epoch, outside, len(got), host)
			}
		}
	}
}

func TestRegionsAreAsRandomAsAShuffle(t *testing.T) {
	const n, batch = 1_000_000, 4096
	if got := loader.Randomness(loader.Regions{Count: 64, Batch: batch}, n, batch, 1); got < 0.98 {
		t.Errorf("randomness of a global batch: %.3f", got)
	}
}

func TestRegionsRefuse(t *testing.T) {
	weighted, err := loader.NewWeighted(slices.Repeat([]float64{1}, 25), 25)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		order loader.Regions
		want  string
	}{
		{loader.Regions{}, "Count is 0"},
		{loader.Regions{Count: 101, Batch: 101}, "Count is 101"},
		{loader.Regions{Count: 4}, "Batch is 0"},
		{loader.Regions{Count: 4, Batch: 10}, "a multiple of Count, 4"},
		{loader.Regions{Count: 4, Batch: 8, Inner: weighted}, "does not visit each record once"},
		{loader.Regions{Count: 4, Batch: 8, Inner: loader.Split{To: 0.5}}, "does not visit each record once"},
		{loader.Regions{Count: 4, Batch: 8, Inner: loader.Subset{Indices: []int{70}}}, "Source has 25 records"},
	} {
		_, err := loader.New(newMemorySource(100, 4), loader.Options{BatchSize: 8, Order: c.order})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.order, err, c.want)
		}
	}
}
