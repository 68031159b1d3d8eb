package combine_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/tensor"
)

// keyArray returns keys as a field of some type: signed or unsigned integers, strings, or labels of reordered classes.
func keyArray(r *rand.Rand, name, kind string, keys []int) combine.Array {
	switch kind {
	case "int16":
		return combine.Array{Name: name, Values: tensor.From(numbersOf[int16](keys))}
	case "uint64":
		return combine.Array{Name: name, Values: tensor.From(numbersOf[uint64](keys))}
	case "int64":
		return combine.Array{Name: name, Values: tensor.From(numbersOf[int64](keys))}
	case "label":
		order := r.Perm(100)
		values, classes := make([]int64, len(keys)), make([]string, 100)
		for i, k := range order {
			classes[i] = fmt.Sprint(k)
		}
		for i, k := range keys {
			values[i] = int64(slices.Index(order, k))
		}
		return combine.Array{Name: name, Values: tensor.From(values), Classes: classes}
	}
	var text []byte
	offsets := []int64{0}
	for _, k := range keys {
		text = fmt.Append(text, k)
		offsets = append(offsets, int64(len(text)))
	}
	return combine.Array{Name: name, Values: tensor.From(text), Offsets: offsets, Content: tensor.Text}
}

func numbersOf[T int16 | int64 | uint64](keys []int) []T {
	out := make([]T, len(keys))
	for i, k := range keys {
		out[i] = T(k)
	}
	return out
}

// side returns a Source of keys and of a field x, whose values it returns, too.
func side(t *testing.T, r *rand.Rand, key, kind, field string, keys []int) (loader.Source, []int32) {
	t.Helper()
	x := make([]int32, len(keys))
	for i := range x {
		x[i] = r.Int32()
	}
	src, err := combine.NewArrays(keyArray(r, key, kind, keys), combine.Array{Name: field, Values: tensor.From(x)})
	require.NoError(t, err)
	return src, x
}

// TestJoins compares random joins with a map.
func TestJoins(t *testing.T) {
	kinds := [][2]string{{"int16", "int64"}, {"uint64", "int16"}, {"uint64", "uint64"}, {"text", "text"}, {"label", "text"}, {"label", "label"}, {"text", "label"}, {"label", "int64"}}
	for seed := range uint64(120) {
		r := random(t, seed)
		kind := kinds[r.IntN(len(kinds))]
		j := combine.Join{On: "k", RightOn: []string{"", "q"}[r.IntN(2)], Many: r.IntN(2) == 0}
		leftKeys := r.Perm(100)[:r.IntN(60)]
		if j.Many {
			for i := range leftKeys {
				leftKeys[i] = r.IntN(30)
			}
		}
		rightKeys := r.Perm(100)[:r.IntN(60)]
		left, x := side(t, r, "k", kind[0], "x", leftKeys)
		right, y := side(t, r, max(j.On, j.RightOn), kind[1], "y", rightKeys)
		if kind == [2]string{"label", "int64"} { // by the numbers
			v, err := left.Slice("k", 0, left.Len())
			require.NoError(t, err)
			for i, k := range tensor.As[int64](v) {
				leftKeys[i] = int(k)
			}
		}
		if r.IntN(2) == 0 {
			j.How, j.Fill = combine.JoinLeft, map[string]any{"y": -5}
			if j.RightOn == "q" {
				j.Fill["q"] = map[string]any{"text": "none", "label": "7"}[kind[1]]
				if j.Fill["q"] == nil {
					j.Fill["q"] = 7.0
				}
			}
		}
		v, found, err := combine.NewJoinInParts(t.Context(), left, right, j, 1+r.IntN(70))
		require.NoError(t, err)
		checkJoin(t, r, v, found, j, leftKeys, rightKeys, x, y)
	}
}

func checkJoin(t *testing.T, r *rand.Rand, v *combine.View, found *combine.Matches, j combine.Join, leftKeys, rightKeys []int, x, y []int32) {
	t.Helper()
	specs := []tensor.Spec{{Name: "x", DType: tensor.Int32}, {Name: "y", DType: tensor.Int32}}
	m := &model{specs: specs, records: make([][][]byte, 2)}
	var only, of []int
	seen := map[int]bool{}
	for i, k := range leftKeys {
		match, value := slices.Index(rightKeys, k), int32(-5)
		if match >= 0 {
			value, seen[match] = y[match], true
		} else if only = append(only, i); j.How != combine.JoinLeft {
			continue
		}
		of = append(of, match)
		m.n++
		m.records[0] = append(m.records[0], binary.NativeEndian.AppendUint32(nil, uint32(x[i])))
		m.records[1] = append(m.records[1], binary.NativeEndian.AppendUint32(nil, uint32(value)))
	}
	var unseen []int
	for i := range rightKeys {
		if !seen[i] {
			unseen = append(unseen, i)
		}
	}
	if !slices.Equal(found.Left, only) || !slices.Equal(found.Right, unseen) || !slices.Equal(found.Of, of) {
		t.Fatalf("%v, want %v, without a match %v and %v", found, of, only, unseen)
	}
	xy, err := combine.NewSelect(v, combine.Select{Fields: []string{"x", "y"}})
	require.NoError(t, err)
	m.check(t, r, xy)
}

// TestJoinsRefuse checks errors for invalid keys, for keys that occur twice, and for values that do not fit.
func TestJoinsRefuse(t *testing.T) {
	nan := float32(math.NaN())
	left, err := combine.NewArrays(
		combine.Array{Name: "k", Values: tensor.From([]int64{5, 6, 7, 6})}, combine.Array{Name: "f", Values: tensor.From([]float32{nan, 1, 2, 3})},
		combine.Array{Name: "t", Values: tensor.From([]byte("abbc")), Offsets: []int64{0, 1, 2, 3, 4}, Content: tensor.Text},
	)
	require.NoError(t, err)
	right, err := combine.NewArrays(
		combine.Array{Name: "k", Values: tensor.From([]int32{6, 9, 5, 7})}, combine.Array{Name: "y", Values: tensor.From([]uint8{1, 2, 3, 4})},
		combine.Array{Name: "twice", Values: tensor.From([]int8{1, 9, 4, 9})}, combine.Array{Name: "label", Values: tensor.From([]int64{0, 1, 0, 1}), Classes: []string{"a", "b"}},
	)
	require.NoError(t, err)
	fill := map[string]any{"y": 0, "twice": 0, "label": "a"}
	with := func(name string, value any) combine.Join {
		out := map[string]any{name: value}
		for k, v := range fill {
			if k != name {
				out[k] = v
			}
		}
		return combine.Join{On: "k", Many: true, How: combine.JoinLeft, Fill: out}
	}
	for want, j := range map[string]combine.Join{
		"On, the field with the key, is empty":                                                           {},
		`left: there is no field "z"`:                                                                    {On: "z"},
		`right: there is no field "q"`:                                                                   {On: "k", RightOn: "q"},
		`f is a float on the left side, and k is a whole number on the right side`:                       {On: "f", RightOn: "k"},
		"t is a text on the left side, and k is a whole number on the right side":                        {On: "t", RightOn: "k"},
		"records 1 and 3 of the left side have the same k, 6; let many be true":                          {On: "k"},
		"records 1 and 3 of the right side have the same twice, 9":                                       {On: "k", RightOn: "twice", Many: true},
		`how is "outer"; it must be inner or left`:                                                       {On: "k", How: "outer"},
		"fill is for how \"left\"":                                                                       {On: "k", Fill: fill},
		"how \"left\" needs fill, values for records without a match; there is none for y, twice, label": {On: "k", Many: true, How: combine.JoinLeft},
		`fill: field "y": 256 is not a number that uint8 holds`:                                          with("y", 256),
		`fill: field "y": "a" is not a number`:                                                           with("y", "a"),
		`fill: field "label": there is no class "c"`:                                                     with("label", "c"),
		`fill: the right side has no field "z"; there are: y, twice, label`:                              with("z", 1),
		`two fields have the name "k"; rename one of them`:                                               {On: "k", RightOn: "y", Many: true},
	} {
		_, _, err := combine.NewJoin(t.Context(), left, right, j)
		if err == nil || !strings.HasPrefix(err.Error(), "combine: join: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", j, err, want)
		}
	}
	v, _, err := combine.NewJoin(t.Context(), left, right, with("y", 3))
	if err != nil || v.ID() != "" {
		t.Errorf("%v, %v", err, v)
	}
}

func TestFillValues(t *testing.T) {
	left, err := combine.NewArrays(combine.Array{Name: "k", Values: tensor.From([]int32{1, 2})})
	require.NoError(t, err)
	right, err := combine.NewArrays(
		combine.Array{Name: "k", Values: tensor.From([]int32{1})}, combine.Array{Name: "i", Values: tensor.From([]int64{0})},
		combine.Array{Name: "u", Values: tensor.From([]uint64{0})}, combine.Array{Name: "s", Values: tensor.From([]int8{0})},
		combine.Array{Name: "f", Values: tensor.From([]float32{0})},
	)
	require.NoError(t, err)
	for text, want := range map[string]string{
		`{"i": 9007199254740993, "u": 18446744073709551615, "s": -128, "f": "-inf"}`: "[9007199254740993] [18446744073709551615] [-128] [-Inf]",
		`{"i": -9223372036854775808, "u": 3, "s": 127, "f": 1e1}`:                    "[-9223372036854775808] [3] [127] [10]",
		`{"i": 9223372036854775808, "u": 0, "s": 0, "f": 0}`:                         `field "i": 9223372036854775808 is not a number that int64 holds`,
		`{"i": 0, "u": -1, "s": 0, "f": 0}`:                                          `field "u": -1 is not a number that uint64 holds`,
		`{"i": 0, "u": 0, "s": 128, "f": 0}`:                                         `field "s": 128 is not a number that int8 holds`,
		`{"i": null, "u": 0, "s": 0, "f": 0}`:                                        `field "i": null is not a value; give a number, a text or []`,
	} {
		j := combine.Join{On: "k", How: combine.JoinLeft}
		require.NoError(t, json.Unmarshal([]byte(text), &j.Fill))
		v, _, err := combine.NewJoin(t.Context(), left, right, j)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
			continue
		}
		values := map[string][]byte{"i": make([]byte, 8), "u": make([]byte, 8), "s": make([]byte, 1), "f": make([]byte, 4)}
		for name, b := range values {
			require.NoError(t, v.Gather(t.Context(), name, []int{1}, b))
		}
		got := fmt.Sprint(tensor.Elements[int64](values["i"]), tensor.Elements[uint64](values["u"]),
			tensor.Elements[int8](values["s"]), tensor.Elements[float32](values["f"]))
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
