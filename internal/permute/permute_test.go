package permute_test

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/permute"
)

// TestPermutations compares the three ways to ask for positions, and counts what they and a Reused give, on
// both sides of where a table is held in full.
func TestPermutations(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 255, 256, 257, 4096, 4097, 5000, 70_001} {
		p := permute.New(n, 42, -7)
		if p.Len() != n {
			t.Errorf("n %d: length %d", n, p.Len())
		}
		all := make([]int, n)
		p.Fill(0, all)
		mapped := make([]int, n)
		for i := range mapped {
			mapped[i] = n - 1 - i
		}
		p.Map(mapped)
		slices.Reverse(mapped)
		if !slices.Equal(mapped, all) {
			t.Errorf("n %d: Map is not Fill", n)
		}
		for i, r := range all {
			if p.At(i) != r {
				t.Fatalf("n %d: position %d: At returns %d, Fill %d", n, i, p.At(i), r)
			}
		}
		var reused permute.Reused
		reused.Prepare(uint64(n), 42)
		reused.Map(mapped)
		for _, x := range [][]int{all, mapped} {
			slices.Sort(x)
			for i, r := range x {
				if i != r {
					t.Fatalf("n %d: %d comes twice, or is missing", n, i)
				}
			}
		}
	}
}

// TestPlaces has no two of neighboring seeds and places with one seed.
func TestPlaces(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(100) {
		for _, first := range []uint64{0, 1 << 32, 0x510e527fade682d1} {
			for place := range uint64(100) {
				seen[permute.Place(seed, first+place)] = true
			}
		}
	}
	if len(seen) != 100*3*100 {
		t.Errorf("%d seeds of 30000 places", len(seen))
	}
}
