package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/penstock/penstock/bench/internal/measure"
)

// Every case reads as many records as it says, each of them one that exists, and in random
// order none twice before all were read; and contenders take turns at whole batches.
func TestOrder(t *testing.T) {
	for _, c := range cases() {
		order := c.order(rand.New(rand.NewPCG(1, 1)))
		if len(order) != c.count {
			t.Errorf("%s: %d records, want %d", c.name, len(order), c.count)
		}
		if n := c.turn(); n < c.count && n%max(32, c.batch) != 0 {
			t.Errorf("%s: turns of %d records", c.name, n)
		}
		if c.open == nil {
			continue
		}
		part := slices.Clone(order[:min(len(order), c.records)])
		slices.Sort(part)
		if len(slices.Compact(part)) != len(part) || part[0] < 0 || part[len(part)-1] >= c.records {
			t.Errorf("%s: records twice, or that do not exist", c.name)
		}
	}
}

func TestRows(t *testing.T) {
	results := []measure.Result{
		{Name: "penstock", Rounds: []measure.Cost{{Wall: 2e-6, CPU: 2e-6}, {Wall: 1e-6, CPU: 1e-6}}},
		{Name: "h5py", Rounds: []measure.Cost{{Wall: 8e-6, CPU: 8e-6}, {Wall: 9e-6, CPU: 3e-6}}},
	}
	got := one{name: "a case"}.rows(results)
	want := []string{"a case", "h5py", "6.50 [4.00..9.00]", "3.50 [3.00..4.00]", "8.00", "1µs"}
	if len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("%q, want %q", got, want)
	}
	bare := one{name: "a case", file: "small", bare: openBytes}
	results[1].Name = bare.bareName()
	if got := bare.rows(results); got[0][0] != "without HDF5: a case" || got[0][1] != "copy() alone" {
		t.Errorf("%q", got)
	}
	if got := (one{name: "alone"}).rows(results[:1]); len(got) != 1 || got[0][1] != "nobody" {
		t.Errorf("%q", got)
	}
}

func TestPythons(t *testing.T) {
	t.Setenv("PYTHON", "a,b/c")
	if got := pythons(); !slices.Equal(got, []string{"a", "b/c"}) {
		t.Errorf("%q", got)
	}
	t.Setenv("PYTHON", "")
	if got := pythons(); !slices.Equal(got, []string{"python3"}) {
		t.Errorf("%q", got)
	}
}
