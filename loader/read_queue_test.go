package loader_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
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
				require.NoError(t, err)
				checkNegated(t, b, name, width)
			}
		}
	}
}

// checkNegated checks the ends of each record that negate has transformed.
func checkNegated(t *testing.T, b loader.Batch, name string, width int) {
	t.Helper()
	for i, r := range b.Indices() {
		x := b.Field("x").Bytes()[i*width : (i+1)*width]
		if x[0] != ^pixel(r, 0) || x[width-1] != ^pixel(r, width-1) {
			t.Fatalf("%s, %d bytes: batch %d: record %d begins with %d", name, width, b.Step(), r, x[0])
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
	require.NoError(t, err)
}

// While records come from storage, those of a batch are gathered before they are transformed, but for the first batch, and
// where a Timeout is to name the record that hangs.
func TestTransformsOfColdRecords(t *testing.T) {
	const width, batch = 300, 16
	for name, c := range map[string]struct {
		timeout time.Duration
		want    int
	}{"any": {0, 9}, "watched": {time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			m, together := newMemorySource(10*batch, width), 0
			m.before = func(_ context.Context, field string, indices []int) error {
				if field == "x" && len(indices) == batch {
					together++
				}
				return nil
			}
			ld := open(t, &cold{memory: m}, loader.Options{
				BatchSize: batch, Workers: 1, Sampler: sampler.Shuffle{}, Timeout: c.timeout,
				Transforms: map[string]loader.Transform{"x": negate{}},
			})
			for b, err := range ld.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				checkNegated(t, b, name, width)
			}
			if together != c.want {
				t.Errorf("%d batches were gathered, want %d", together, c.want)
			}
		})
	}
}

// If one of several gathered records fails in its transform, it alone is named or skipped.
func TestColdRecordsThatFail(t *testing.T) {
	m := newMemorySource(100, 4)
	o := loader.Options{BatchSize: 10, Workers: 1, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"x": negate{}}}
	for bad := range 100 { // those of the first batch as well
		m.before = failOn(bad)
		_, err := run(t.Context(), open(t, &cold{memory: m}, o), ignore)
		var e *loader.Error
		if !errors.As(err, &e) || e.Record != bad || e.Field != "x" {
			t.Fatalf("error %v", err)
		}
		if bad%10 > 0 {
			continue
		}
		skip := o
		skip.OnError = loader.Blank
		n, err := run(t.Context(), open(t, &cold{memory: m}, skip), func(b loader.Batch) {
			for i, r := range b.Indices() {
				if got := b.Field("x").Bytes()[4*i]; b.Mask()[i] != (r != bad) || r != bad && got != ^pixel(r, 0) {
					t.Errorf("record %d begins with %d, valid is %v", r, got, b.Mask()[i])
				}
			}
		})
		if n != 10 || err != nil {
			t.Errorf("%d batches, error %v", n, err)
		}
	}
}
