package combine_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

func derivable(t *testing.T) *combine.Arrays {
	src, err := combine.NewArrays(
		combine.Array{Name: "a", Values: tensor.From([]uint8{1, 2, 3, 4, 5, 6}, 2)},
		combine.Array{Name: "b", Values: tensor.From([]int16{10, 20, 30})},
		combine.Array{Name: "c", Values: tensor.From([]float64{-1, 0, 1})},
		combine.Array{Name: "d", Values: tensor.From([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 3)},
	)
	require.NoError(t, err)
	return src
}

// TestDerive has results of broadcast fields, of two types of floats and of bool, in order and not.
func TestDerive(t *testing.T) {
	src := derivable(t)
	for text, want := range map[string]string{
		"a - b":              "float32(2,) [-25 -24 -9 -8]",
		"-c ** 2 + a":        "float64(2,) [4 5 0 1]",
		"2 ** -1 * b":        "float32() [15 5]",
		"a > 2":              "bool(2,) [1 1 0 0]",
		"where(a==5,c,-b)":   "float64(2,) [1 -30 -10 -10]",
		"clip(a, 2, 5,)":     "float32(2,) [5 5 2 2]",
		"maximum(c, .5e0)+0": "float64() [1 0.5]",
		"a between 2 and 5":  "bool(2,) [1 0 0 1]",
		"not b = 30 or c<-0": "bool() [0 1]",
		"-c in (1, nan)":     "bool() [0 1]",
		"`b` + (c > 0) * 2":  "float64() [32 10]",
	} {
		v, err := combine.NewDerive(src, combine.Derive{Name: "y", Expression: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		spec := v.Specs()[4]
		dst := make([]byte, 2*spec.RecordBytes())
		require.NoError(t, v.Gather(t.Context(), "y", []int{2, 0}, dst))
		out := tensor.Of(spec, 2, dst)
		var values string
		switch spec.DType {
		case tensor.Float32:
			values = fmt.Sprint(tensor.As[float32](out))
		case tensor.Float64:
			values = fmt.Sprint(tensor.As[float64](out))
		default:
			values = fmt.Sprint(out.Bytes())
		}
		if got := fmt.Sprintf("%v%v %s", spec.DType, spec.Shape, values); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// TestDeriveRefused names columns.
func TestDeriveRefused(t *testing.T) {
	src := derivable(t)
	for text, want := range map[string]string{
		"":                   "column 1: the expression is empty",
		"a +":                "column 4: a value was expected, not the end",
		"a b":                "column 3: the end, or and, or or was expected, not b",
		"1 + 2":              "it names no field",
		"a +\nnri":           "column 5: there is no field \"nri\"; there are: a, b, c, d\n  nri\n  ^",
		"a < 1 < 2":          "a comparison cannot go on",
		"foo(a)":             "there is no function foo of formulas; there are: abs",
		"sample(0.5) + a":    "there is no function sample of formulas",
		"sqrt(a, 1)":         "sqrt has 2 arguments, and takes 1",
		"a[0]":               "a formula computes with all elements of a; indices are for filters",
		"where(a = 'x',1,2)": "column 11: a text is not a number",
		"a + d":              "cannot be broadcast",

		strings.Repeat("a + ", 150) + "a": "more than 100 operations",
	} {
		_, err := combine.NewDerive(src, combine.Derive{Name: "y", Expression: text})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `combine: derive: "y": `) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
	for want, fields := range map[string][]combine.Derive{
		"no expressions":           nil,
		`two fields have the name`: {{Name: "a", Expression: "b"}},
		`there is no field "y"`:    {{Name: "y", Expression: "b"}, {Name: "z", Expression: "y"}},
	} {
		if _, err := combine.NewDerive(src, fields...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestDeriveOfChunks has windows of chunks keep their order when fields are derived from them.
func TestDeriveOfChunks(t *testing.T) {
	a := newND(random(t, 5), []int{24, 16})
	spec := tensor.Spec{Name: "x", DType: tensor.Int32, Shape: tensor.Shape{16}}
	chunked := gridded{combine.Func{Records: 24, Fields: []tensor.Spec{spec}}, a, []int{4, 8}}
	chunked.Make = func(context.Context, int, string, tensor.View) error { return nil }
	ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 4}}, chunked)
	require.NoError(t, err)
	v, err := combine.NewDerive(ws, combine.Derive{Name: "y", Expression: "x * 2"})
	require.NoError(t, err)
	shuffle, err := loader.NewChunkShuffle(v, sampler.ChunkOptions{Memory: 1 << 20, Batch: 5})
	require.NoError(t, err)
	ld, err := loader.New(v, loader.Options{BatchSize: 5, Sampler: shuffle})
	require.NoError(t, err)
	defer ld.Close()
	var seen []int
	for b, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		x, y := tensor.As[int32](b.Field("x")), tensor.As[float64](b.Field("y"))
		for i := range x {
			if y[i] != 2*float64(x[i]) {
				t.Fatalf("%v of %v", y[i], x[i])
			}
		}
		seen = append(seen, b.Indices()...)
	}
	if slices.Sort(seen); !slices.Equal(seen, consecutive(0, v.Len())) {
		t.Errorf("records %v", seen)
	}
}

// TestLimitsOfTheFormat compares the limits with those of docs/format.md, which the Python package is compared with, too.
func TestLimitsOfTheFormat(t *testing.T) {
	text, err := os.ReadFile("../../docs/format.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "| limit of a view |")
	for row, limit := range combine.Limits {
		_, rest, _ := strings.Cut(table, "\n| "+row)
		if rest, _, _ = strings.Cut(rest, "\n"); !strings.HasSuffix(rest, fmt.Sprintf("| %d |", limit)) {
			t.Errorf("%s: docs/format.md has%s, and %d is the limit", row, rest, limit)
		}
	}
}
