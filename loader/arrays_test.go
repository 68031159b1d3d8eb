package loader_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

func TestArrays(t *testing.T) {
	arrays := func(recipe string) loader.Transform {
		p, err := transforms.ParseArray([]byte(recipe))
		require.NoError(t, err)
		return loader.Arrays{Pipeline: p}
	}
	m := newMemorySource(10, 3)
	opts := loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Workers: 2, Transforms: map[string]loader.Transform{
		"x": arrays(`[{"op":"Cast","dtype":"float32"},{"op":"Scale","factor":0.5,"offset":1}]`),
		"y": arrays(`[{"op":"OneHot","classes":28}]`),
	}}
	ld := open(t, m, opts)
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		x, y := tensor.As[float32](b.Field("x")), tensor.As[float32](b.Field("y"))
		for i, record := range b.Indices() {
			for j := range 3 {
				if want := float32(pixel(record, j))/2 + 1; x[3*i+j] != want {
					t.Errorf("record %d: %v; want %v", record, x[3*i+j], want)
				}
			}
			want := make([]float32, 28)
			want[3*record] = 1
			if !slices.Equal(y[28*i:28*(i+1)], want) {
				t.Errorf("record %d: %v", record, y[28*i:28*(i+1)])
			}
		}
	}
	state := ld.State()
	opts.Transforms["x"] = arrays(`[{"op":"Cast","dtype":"float32"},{"op":"Scale","factor":0.25}]`)
	if _, err := loader.Resume(m, opts, state); err == nil || !strings.Contains(err.Error(), "another pipeline") {
		t.Errorf("with another pipeline: %v", err)
	}
	ragged := tensor.Spec{Name: "t", DType: tensor.Int32, Ragged: true}
	if _, err := arrays(`[{"op":"Clip","min":0}]`).Output(ragged); err == nil || !strings.Contains(err.Error(), "PadTruncate") {
		t.Errorf("records of variable length: %v", err)
	}
	if out, err := arrays(`[{"op":"PadTruncate","length":5}]`).Output(ragged); err != nil || !slices.Equal(out.Shape, tensor.Shape{5}) {
		t.Errorf("padded: %v, %v", out, err)
	}
}
