package transforms

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// doArray runs a pipeline on one record and returns the numbers and the field they are of.
func doArray(t testing.TB, in tensor.Spec, x []float64, ts ...ArrayTransform) ([]float64, tensor.Spec, error) {
	t.Helper()
	p := arrayPipeline(t, ts...)
	out, err := p.Output(in)
	require.NoError(t, err)
	r, err := p.Runner(in)
	require.NoError(t, err)
	src := packNumbers(in.DType, x...)
	dst := make([]byte, r.OutputBytes(len(src)))
	if err := r.Do(dst, src); err != nil {
		return nil, out, err
	}
	got := make([]float64, len(dst)/out.DType.Size())
	load(got, dst, out.DType)
	return got, out, nil
}

func TestArrayShapes(t *testing.T) {
	u8, i64, f32, f64 := tensor.Uint8, tensor.Int64, tensor.Float32, tensor.Float64
	six := []float64{1, 2, 3, 4, 5, 6}
	tests := []struct {
		name   string
		in     tensor.Spec
		x      []float64
		ts     []ArrayTransform
		dtype  tensor.DType
		shape  tensor.Shape
		ragged bool
		want   []float64
	}{
		{"log", tensor.Spec{DType: f64, Shape: tensor.Shape{3}}, []float64{0, 1e-12, -1}, []ArrayTransform{Log1p{}}, f64, tensor.Shape{3}, false, []float64{0, 1e-12 - 5e-25, math.Inf(-1)}},
		{"one-hot of a number", tensor.Spec{DType: i64}, []float64{2}, []ArrayTransform{OneHot{Classes: 4}}, f32, tensor.Shape{4}, false, []float64{0, 0, 1, 0}},
		{"one-hot of rows", tensor.Spec{DType: u8, Shape: tensor.Shape{2}}, []float64{1, 0}, []ArrayTransform{OneHot{Classes: 2, DType: u8}}, u8, tensor.Shape{2, 2}, false, []float64{0, 1, 1, 0}},
		{"one-hot, smoothed", tensor.Spec{DType: tensor.Bool}, []float64{1}, []ArrayTransform{OneHot{Classes: 2}, Scale{Factor: new(.5), Offset: .25}}, f32, tensor.Shape{2}, false, []float64{.25, .75}},
		{"one-hot of tokens", tensor.Spec{DType: i64, Ragged: true}, []float64{1, 0, 1}, []ArrayTransform{OneHot{Classes: 2}}, f32, tensor.Shape{2}, true, []float64{0, 1, 1, 0, 0, 1}},
		{"reshape", tensor.Spec{DType: i64, Shape: tensor.Shape{2, 3}}, six, []ArrayTransform{Reshape{tensor.Shape{3, -1}}}, i64, tensor.Shape{3, 2}, false, six},
		{"reshape, then an axis", tensor.Spec{DType: f32, Shape: tensor.Shape{6}}, six, []ArrayTransform{Reshape{tensor.Shape{-1, 2}}, Standardize{Mean: []float64{1, 2}, Std: []float64{1, 2}, Axis: 1}}, f32, tensor.Shape{3, 2}, false, []float64{0, 0, 2, 1, 4, 2}},
		{"reshape to a number", tensor.Spec{DType: f32, Shape: tensor.Shape{1, 1}}, []float64{7}, []ArrayTransform{Reshape{tensor.Shape{}}}, f32, tensor.Shape{}, false, []float64{7}},
		{"reshape of rows", tensor.Spec{DType: u8, Shape: tensor.Shape{2}, Ragged: true}, six, []ArrayTransform{Reshape{tensor.Shape{1, -1}}}, u8, tensor.Shape{1, 2}, true, six},
		{"pad", tensor.Spec{DType: u8, Shape: tensor.Shape{2, 3}}, six, []ArrayTransform{PadTruncate{Length: 3, Value: 9}}, u8, tensor.Shape{3, 3}, false, append(slices.Clone(six), 9, 9, 9)},
		{"truncate", tensor.Spec{DType: u8, Shape: tensor.Shape{2, 3}}, six, []ArrayTransform{PadTruncate{Length: 1}}, u8, tensor.Shape{1, 3}, false, six[:3]},
		{"pad tokens", tensor.Spec{DType: i64, Ragged: true}, six, []ArrayTransform{PadTruncate{Length: 8, Value: -100}}, i64, tensor.Shape{8}, false, append(slices.Clone(six), -100, -100)},
		{"truncate boxes", tensor.Spec{DType: f32, Shape: tensor.Shape{2}, Ragged: true}, six, []ArrayTransform{Scale{Factor: new(2.0)}, PadTruncate{Length: 2, Value: .5}}, f32, tensor.Shape{2, 2}, false, []float64{2, 4, 6, 8}},
		{"pad nothing", tensor.Spec{DType: f32, Shape: tensor.Shape{2}, Ragged: true}, nil, []ArrayTransform{PadTruncate{Length: 1, Value: .5}}, f32, tensor.Shape{1, 2}, false, []float64{.5, .5}},
		{"rows alone", tensor.Spec{DType: f32, Shape: tensor.Shape{2}, Ragged: true}, six, []ArrayTransform{Standardize{Mean: []float64{1, 2}, Std: []float64{1, 2}}}, f32, tensor.Shape{2}, true, []float64{0, 0, 2, 1, 4, 2}},
	}
	for _, tt := range tests {
		tt.in.Name = "x"
		got, out, err := doArray(t, tt.in, tt.x, tt.ts...)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if out.DType != tt.dtype || !slices.Equal(out.Shape, tt.shape) || out.Ragged != tt.ragged ||
			!slices.Equal(got, tt.want) {
			t.Errorf("%s: %v of %v, %v; want %v", tt.name, got, out, tt.ragged, tt.want)
		}
	}
}

// The error of a record says why it cannot be used; the runner continues with the next.
func TestOneHotOutOfRange(t *testing.T) {
	in := tensor.Spec{Name: "x", DType: tensor.Int64, Shape: tensor.Shape{2}}
	for _, bad := range []float64{-1, 3, 1 << 40} {
		_, _, err := doArray(t, in, []float64{0, bad}, OneHot{Classes: 3})
		if err == nil || !strings.Contains(err.Error(), "transform OneHot: element 1 is ") ||
			!strings.Contains(err.Error(), "classes 0 to 2") {
			t.Errorf("%v: error %v", bad, err)
		}
	}
}

func TestArrayShapeErrors(t *testing.T) {
	_, err := ComposeArray(OneHot{}, OneHot{Classes: 2, DType: tensor.Int8}, Reshape{}, Reshape{tensor.Shape{-1, -1}},
		Reshape{tensor.Shape{0}},
		PadTruncate{}, PadTruncate{Length: 1, Value: math.NaN()})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"classes 0", "dtype int8 must be one of", "no shape", "only one axis may be -1",
		"must be positive", "length 0", "value NaN"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	in := tensor.Spec{Name: "x", DType: tensor.Int8, Shape: tensor.Shape{2, 3}}
	for want, ts := range map[string][]ArrayTransform{
		"transform Log1p: input is int8; put Cast to a float type before it":             {Log1p{}},
		"input is float32; put Cast to an integer type before it":                        {Cast{tensor.Float32}, OneHot{Classes: 2}},
		"shape (2, 3) of 6 elements cannot become (4, -1)":                               {Reshape{tensor.Shape{4, -1}}},
		"shape (2, 3) of 6 elements cannot become (3,)":                                  {Reshape{tensor.Shape{3}}},
		"value 300 is none of int8":                                                      {PadTruncate{Length: 4, Value: 300}},
		"input is a single number":                                                       {Reshape{tensor.Shape{6}}, PadTruncate{Length: 1}, Reshape{tensor.Shape{}}, PadTruncate{Length: 1}},
		"a record smaller than 1 TiB":                                                    {PadTruncate{Length: 1 << 40}},
		"transform OneHot: field \"x\": shape (2, 3, 1099511627776): every axis must be": {OneHot{Classes: 1 << 40}},
	} {
		if _, err := arrayPipeline(t, ts...).Runner(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestArrayShapeRecipe(t *testing.T) {
	p := arrayPipeline(t, Log1p{}, Reshape{tensor.Shape{2, -1}}, PadTruncate{Length: 3, Value: 1.5}, Cast{tensor.Uint8},
		OneHot{Classes: 5})
	text, err := json.Marshal(p)
	want := `[{"op":"Log1p"},{"op":"Reshape","shape":[2,-1]},{"op":"PadTruncate","length":3,"value":1.5},` +
		`{"op":"Cast","dtype":"uint8"},{"op":"OneHot","classes":5,"dtype":"float32"}]`
	if err != nil || string(text) != want {
		t.Fatalf("%s, %v; want %s", text, err, want)
	}
	again, err := ParseArray(text)
	require.NoError(t, err)
	if text, err = json.Marshal(again); err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

// Do refuses records and rooms of wrong lengths, and allocates only for longer records.
func TestArrayRunnerLengths(t *testing.T) {
	in := tensor.Spec{Name: "x", DType: tensor.Int16, Shape: tensor.Shape{2}, Ragged: true}
	r, err := arrayPipeline(t, OneHot{Classes: 3}).Runner(in)
	require.NoError(t, err)
	src, dst := make([]byte, 4000), make([]byte, 24000)
	if err := r.Do(dst, src[:6]); err == nil {
		t.Error("one row and a half pass")
	}
	if err := r.Do(dst[:20], src[:4]); err == nil {
		t.Error("too little room passes")
	}
	if n := testing.AllocsPerRun(5, func() { err = r.Do(dst, src) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}
