package combine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/tensor"
)

// TestUnion compares sources that lack fields of each other with a model.
func TestUnion(t *testing.T) {
	for seed := range uint64(200) {
		r := random(t, seed)
		all := &model{specs: randomSpecs(r)}
		all.records = make([][][]byte, len(all.specs))
		fill := combine.FillValues{}
		values := make([][]byte, len(all.specs))
		for f, spec := range all.specs {
			if spec.Ragged {
				fill[spec.Name], values[f] = []any{}, []byte{}
				continue
			}
			element, err := spec.DType.AppendNearest(nil, tensor.Int(1))
			require.NoError(t, err)
			fill[spec.Name] = int64(1)
			for range spec.RecordBytes() / len(element) {
				values[f] = append(values[f], element...)
			}
		}
		has, lacked := map[string]bool{}, map[string]bool{}
		var sources []loader.Source
		var order []string
		for range 1 + r.IntN(4) {
			var own []tensor.Spec
			for _, f := range r.Perm(len(all.specs)) {
				if spec := all.specs[f]; r.IntN(3) > 0 || own == nil {
					own = append(own, spec)
					if !has[spec.Name] {
						order = append(order, spec.Name)
					}
					has[spec.Name] = true
				}
			}
			m := newModel(r, r.IntN(20), own)
			sources = append(sources, m.arrays(t))
			for f, spec := range all.specs {
				at := -1
				for k := range own {
					if own[k].Name == spec.Name {
						at = k
					}
				}
				for i := range m.n {
					if at < 0 {
						all.records[f] = append(all.records[f], values[f])
					} else {
						all.records[f] = append(all.records[f], m.records[at][i])
					}
				}
				lacked[spec.Name] = lacked[spec.Name] || at < 0
			}
			all.n += m.n
		}
		want := &model{n: all.n}
		for _, name := range order {
			for f, spec := range all.specs {
				if spec.Name == name {
					want.specs, want.records = append(want.specs, spec), append(want.records, all.records[f])
				}
			}
		}
		for name := range fill {
			if !lacked[name] || !has[name] {
				delete(fill, name)
			}
		}
		union, err := combine.NewUnion(fill, sources...)
		require.NoError(t, err)
		want.check(t, r, union)
		if len(combine.SizesOf(union)) != len(sources) {
			t.Fatal("the sizes of the sources are not known")
		}
	}
}

// TestUnionRefuses reports what fill has too much, too little, or wrong.
func TestUnionRefuses(t *testing.T) {
	x, y := tensor.From(make([]float32, 3)), tensor.From(make([]uint8, 3))
	source := func(fields ...combine.Array) loader.Source {
		src, err := combine.NewArrays(fields...)
		require.NoError(t, err)
		return src
	}
	one, two := source(combine.Array{Name: "x", Values: x}), source(combine.Array{Name: "x", Values: x},
		combine.Array{Name: "y", Values: y}, combine.Array{Name: "c", Values: y, Classes: []string{"cat", "dog"}},
		combine.Array{Name: "f", Values: x}, combine.Array{Name: "i", Content: tensor.Images, Values: tensor.From([]uint8{}),
			Offsets: make([]int64, 4)})
	for want, fill := range map[string]string{
		`source 0 has no field "y"`:                           `{"i": [], "c": 0, "f": 0}`,
		`no source lacks a field "x"`:                         `{"i": [], "y": 0, "c": 0, "f": 0, "x": 1}`,
		`no source lacks a field "z"`:                         `{"i": [], "y": 0, "c": 0, "f": 0, "z": 1}`,
		`256 is not a number that uint8 holds`:                `{"i": [], "y": 256.0, "c": 0, "f": 0}`,
		`"cat" is not a number`:                               `{"i": [], "y": "cat", "c": 0, "f": 0}`,
		`there is no class "cta"; did you mean "cat"`:         `{"i": [], "y": 0, "c": "cta", "f": 0}`,
		`2 is none of 2 classes; give the name of one`:        `{"i": [], "y": 0, "c": 2, "f": 0}`,
		`null is not a value`:                                 `{"i": [], "y": null, "c": 0, "f": 0}`,
		`[] is not a number`:                                  `{"i": [], "y": [], "c": 0, "f": 0}`,
		`16777217 is not a number that float32 holds`:         `{"i": [], "y": 0, "c": 0, "f": 16777217}`,
		`-9223372036854775809 is beyond the numbers of 64 bi`: `{"i": [], "y": 0, "c": 0, "f": -9223372036854775809}`,
		`1e400 is beyond the numbers of 64 bits`:              `{"i": [], "y": 0, "c": 0, "f": 1e400}`,
		`a is not []; its records have any number of rows`:    `{"i": "a", "y": 0, "c": 0, "f": 0}`,
	} {
		var values combine.FillValues
		require.NoError(t, json.Unmarshal([]byte(fill), &values))
		if _, err := combine.NewUnion(values, one, two); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", fill, err, want)
		}
	}
	if _, err := combine.NewUnion(combine.FillValues{"i": []any{}, "y": uint8(255), "c": int8(1), "f": float32(0.5)}, one, two); err != nil {
		t.Errorf("numbers of any type of Go: %v", err)
	}
	image := source(combine.Array{Name: "x", Values: x}, combine.Array{Name: "i", Content: tensor.Image, Values: tensor.From([]uint8{}),
		Offsets: make([]int64, 4)})
	if _, err := combine.NewUnion(combine.FillValues{"i": 0}, one, image); err == nil || !strings.Contains(err.Error(), "a field of lists of images") {
		t.Errorf("an image of a number: %v", err)
	}
	one, two = source(combine.Array{Name: "x", Values: x}), source(combine.Array{Name: "x", Values: x}, combine.Array{Name: "y", Values: y})
	if _, err := combine.NewUnion(combine.FillValues{"y": 1.0}, one, two, source(combine.Array{Name: "x", Values: y})); err == nil ||
		!strings.Contains(err.Error(), "has the fields x uint8") {
		t.Errorf("fields of one name that differ: %v", err)
	}
}
