package combine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/tensor"
)

// numbered returns a Source of an array whose elements are their numbers, in the order of memory.
func numbered(t *testing.T, group []int64, shape ...int) loader.Source {
	x := make([]int32, tensor.Shape(shape).Elems())
	for i := range x {
		x[i] = int32(i)
	}
	arrays := []combine.Array{{Name: "x", Values: tensor.From(x, shape[1:]...)}}
	if group != nil {
		arrays = append(arrays, combine.Array{Name: "group", Values: tensor.From(group)})
	}
	src, err := combine.NewArrays(arrays...)
	require.NoError(t, err)
	return src
}

// TestSplits divides axes, and finds no element in two parts.
func TestSplits(t *testing.T) {
	for seed := range uint64(*programs) {
		r := random(t, seed)
		n := 20 + r.IntN(200)
		s := combine.Splits{Shares: []float64{0.6, 0.2, 0.2}, Gap: r.IntN(4)}
		if r.IntN(2) == 0 {
			s.Block, s.Seed = 1+r.IntN(12), seed
		}
		parts, err := s.Of(n)
		require.NoError(t, err)
		of := make([]int, n)
		for k, ranges := range parts {
			for _, run := range ranges {
				for i := run[0]; i < run[1]; i++ {
					if of[i] != 0 {
						t.Fatalf("seed %d: element %d is in parts %d and %d", seed, i, of[i], k+1)
					}
					of[i] = k + 1
				}
			}
		}
		for i := 1; i < n; i++ {
			if s.Gap > 0 && of[i] != of[i-1] && of[i] != 0 && of[i-1] != 0 {
				t.Fatalf("seed %d: parts %d and %d without a gap at %d", seed, of[i-1], of[i], i)
			}
		}
		if again, err := s.Of(n); err != nil || fmt.Sprint(again) != fmt.Sprint(parts) {
			t.Fatalf("seed %d: another time %v", seed, again)
		}
	}
	group := []int64{5, 5, 1, 1, 1, 5, 9, 9, 3}
	parts, err := combine.Splits{Shares: []float64{0.5, 0.5}, Seed: 3}.OfGroups(t.Context(), numbered(t, group, len(group)), "group")
	require.NoError(t, err)
	in := map[int64]int{}
	covered := 0
	for k, ranges := range parts {
		for _, run := range ranges {
			covered += run[1] - run[0]
			for _, g := range group[run[0]:run[1]] {
				if in[g] != 0 && in[g] != k+1 {
					t.Errorf("group %d is in two parts", g)
				}
				in[g] = k + 1
			}
		}
	}
	if covered != len(group) || len(parts[0]) == 0 || len(parts[1]) == 0 {
		t.Errorf("%v", parts)
	}
	for _, s := range []combine.Splits{{}, {Shares: []float64{0.7, 0.7}}, {Shares: []float64{-1}}, {Shares: []float64{1}, Block: -1}, {Shares: []float64{0}}, {Shares: []float64{1}, Seed: 1}} {
		if _, err := s.Of(10); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// TestAlong refuses ranges of an axis that has none.
func TestAlong(t *testing.T) {
	src := numbered(t, []int64{0, 0, 1, 1}, 4, 6)
	size := map[string]int{"0": 2, "1": 2}
	only := []combine.WindowField{{Name: "x"}}
	for want, w := range map[string]combine.Window{
		"along is the axis of ranges":                {Sizes: size, Along: "1", Fields: only},
		`along is "2", which is not an axis`:         {Sizes: size, Along: "2", Ranges: [][2]int{{0, 2}}, Fields: only},
		"groups are of the records":                  {Sizes: size, Along: "1", Ranges: [][2]int{{0, 2}}, Group: "group", Fields: only},
		`range 0 is [0, 7); axis "1" has 6 elements`: {Sizes: size, Along: "1", Ranges: [][2]int{{0, 7}}, Fields: only},
	} {
		if _, err := combine.NewWindows(t.Context(), w, src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: size, Along: "1", Ranges: [][2]int{{0, 2}, {3, 6}}, Fields: only}, src)
	require.NoError(t, err)
	var columns []int
	for i := range ws.Len() {
		at := make([]int, 2)
		ws.Origin(i, at)
		columns = append(columns, at[1])
	}
	if want := []int{0, 3, 4, 0, 3, 4, 0, 3, 4}; !slices.Equal(columns, want) {
		t.Errorf("columns %v, want %v", columns, want)
	}
}

// TestGroupsOfFloats refuses NaN, which would be a group of its own for each record, and has 0 and -0 as one value.
func TestGroupsOfFloats(t *testing.T) {
	nan, negative := math.NaN(), math.Copysign(0, -1)
	src, err := combine.NewArrays(
		combine.Array{Name: "x", Values: tensor.From([]int32{0, 1, 2, 3})},
		combine.Array{Name: "f64", Values: tensor.From([]float64{1, 1, nan, nan})},
		combine.Array{Name: "f32", Values: tensor.From([]float32{1, 1, float32(nan), 1})},
		combine.Array{Name: "f16", Values: tensor.From([]tensor.Half{0, 0, 0x7e00, 0})},
		combine.Array{Name: "bf16", Values: tensor.From([]tensor.Brain{0, 0, 0x7fc1, 0})},
		combine.Array{Name: "zero", Values: tensor.From([]float64{0, negative, 0, negative})},
		combine.Array{Name: "inf", Values: tensor.From([]float32{0, float32(math.Inf(1)), float32(math.Inf(1)), float32(math.Inf(-1))})},
	)
	require.NoError(t, err)
	windows := func(group string) (*combine.Windows, error) {
		return combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 2}, Group: group,
			Fields: []combine.WindowField{{Name: "x"}}}, src)
	}
	for _, group := range []string{"f64", "f32", "f16", "bf16"} {
		want := fmt.Sprintf("record 2 of %q is NaN", group)
		if _, err := windows(group); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", group, err, want)
		}
		if _, err := (combine.Splits{Shares: []float64{0.5}}).OfGroups(t.Context(), src, group); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("splits: %s: %v, want %q", group, err, want)
		}
	}
	for group, want := range map[string]int{"zero": 3, "inf": 1} {
		if ws, err := windows(group); err != nil || ws.Len() != want {
			t.Errorf("%s: %v windows, %v; want %d", group, ws, err, want)
		}
	}
	parts, err := combine.Splits{Shares: []float64{1}}.OfGroups(t.Context(), src, "zero")
	if err != nil || fmt.Sprint(parts) != "[[[0 4]]]" {
		t.Errorf("splits: %v, %v", parts, err)
	}
}
