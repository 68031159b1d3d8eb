package main

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRatios(t *testing.T) {
	one := []spent{{4, 0}, {9, 0}, {8, 0}}
	ours := []spent{{2, 0}, {3, 0}, {2, 0}}
	if got, want := ratios(one, ours, func(s spent) float64 { return s.wall }), "  3.00x [2.00..4.00]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ratios(one, ours, func(s spent) float64 { return s.cpu }); got != "too short to tell" {
		t.Errorf("%q", got)
	}
}

// Every case reads as many records as it says, each of them one that exists, and in random
// order none twice before all were read.
func TestOrder(t *testing.T) {
	for _, c := range cases(false) {
		order := c.order(rand.New(rand.NewPCG(1, 1)))
		if len(order) != c.count {
			t.Errorf("%s: %d records, want %d", c.name, len(order), c.count)
		}
		part := slices.Clone(order[:min(len(order), c.records)])
		slices.Sort(part)
		if len(slices.Compact(part)) != len(part) || len(part) > 0 && (part[0] < 0 || part[len(part)-1] >= c.records) {
			t.Errorf("%s: records twice, or that do not exist", c.name)
		}
	}
}
