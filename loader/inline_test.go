package loader_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

// tepid is a Source that says which records are warm.
type tepid struct {
	*memory
	warm func(a, b int) bool
}

func (s *tepid) IsWarm(field string, a, b int) bool { return s.Contiguous(field, a, b) && s.warm(a, b) }

func (s *tepid) Warm(string, int, int) error { return nil }

// warmBut returns a Source whose records are warm, except those of the cold batches.
func warmBut(n, batch int, cold ...int) *tepid {
	return &tepid{newMemorySource(n, 4), func(a, b int) bool {
		return !slices.ContainsFunc(cold, func(c int) bool { return c*batch < b && a < (c+1)*batch })
	}}
}

// Batches of warm views are made by the loop: all of them, or those that are farther before a
// cold one than the workers may be prefetch, and come in the same order.
func TestWarmViewsAreMadeByTheLoop(t *testing.T) {
	for _, c := range []struct {
		name        string
		cold        []int
		change      func(*loader.Options)
		least, most int
	}{
		{"all warm", nil, nil, 40, 40},
		{"the first is cold", []int{0}, nil, 40 - 7, 40 - 1}, // the workers have six buffers, and that of the first once more
		{"one is cold", []int{20}, nil, 40 - 12, 40 - 1},     // the workers make that one, and as many around it as they have time for
		{"all are cold", upTo(40), nil, 0, 0},
		{"unordered", nil, func(o *loader.Options) { o.Unordered = true }, 40, 40},
		{"two ranks", nil, func(o *loader.Options) { o.World, o.BatchSize = loader.World{Rank: 1, Size: 2}, 5 }, 40, 40},
		{"runs", nil, func(o *loader.Options) { o.Sampler = sampler.Block{Size: 10} }, 40, 40},
		{"gathered", nil, func(o *loader.Options) { o.Sampler = sampler.Shuffle{} }, 0, 0},
		{"transformed", nil, func(o *loader.Options) { o.Transforms = map[string]loader.Transform{"x": negate{}} }, 0, 0},
		{"watched", nil, func(o *loader.Options) { o.Timeout = time.Hour }, 0, 0},
		{"into a memory", nil, func(o *loader.Options) { o.Allocator = &heap{} }, 0, 0},
		{"no workers", nil, func(o *loader.Options) { o.Workers = loader.Synchronous }, 40, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := loader.Options{BatchSize: 10, Workers: 2, Prefetch: 3, Seed: 5}
			if c.change != nil {
				c.change(&o)
			}
			ld := open(t, warmBut(400, 10, c.cold...), o)
			got := records(t, ld)
			o.Workers, o.Timeout = loader.Synchronous, 0
			if want := records(t, open(t, newMemorySource(400, 4), o)); !slices.Equal(got, want) {
				t.Errorf("records %v, want %v", got, want)
			}
			if st := ld.Stats(); st.Inline < c.least || st.Inline > c.most || st.Batches != 40 {
				t.Errorf("%d of %d batches are made by the loop, want %d to %d", st.Inline, st.Batches, c.least, c.most)
			}
		})
	}
}

// records returns the records of epoch 3.
func records(t *testing.T, ld *loader.Loader) (all []int) {
	t.Helper()
	for b, err := range ld.Epoch(t.Context(), 3) {
		require.NoError(t, err)
		all = append(all, b.Indices()...)
	}
	return all
}

// While the loop makes its batches, no worker has been started.
func TestWarmViewsNeedNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	ld := open(t, warmBut(100, 10), loader.Options{BatchSize: 10, Workers: 3})
	visit(t, ld, 0)
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines more", n-before)
	}
}

// The Loader reports an error in a batch that the loop makes as if a worker had made it, and
// continues.
func TestWarmViewsThatFail(t *testing.T) {
	m := warmBut(100, 10)
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 2})
	for _, c := range []struct {
		before func(context.Context, string, []int) error
		want   string
	}{
		{failOn(55), `loader: batch 5: record 55: field "x": bad sector`},
		{func(context.Context, string, []int) error { panic("of the Source") }, "loader: batch 0: record 0: field \"x\": panic: of the Source"},
	} {
		m.before = c.before
		if _, err := run(t.Context(), ld, ignore); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
		m.before = nil
		visit(t, ld, 0)
	}
	m.warm = func(int, int) bool { panic("of the look") }
	visit(t, ld, 1) // by workers
	ctx, cancel := context.WithCancel(t.Context())
	m.warm = func(int, int) bool { return true }
	n, err := run(ctx, ld, func(b loader.Batch) {
		if b.Step() == 3 {
			cancel()
		}
	})
	if n != 4 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d batches, then %v", n, err)
	}
	if st := ld.Stats(); st.Inline == st.Batches {
		t.Errorf("all %d batches are made by the loop", st.Batches)
	}
}

// The loop makes batches with as many kept as may be, and a State resumes at the next.
func TestWarmViewsAreKeptAndResumed(t *testing.T) {
	m := warmBut(100, 10)
	o := loader.Options{BatchSize: 10, Workers: 1, Prefetch: 2}
	ld := open(t, m, o)
	var kept []loader.Batch
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		if err := b.Keep(); err == nil {
			kept = append(kept, b)
		} else if !errors.Is(err, loader.ErrKept) {
			t.Fatal(err)
		}
		if b.Step() == 6 {
			break
		}
	}
	if len(kept) != 2 || ld.Stats().Inline != 7 {
		t.Fatalf("%d batches are kept; %+v", len(kept), ld.Stats())
	}
	for _, b := range kept {
		checkBatch(t, b)
		b.Release()
	}
	next, err := loader.Resume(m, o, ld.State())
	require.NoError(t, err)
	defer next.Close()
	var got []int
	for b, err := range next.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		got = append(got, b.Indices()...)
	}
	if !slices.Equal(got, upTo(100)[70:]) {
		t.Errorf("resumed with %v", got)
	}
}

// From the second epoch on, a mapped dataset is warm, and its batches in order are made by the
// loop; those of a join that are across its parts are not.
func TestMappedDatasetsBecomeInline(t *testing.T) {
	m := newMemorySource(4050, 4)
	a, err := mmapds.Open(writeDataset(t, m))
	require.NoError(t, err)
	defer a.Close()
	both, err := combine.NewConcat(a, a)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		src   loader.Source
		least int
		most  int
	}{"alone": {a, 41, 41}, "joined": {both, 81 - 8, 80}} {
		ld, err := loader.New(c.src, loader.Options{BatchSize: 100, Workers: 2, Prefetch: 1})
		require.NoError(t, err)
		defer ld.Close()
		records(t, ld)
		first := ld.Stats().Inline
		if got := records(t, ld); !slices.Equal(got, upTo(c.src.Len())) {
			t.Errorf("%s: %v", name, got)
		}
		if n := ld.Stats().Inline - first; n < c.least || n > c.most {
			t.Errorf("%s: %d batches are made by the loop, want %d to %d", name, n, c.least, c.most)
		}
	}
}
