package loader_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
)

// Weights that are set between two loops count from their step on, and a State has them: other ranks go on with the same
// records.
func TestSetWeights(t *testing.T) {
	all, err := combine.NewConcat(newMemorySource(70, 4), newMemorySource(50, 4), newMemorySource(9, 4))
	require.NoError(t, err)
	const global = 12 // 11 steps an epoch
	mix, err := sampler.NewMix(all.Sizes(), sampler.MixOptions{Batch: global})
	require.NoError(t, err)
	set := map[int][]float64{5: {1, 0, 1}, 6: {3, 1, 0}, 20: {0, 0, 1}}
	// run goes on from a State for some steps, and returns the records of each and the State after it.
	run := func(st *loader.State, ranks, steps int) (out [][]int, after loader.State, mixed []loader.MixedStats) {
		for rank := range ranks {
			ld, err := loader.New(all, loader.Options{BatchSize: global / ranks, Sampler: mix, Seed: 5, Workers: rank%3 + 1,
				World: loader.World{Rank: rank, Size: ranks}})
			if err == nil && st != nil {
				err = ld.Seek(*st)
			}
			require.NoError(t, err)
			for at := range steps {
				next := ld.State()
				if w, is := set[next.Epoch*11+next.Step]; is {
					require.NoError(t, ld.SetWeights(w, next.Epoch*11+next.Step))
				}
				for _, batches := range ld.Epochs(t.Context(), next.Epoch+1) {
					for b, err := range batches {
						require.NoError(t, err)
						if rank == 0 {
							out = append(out, nil)
						}
						out[at] = append(out[at], b.Indices()...)
						break
					}
				}
			}
			mixed = ld.Mixed(ld.State().Epoch, ld.State().Step)
			text, err := json.Marshal(ld.State())
			if err == nil {
				after = loader.State{}
				err = json.Unmarshal(text, &after)
			}
			if err != nil || len(text) > 1000 || len(after.Weights) > 1 {
				t.Fatalf("state %s: %v", text, err)
			}
			if alone, err := after.Mixed(); err != nil || !slices.Equal(alone, mixed) {
				t.Fatalf("the state alone has %v of the sources (%v), not %v", alone, err, mixed)
			}
			require.NoError(t, ld.Close())
		}
		return out, after, mixed
	}
	want, _, _ := run(nil, 1, 40)
	for step, records := range want {
		for _, r := range records {
			source, _ := all.Locate(r)
			if step == 5 && source == 1 || step > 5 && step < 20 && source == 2 || step >= 20 && source != 2 {
				t.Errorf("step %d has record %d of source %d", step, r, source)
			}
		}
	}
	var st *loader.State
	at := 0
	for i, ranks := range []int{1, 2, 3, 4, 6, 12, 1} {
		steps := []int{3, 2, 1, 9, 8, 10, 7}[i]
		got, after, mixed := run(st, ranks, steps)
		for step := range got {
			if !slices.Equal(got[step], want[at+step]) {
				t.Errorf("%d ranks, step %d: %v, not %v", ranks, at+step, got[step], want[at+step])
			}
		}
		st, at = &after, at+steps
		drawn := make([]int, 3)
		for _, r := range slices.Concat(want[:at]...) {
			source, _ := all.Locate(r)
			drawn[source]++
		}
		for i, n := range all.Sizes() {
			if w := (loader.MixedStats{Records: n, Drawn: drawn[i], Epochs: float64(drawn[i]) / float64(n)}); mixed[i] != w {
				t.Errorf("after step %d, source %d: %+v, not %+v", at, i, mixed[i], w)
			}
		}
	}

	ld, err := loader.New(all, loader.Options{BatchSize: global, Sampler: mix, Seed: 5})
	require.NoError(t, err)
	defer ld.Close()
	require.NoError(t, ld.Seek(*st))
	for want, err := range map[string]error{
		"the next one is 40":      ld.SetWeights([]float64{1, 1, 1}, 39),
		"one weight per source":   ld.SetWeights([]float64{1, 1}, 40),
		"finite and not negative": ld.SetWeights([]float64{1, 1, -1}, 40),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	for b, err := range ld.Epoch(t.Context(), 3) {
		require.NoError(t, err)
		if err := ld.SetWeights([]float64{1, 1, 1}, 1000); b.Step() == 7 && err == nil {
			t.Error("weights are set within a loop")
		}
		break
	}
}

// A State has the mixture of few sources, and stays small: without it, there are no counts.
func TestStateOfManySources(t *testing.T) {
	sources := make([]loader.Source, 1000)
	for i := range sources {
		sources[i] = newMemorySource(1_000, 1)
	}
	for _, n := range []int{100, 1000} {
		all, err := combine.NewConcat(sources[:n]...)
		require.NoError(t, err)
		mix, err := sampler.NewMix(all.Sizes(), sampler.MixOptions{Batch: 10})
		require.NoError(t, err)
		ld, err := loader.New(all, loader.Options{BatchSize: 10, Sampler: mix})
		require.NoError(t, err)
		text, err := json.Marshal(ld.State())
		if _, refused := ld.State().Mixed(); err != nil || len(text) > 2000 || (refused == nil) != (n == 100) {
			t.Errorf("%d sources: %d bytes, error %v", n, len(text), refused)
		}
		require.NoError(t, ld.Close())
	}
}
