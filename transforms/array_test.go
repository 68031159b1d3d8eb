package transforms

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

func p64(v float64) *float64 { return &v }

func arrayPipeline(t testing.TB, ts ...ArrayTransform) *ArrayPipeline {
	t.Helper()
	p, err := ComposeArray(ts...)
	require.NoError(t, err)
	return p
}

// packNumbers writes numbers as a record of type dt.
func packNumbers(dt tensor.DType, x ...float64) []byte {
	b := make([]byte, len(x)*dt.Size())
	save(b, x, dt)
	return b
}

func TestArrayOps(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	f32, f64 := tensor.Float32, tensor.Float64
	tests := []struct {
		in   tensor.DType
		x    []float64
		ts   []ArrayTransform
		out  tensor.DType
		want []float64
	}{
		{tensor.Uint8, []float64{0, 1, 255}, []ArrayTransform{Cast{f32}, Scale{Factor: new(0.5), Offset: 1}}, f32, []float64{1, 1.5, 128.5}},
		{f64, []float64{-1.9, 1.9, 300, -inf, nan}, []ArrayTransform{Cast{tensor.Uint8}}, tensor.Uint8, []float64{0, 1, 255, 0, 0}},
		{f64, []float64{-1.9, 200, -200}, []ArrayTransform{Cast{tensor.Int8}}, tensor.Int8, []float64{-1, 127, -128}},
		{f64, []float64{-inf, inf, 7.9}, []ArrayTransform{Cast{tensor.Int16}}, tensor.Int16, []float64{-32768, 32767, 7}},
		{f64, []float64{-inf, inf, 7.9}, []ArrayTransform{Cast{tensor.Uint16}}, tensor.Uint16, []float64{0, 65535, 7}},
		{f64, []float64{-inf, inf, -7.9}, []ArrayTransform{Cast{tensor.Int32}}, tensor.Int32, []float64{-1 << 31, 1<<31 - 1, -7}},
		{f64, []float64{-inf, inf}, []ArrayTransform{Cast{tensor.Uint32}}, tensor.Uint32, []float64{0, 1<<32 - 1}},
		{f64, []float64{-inf, inf, -5e9}, []ArrayTransform{Cast{tensor.Int64}}, tensor.Int64, []float64{-1 << 63, 1 << 63, -5e9}},
		{f64, []float64{-inf, inf, 5e9}, []ArrayTransform{Cast{tensor.Uint64}}, tensor.Uint64, []float64{0, 1 << 64, 5e9}},
		{f64, []float64{0, 0.5, -3}, []ArrayTransform{Cast{tensor.Bool}}, tensor.Bool, []float64{0, 1, 1}},
		{f64, []float64{1.0004, 70000}, []ArrayTransform{Cast{tensor.Float16}}, tensor.Float16, []float64{1, inf}},
		{f64, []float64{1 + 0x1p-11 + 0x1p-40, 1 - 0x1p-12 - 0x1p-40}, []ArrayTransform{Cast{tensor.Float16}}, tensor.Float16, []float64{1 + 0x1p-10, 1 - 0x1p-11}},
		{f64, []float64{1.001, 1.01}, []ArrayTransform{Cast{tensor.BFloat16}}, tensor.BFloat16, []float64{1, 1.0078125}},
		{f64, []float64{2.7, 3.2}, []ArrayTransform{Cast{tensor.Int8}, Cast{f64}, Scale{Factor: new(10.0)}}, f64, []float64{20, 30}},
		{f32, []float64{1, 2, 3, 4}, []ArrayTransform{Standardize{Mean: []float64{1}, Std: []float64{2}}}, f32, []float64{0, .5, 1, 1.5}},
		{f32, []float64{1, 2, 3, 4}, []ArrayTransform{Standardize{Mean: []float64{1, 2}, Std: []float64{1, 2}, Axis: -1}}, f32, []float64{0, 0, 2, 1}},
		{f32, []float64{1, 2, 3, 4}, []ArrayTransform{Standardize{Mean: []float64{1, 2}, Std: []float64{1, 2}}}, f32, []float64{0, 1, .5, 1}},
		{f32, []float64{-5, 0, 5, inf}, []ArrayTransform{Clip{Min: p64(-1), Max: p64(2)}}, f32, []float64{-1, 0, 2, 2}},
		{tensor.Int16, []float64{-5, 5}, []ArrayTransform{Clip{Max: p64(2)}}, tensor.Int16, []float64{-5, 2}},
		{tensor.Int64, []float64{5, 6}, nil, tensor.Int64, []float64{5, 6}},
	}
	for _, tt := range tests {
		in := tensor.Spec{Name: "x", DType: tt.in, Shape: tensor.Shape{len(tt.x)}}
		if len(tt.x) == 4 {
			in.Shape = tensor.Shape{2, 2}
		}
		p := arrayPipeline(t, tt.ts...)
		out, err := p.Output(in)
		if err != nil || out.DType != tt.out {
			t.Fatalf("%v: %v, %v", tt.ts, out, err)
		}
		r, err := p.Runner(in)
		require.NoError(t, err)
		dst := make([]byte, out.RecordBytes())
		require.NoError(t, r.Do(dst, packNumbers(tt.in, tt.x...)))
		for i, want := range tt.want {
			if got := out.DType.Read(dst[i*out.DType.Size():]).Float64(); got != want {
				t.Errorf("%+v of %v: element %d is %v, want %v", tt.ts, tt.x, i, got, want)
			}
		}
	}
}

// TestArrayChunks holds that positions go on from chunk to chunk.
func TestArrayChunks(t *testing.T) {
	in := tensor.Spec{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{7, 3, 111}}
	mean, std := []float64{1, 2, 3}, []float64{2, 4, 8}
	r, err := arrayPipeline(t, Standardize{Mean: mean, Std: std, Axis: 1}).Runner(in)
	require.NoError(t, err)
	x := make([]float64, in.Shape.Elems())
	for i := range x {
		x[i] = float64(i % 1000)
	}
	b := packNumbers(tensor.Float32, x...)
	if n := testing.AllocsPerRun(3, func() { err = r.Do(b, packNumbersInto(b, x)) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
	for i, v := range x {
		c := i / 111 % 3
		if got := tensor.Float32.Read(b[4*i:]).Float64(); got != float64(float32((v-mean[c])/std[c])) {
			t.Fatalf("element %d is %v", i, got)
		}
	}
}

// packNumbersInto is packNumbers into b, float32.
func packNumbersInto(b []byte, x []float64) []byte {
	save(b, x, tensor.Float32)
	return b
}

func TestArrayErrors(t *testing.T) {
	_, err := ComposeArray(Cast{}, Scale{Factor: new(math.NaN())}, Standardize{Mean: []float64{1}, Std: []float64{0}},
		Standardize{}, Clip{}, Clip{Min: p64(2), Max: p64(1)})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"transform Cast: no dtype", "factor NaN", "deviation 0", "0 means",
		"neither min nor max", "min 2 is not below max 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	in := tensor.Spec{Name: "x", DType: tensor.Int8, Shape: tensor.Shape{2, 3}}
	two := []float64{1, 2}
	for _, tt := range []struct {
		t    ArrayTransform
		want string
	}{
		{Scale{}, "transform Scale: input is int8; put Cast to a float type before it"},
		{Standardize{Mean: two, Std: two, Axis: -1}, "2 means for an axis of 3 in shape (2, 3)"},
		{Standardize{Mean: two, Std: two, Axis: 2}, "axis 2 does not exist"},
	} {
		if _, err := arrayPipeline(t, tt.t).Runner(in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	r, err := arrayPipeline(t).Runner(in)
	require.NoError(t, err)
	if err := r.Do(make([]byte, 6), make([]byte, 5)); err == nil {
		t.Error("a short record passes")
	}
	if _, err := arrayPipeline(t).Output(tensor.Spec{}); err == nil {
		t.Error("an empty field passes")
	}
}

func TestArrayRecipe(t *testing.T) {
	p := arrayPipeline(t, Cast{tensor.Float32}, Scale{Offset: 2}, Standardize{Mean: []float64{1}, Std: []float64{2}},
		Clip{Min: p64(0)})
	a, err := json.Marshal(p)
	require.NoError(t, err)
	want := `[{"op":"Cast","dtype":"float32"},{"op":"Scale","factor":1,"offset":2},` +
		`{"op":"Standardize","mean":[1],"std":[2],"axis":0},{"op":"Clip","min":0,"max":null}]`
	if string(a) != want {
		t.Errorf("%s\nwant\n%s", a, want)
	}
	q, err := ParseArray(a)
	require.NoError(t, err)
	if b, err := json.Marshal(q); err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	for recipe, want := range map[string]string{
		`[{"op":"Cst"}]`:              `unknown transform "Cst"; did you mean "Cast"?`,
		`[{"op":"Clip","maximum":1}]`: `unknown parameter "maximum"`,
		`[{"op":"Clip"}]`:             "recipe entry 1: transform Clip: neither",
		`{`:                           "not a JSON list",
	} {
		if _, err := ParseArray([]byte(recipe)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", recipe, err, want)
		}
	}
}
