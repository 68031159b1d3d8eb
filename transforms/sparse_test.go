package transforms

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// sparseSpec is a field of sparse rows with named features.
func sparseSpec(width int) tensor.Spec {
	s := tensor.Spec{Name: "X", DType: tensor.Float32, Shape: tensor.Shape{2}, Ragged: true, Content: tensor.Sparse, Width: width}
	for i := range width {
		s.Features = append(s.Features, string(rune('a'+i)))
	}
	return s
}

func floats32(b []byte) []float32 { return slices.Clone(tensor.Elements[float32](b)) }

func bytesOf(x []float32) []byte { return tensor.From(x).Bytes() }

// Transforms of sparse rows give what formulas give of the same rows as arrays.
func TestSparse(t *testing.T) {
	const width = 7
	r := rand.New(rand.NewPCG(1, 2))
	target := 50.0
	for range 200 {
		dense, pairs := make([]float64, width), []float32(nil)
		for _, c := range r.Perm(width)[:r.IntN(width+1)] {
			dense[c] = float64(1 + r.IntN(9))
			pairs = append(pairs, float32(c), float32(dense[c]))
		}
		sum := 0.0
		for _, x := range dense {
			sum += x
		}
		want := make([]float32, 3)
		for i, c := range []int{4, 0, 6} {
			x := dense[c]
			if sum > 0 {
				x = float64(float32(x * (target / sum)))
			}
			want[i] = float32(math.Log1p(x))
		}
		ts := []ArrayTransform{NormalizeTotal{TargetSum: &target}, Log1p{}, SelectFeatures{Features: []string{"e", "a", "g"}}}
		rows, err := ComposeArray(ts...)
		require.NoError(t, err)
		run, err := rows.Runner(sparseSpec(width))
		require.NoError(t, err)
		out, err := run.Append(nil, bytesOf(pairs))
		if err != nil || run.out().Width != 3 || !slices.Equal(run.out().Features, []string{"e", "a", "g"}) {
			t.Fatalf("%+v, error %v", run.out(), err)
		}
		got := make([]float32, 3)
		for i, x := range floats32(out) {
			if i%2 == 1 {
				got[int(floats32(out)[i-1])] += x
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v of %v, want %v", got, pairs, want)
		}
		for _, of := range []struct {
			ts   []ArrayTransform
			spec tensor.Spec
			src  []float32
		}{
			{append(slices.Clone(ts), ToDense{}), sparseSpec(width), pairs},
			{append(slices.Clone(ts), ToDense{}, Cast{tensor.Float32}), sparseSpec(width), pairs},
			{append([]ArrayTransform{ToDense{}}, ts...), sparseSpec(width), pairs},
		} {
			p, err := ComposeArray(of.ts...)
			require.NoError(t, err)
			run, err := p.Runner(of.spec)
			require.NoError(t, err)
			dst := bytesOf([]float32{9, 9, 9})
			if err := run.Do(dst, bytesOf(of.src)); err != nil || !slices.Equal(floats32(dst), want) {
				t.Fatalf("%v, error %v; want %v", floats32(dst), err, want)
			}
			recipe, err := json.Marshal(p)
			require.NoError(t, err)
			if again, err := ParseArray(recipe); err != nil || len(again.ts) != len(of.ts) {
				t.Fatalf("%s: %v", recipe, err)
			}
		}
	}
}

// What sparse rows cannot go through is refused, and so are rows that are not of the field.
func TestSparseErrors(t *testing.T) {
	narrow := tensor.Spec{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{3}}
	for _, c := range []struct {
		t    ArrayTransform
		in   tensor.Spec
		said string
	}{
		{Scale{}, sparseSpec(3), "put ToDense before it"},
		{Clip{Min: new(float64)}, sparseSpec(3), "put ToDense before it"},
		{ToDense{}, narrow, "leave ToDense out"},
		{SelectFeatures{Features: []string{"z"}}, sparseSpec(3), `no feature "z"`},
		{SelectFeatures{Features: []string{"a"}}, narrow, "no names of features"},
		{SelectFeatures{Columns: []int{3}}, narrow, "column 3 of 3"},
		{SelectFeatures{Columns: []int{1, 1}}, sparseSpec(3), "comes twice"},
		{SelectFeatures{}, narrow, "give names"},
		{NormalizeTotal{TargetSum: new(float64)}, narrow, "must be positive"},
		{NormalizeTotal{}, tensor.Spec{Name: "x", DType: tensor.Int32, Shape: tensor.Shape{3}}, "put Cast"},
		{Cast{tensor.Float16}, sparseSpec(3000), "a width whose columns the type holds"},
	} {
		p, err := ComposeArray(c.t)
		if err == nil {
			c.in.Features = c.in.Features[:min(len(c.in.Features), 26)]
			if c.in.Width > 26 {
				c.in.Features = nil
			}
			_, err = p.Output(c.in)
		}
		if err == nil || !strings.Contains(err.Error(), c.said) {
			t.Errorf("%+v: %v, want %q", c.t, err, c.said)
		}
	}
	p, err := ComposeArray(ToDense{})
	require.NoError(t, err)
	run, err := p.Runner(sparseSpec(3))
	require.NoError(t, err)
	for _, column := range []float32{-1, 3, float32(math.NaN())} {
		if err := run.Do(make([]byte, 12), bytesOf([]float32{column, 1})); err == nil {
			t.Errorf("column %v was taken", column)
		}
	}
}
