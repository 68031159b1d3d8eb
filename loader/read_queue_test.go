package loader_test

import (
	"errors"
	"testing"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// Records that are asked for in advance become what they would without, whichever of
// them are warm, and however long they are.
func TestTransformsOfWarmRecords(t *testing.T) {
	for _, width := range []int{1, 300, 2000, 5000} {
		for name, warm := range map[string]func(a, b int) bool{
			"all":   func(int, int) bool { return true },
			"some":  func(a, _ int) bool { return a%3 > 0 },
			"panic": func(a, _ int) bool { return 10/(a%5) > 2 },
		} {
			ld := open(t, &tepid{newMemorySource(100, width), warm}, loader.Options{
				BatchSize: 17, Workers: 2, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"x": negate{}},
			})
			for b, err := range ld.Epoch(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range b.Indices() {
					x := b.Field("x").Bytes()[i*width : (i+1)*width]
					if x[0] != ^pixel(r, 0) || x[width-1] != ^pixel(r, width-1) {
						t.Fatalf("%s, %d bytes: batch %d: record %d begins with %d", name, width, b.Step(), r, x[0])
					}
				}
			}
		}
	}
}

// A record that fails when it is asked for in advance is the one that the error names, and the one that
// is passed over.
func TestWarmRecordsThatFail(t *testing.T) {
	m := warmBut(100, 10)
	m.before = failOn(42)
	o := loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"x": negate{}}}
	_, err := run(t.Context(), open(t, m, o), ignore)
	var e *loader.Error
	if !errors.As(err, &e) || e.Record != 42 || e.Field != "x" {
		t.Errorf("error %v", err)
	}
	o.OnError = loader.Blank
	_, err = run(t.Context(), open(t, m, o), func(b loader.Batch) {
		for i, r := range b.Indices() {
			if got, want := b.Mask()[i], r != 42; got != want {
				t.Errorf("record %d: valid is %v", r, got)
			}
			if got := b.Field("x").Bytes()[4*i]; r != 42 && got != ^pixel(r, 0) || r == 42 && got != 0 {
				t.Errorf("record %d begins with %d", r, got)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}
