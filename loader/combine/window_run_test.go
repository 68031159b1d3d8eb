package combine_test

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/tensor"
)

// sliced counts the slices of a Source.
type sliced struct {
	loader.Source
	slices int
}

func (s *sliced) Slice(field string, a, b int) (tensor.View, error) {
	s.slices++
	return s.Source.Slice(field, a, b)
}

// TestWindowRuns has windows that follow each other be copied from one slice, and others from their own.
func TestWindowRuns(t *testing.T) {
	x := make([]int32, 100)
	for i := range x {
		x[i] = int32(i)
	}
	arrays, err := combine.NewArrays(combine.Array{Name: "x", Values: tensor.From(x)})
	require.NoError(t, err)
	src := &sliced{Source: arrays}
	for _, stride := range []int{1, 3, 7} { // of windows of 4: some share rows, and the last leave gaps
		w := combine.Window{Sizes: map[string]int{"0": 4}, Stride: map[string]int{"0": stride},
			Fields: []combine.WindowField{{Name: "x"}}}
		ws, err := combine.NewWindows(t.Context(), w, src)
		require.NoError(t, err)
		for _, c := range []struct {
			records []int
			want    int
		}{
			{[]int{0, 1, 2, 3, 4, 5}, 1}, {[]int{0, 1, 2, 8, 9, 10}, 2},
			{[]int{5, 3, 1}, 3}, {[]int{4, 5, 5, 6, 2}, 3}, {[]int{11}, 1},
		} {
			if src.slices = 0; stride > 4 {
				c.want = len(c.records)
			}
			got := make([]int32, 4*len(c.records))
			require.NoError(t, ws.Gather(t.Context(), "x", c.records, tensor.From(got).Bytes()))
			var want []int32
			for _, r := range c.records {
				want = append(want, x[r*stride:][:4]...)
			}
			if !slices.Equal(got, want) || src.slices != c.want {
				t.Errorf("stride %d, records %v: %v by %d slices; want %v by %d", stride, c.records, got, src.slices, want, c.want)
			}
		}
	}
	if err := windowsOfFour(t, src).Gather(t.Context(), "x", []int{95, 96, 97}, make([]byte, 48)); err == nil {
		t.Error("a run beyond the last window is copied")
	}
}

// windowsOfFour returns windows of 4 of a Source.
func windowsOfFour(t *testing.T, src loader.Source) *combine.Windows {
	t.Helper()
	ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 4},
		Fields: []combine.WindowField{{Name: "x"}}}, src)
	require.NoError(t, err)
	return ws
}
