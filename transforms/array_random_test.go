package transforms_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// runArray returns the output of a recipe for the numbers 0, 1, ... in a field.
func runArray(t *testing.T, recipe string, in tensor.Spec, record uint64) ([]uint8, error) {
	t.Helper()
	p, err := transforms.ParseArray([]byte(recipe))
	if err != nil {
		return nil, err
	}
	run, err := p.Runner(in)
	if err != nil {
		return nil, err
	}
	src := make([]byte, in.RecordBytes())
	for i := range src {
		src[i] = byte(i)
	}
	dst := make([]byte, run.OutputBytes(len(src)))
	return dst, run.DoRandom(dst, src, transforms.NewRand(7, 1, record))
}

// TestArrayMoves turns and flips as numpy.rot90 and numpy.flip do, and crops every part.
func TestArrayMoves(t *testing.T) {
	square := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{2, 2}, Dims: []string{"n", "y", "x"}}
	turned := [][]uint8{{1, 3, 0, 2}, {3, 2, 1, 0}, {2, 0, 3, 1}} // numpy.rot90([[0, 1], [2, 3]], k)
	var seen []string
	for record := range uint64(64) {
		got, err := runArray(t, `[{"op": "RandomRot90", "axes": ["y", "x"], "p": 1}]`, square, record)
		k := slices.IndexFunc(turned, func(want []uint8) bool { return slices.Equal(got, want) })
		if err != nil || k < 0 {
			t.Fatalf("%v, %v", got, err)
		}
		seen = append(seen, fmt.Sprint("turn ", k))
		if got, err = runArray(t, `[{"op": "RandomFlip", "axes": [-1, 0], "p": 1}]`, square, record); err != nil || !slices.Equal(got, []uint8{3, 2, 1, 0}) {
			t.Fatalf("flipped %v, %v", got, err)
		}
		row := tensor.Spec{Name: "y", DType: tensor.Uint8, Shape: tensor.Shape{5}, Dims: []string{"n", "x"}}
		got, err = runArray(t, `[{"op": "RandomSpatialCrop", "size": [2, 3], "axes": ["y", "x"]}]`, row, record)
		if err != nil || len(got) != 3 || got[2] != got[0]+2 {
			t.Fatalf("cropped %v, %v", got, err)
		}
		seen = append(seen, fmt.Sprint("crop ", got[0]))
	}
	slices.Sort(seen)
	if seen = slices.Compact(seen); len(seen) != 6 {
		t.Errorf("of three turns and three crops came %q", seen)
	}
}

// TestArrayNoise adds numbers of the mean and the deviation that are asked for, other ones to each record.
func TestArrayNoise(t *testing.T) {
	in := tensor.Spec{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{20_000}}
	p, err := transforms.ParseArray([]byte(`[{"op": "RandomNoise", "std": 0.5, "mean": 2}]`))
	require.NoError(t, err)
	run, err := p.Runner(in)
	require.NoError(t, err)
	var records [2][]float32
	for i := range records {
		dst := make([]byte, in.RecordBytes())
		require.NoError(t, run.DoRandom(dst, make([]byte, len(dst)), transforms.NewRand(7, 1, uint64(i))))
		records[i] = tensor.As[float32](tensor.Of(in, 1, dst))
	}
	sum, squares := 0.0, 0.0
	for _, x := range records[0] {
		sum, squares = sum+float64(x), squares+float64(x)*float64(x)
	}
	mean := sum / 20_000
	if std := math.Sqrt(squares/20_000 - mean*mean); math.Abs(mean-2) > .02 || math.Abs(std-.5) > .02 {
		t.Errorf("mean %v, deviation %v", mean, std)
	}
	if slices.Equal(records[0], records[1]) {
		t.Error("two records have the same noise")
	}
}

// TestArrayRandomErrors refuses what draws without a stream, and axes that are none.
func TestArrayRandomErrors(t *testing.T) {
	in := tensor.Spec{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{2, 3}}
	for recipe, want := range map[string]string{
		`[{"op": "RandomFlip", "axes": ["lat"]}]`:                        "have no names",
		`[{"op": "RandomFlip", "axes": [0, -2]}]`:                        "named twice",
		`[{"op": "RandomFlip"}]`:                                         "axes are missing",
		`[{"op": "RandomRot90", "axes": [0, 1]}]`:                        "two lengths",
		`[{"op": "RandomRot90", "axes": [0, 1], "max_k": 4}]`:            "max_k 4 must be 1 to 3",
		`[{"op": "CenterSpatialCrop", "size": [2], "axes": [0, 1]}]`:     "1 sizes for 2 axes",
		`[{"op": "CenterSpatialCrop", "size": [0]}]`:                     "each positive",
		`[{"op": "Standardize", "mean": [1], "std": [1], "shape": [2]}]`: "1 means for shape (2,)",
		`[{"op": "Log", "offset": 1}, {"op": "RandomFlop"}]`:             "unknown transform",
	} {
		if _, err := runArray(t, recipe, in, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", recipe, err, want)
		}
	}
	p, err := transforms.ParseArray([]byte(`[{"op": "RandomNoise", "std": 1}]`))
	if err != nil || !p.Random() {
		t.Fatal(err)
	}
	run, err := p.Runner(in)
	require.NoError(t, err)
	if err := run.Do(make([]byte, 24), make([]byte, 24)); err == nil || !strings.Contains(err.Error(), "draws random numbers") {
		t.Errorf("without a stream: %v", err)
	}
}

// TestArrayRandomRecipe reads what it writes, with every default.
func TestArrayRandomRecipe(t *testing.T) {
	want := `[{"op":"RandomFlip","axes":["lat","-1"],"p":0.5},{"op":"RandomRot90","axes":["0","1"],"p":0.5,"max_k":3},` +
		`{"op":"RandomSpatialCrop","size":[4,5],"axes":["-2","-1"]},{"op":"RandomNoise","std":0.5,"mean":0},{"op":"FillNaN","value":0},{"op":"IsFinite"}]`
	p, err := transforms.ParseArray([]byte(`[{"op":"RandomFlip","axes":["lat",-1]},{"op":"RandomRot90","axes":[0,1]},` +
		`{"op":"RandomSpatialCrop","size":[4,5]},{"op":"RandomNoise","std":0.5},{"op":"FillNaN"},{"op":"IsFinite"}]`))
	require.NoError(t, err)
	for range 2 {
		text, err := p.MarshalJSON()
		if err != nil || string(text) != want {
			t.Fatalf("%s, want %s: %v", text, want, err)
		}
		if p, err = transforms.ParseArray(text); err != nil {
			t.Fatal(err)
		}
	}
}
