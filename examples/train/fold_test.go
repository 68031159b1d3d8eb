package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/penstock/penstock/loader/sampler"
)

// The two parts must be all records, each once, whatever n and k.
func TestFoldParts(t *testing.T) {
	for _, n := range []int{5, 6, 20, 23, 5000} {
		for _, k := range []int{2, 3, 5} {
			for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
				t.Run(fmt.Sprintf("%d %d %T", n, k, order), func(t *testing.T) {
					held := records(fold{k, true, order}, n)
					all := append(records(fold{k, false, order}, n), held...)
					slices.Sort(all)
					for i, r := range all {
						if i != r {
							t.Fatalf("record %d is not there once", i)
						}
					}
					if len(all) != n || len(held) != n/k {
						t.Errorf("%d records, %d of them held out", len(all), len(held))
					}
				})
			}
		}
	}
}

// records reads a part in two pieces, as a loader would.
func records(f fold, n int) []int {
	seq := f.Epoch(n, 3, 1)
	out := make([]int, seq.Len())
	seq.Fill(0, out[:len(out)/2])
	seq.Fill(len(out)/2, out[len(out)/2:])
	return out
}

func TestFoldShuffles(t *testing.T) {
	f := fold{5, false, sampler.Shuffle{}}
	a := records(f, 1000)
	if slices.IsSorted(a) {
		t.Error("the part is not shuffled")
	}
	b := make([]int, 800)
	f.Epoch(1000, 3, 2).Fill(0, b)
	if slices.Equal(a, b) {
		t.Error("two epochs have the same order")
	}
}
