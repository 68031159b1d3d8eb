package sampler_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/sampler"
)

// sourceOf returns the source of a record.
func sourceOf(record int, sizes []int) int {
	for i, n := range sizes {
		if record < n {
			return i
		}
		record -= n
	}
	return -1
}

func counts(records, sizes []int) []int {
	out := make([]int, len(sizes))
	for _, r := range records {
		out[sourceOf(r, sizes)]++
	}
	return out
}

func mustMix(t testing.TB, sizes []int, o sampler.MixOptions) *sampler.Mix {
	t.Helper()
	m, err := sampler.NewMix(sizes, o)
	require.NoError(t, err)
	return m
}

func constant(weights ...float64) []sampler.MixWeights {
	return []sampler.MixWeights{{Weights: weights}}
}

// Every batch has the share of each source rounded up or down, any half of it within one more, all batches together
// within a few, and the records of a source come in whole passes over several epochs.
func TestMixKeepsShares(t *testing.T) {
	for number := range uint64(40) {
		rng := rand.New(rand.NewPCG(number, 1))
		k, batch := 1+rng.IntN(6), 2*(1+rng.IntN(100))
		sizes, weights, sum := make([]int, k), make([]float64, k), 0.0
		for i := range sizes {
			sizes[i], weights[i] = 1+rng.IntN(300), math.Exp(3*rng.NormFloat64())
			sum += weights[i]
		}
		m := mustMix(t, sizes, sampler.MixOptions{Schedule: constant(weights...), Batch: batch, Draws: 1 + rng.IntN(40*batch)})
		times, total, n := make(map[int]int), make([]int, k), 0
		for epoch := range 3 {
			all := fillAll(t, m, 0, number, epoch)
			for step := 0; step*batch < len(all); step++ {
				if seen := m.Seen(epoch, step, false); !slices.Equal(seen, total) {
					t.Fatalf("mix %d, epoch %d, step %d: %v seen, %v drawn", number, epoch, step, seen, total)
				}
				records := all[step*batch : (step+1)*batch]
				half := counts(records[:batch/2], sizes)
				n += batch
				for i, c := range counts(records, sizes) {
					total[i] += c
					want := weights[i] / sum * float64(batch)
					if math.Abs(float64(c)-want) > 1+1e-6 {
						t.Fatalf("mix %d: %d records of source %d in a batch, want %.3f", number, c, i, want)
					}
					if math.Abs(float64(half[i])-want/2) > 3 {
						t.Errorf("mix %d: %d records of source %d in half a batch, want %.3f", number, half[i], i, want/2)
					}
					if want := weights[i] / sum * float64(n); math.Abs(float64(total[i])-want) > 4 {
						t.Errorf("mix %d: %d records of source %d, want %.3f", number, total[i], i, want)
					}
				}
			}
			for _, r := range all {
				times[r]++
			}
		}
		first := 0
		for i, n := range sizes {
			for r := first; r < first+n; r++ {
				if c := times[r]; c != total[i]/n && c != total[i]/n+1 {
					t.Errorf("mix %d: record %d of a source of %d came %d times in %d draws", number, r, n, c, total[i])
				}
			}
			first += n
		}
	}
}

// The order at a step does not depend on what was asked before, far from the start too.
func TestMixCountsFar(t *testing.T) {
	m := mustMix(t, []int{3, 5}, sampler.MixOptions{Schedule: constant(1, 2), Batch: 7, Draws: 7 << 20})
	for _, epoch := range []int{1, 1 << 10, 3 << 11, 1<<12 + 5} {
		seen := m.Seen(epoch, 3, false)
		if n := 7 * (epoch<<20 + 3); seen[0]+seen[1] != n || math.Abs(float64(seen[0])-float64(n)/3) > 8 {
			t.Errorf("epoch %d: %v of %d", epoch, seen, n)
		}
	}
}

func TestMixFollowsSchedule(t *testing.T) {
	sizes := []int{1000, 1000}
	rows := []sampler.MixWeights{{Weights: []float64{1, 0}}, {Step: 100, Weights: []float64{0, 1}}}
	for _, linear := range []bool{false, true} {
		m := mustMix(t, sizes, sampler.MixOptions{Schedule: rows, Interpolate: linear, Batch: 50, Draws: 50 * 60})
		for step := range 180 {
			records := make([]int, 50)
			m.Epoch(0, 1, step/60).Fill(step%60*50, records)
			want := 0.0
			switch {
			case step >= 100:
				want = 50
			case linear:
				want = float64(step) / 2
			}
			if c := counts(records, sizes); math.Abs(float64(c[1])-want) > 1 {
				t.Errorf("linear %v, step %d: %v", linear, step, c)
			}
		}
	}
}

func TestMixTemperature(t *testing.T) {
	sizes := []int{100, 10_000}
	m := mustMix(t, sizes, sampler.MixOptions{Temperature: 2, Batch: 110, Draws: 1100})
	if c := counts(fillAll(t, m, 0, 1, 0), sizes); c[0] != 100 || c[1] != 1000 {
		t.Errorf("%v", c)
	}
}

// Each batch has one source, and the batches have their shares.
func TestMixPerBatch(t *testing.T) {
	sizes := []int{30, 50}
	m := mustMix(t, sizes, sampler.MixOptions{Schedule: constant(1, 3), Batch: 16, Draws: 16 * 400, PerBatch: true})
	all := fillAll(t, m, 0, 1, 0)
	for at := 0; at < len(all); at += 16 {
		if c := counts(all[at:at+16], sizes); c[0] != 0 && c[1] != 0 {
			t.Fatalf("a batch has %v", c)
		}
	}
	if c := counts(all, sizes); math.Abs(float64(c[0])/16-100) > 2 || !slices.Equal(c, m.Seen(1, 0, false)) {
		t.Errorf("%v", c)
	}
}

// A mix that stops draws no record twice, and one that rescales each record once.
func TestMixEnds(t *testing.T) {
	for number := range uint64(60) {
		rng := rand.New(rand.NewPCG(number, 2))
		k, batch := 1+rng.IntN(5), 1+rng.IntN(50)
		sizes, weights := make([]int, k), make([]float64, k)
		var want []int
		first := 0
		for i := range sizes {
			sizes[i], weights[i] = 60+rng.IntN(400), math.Exp(rng.NormFloat64())
			if i > 0 && rng.IntN(5) == 0 {
				weights[i] = 0
			}
			for r := range sizes[i] {
				if weights[i] > 0 {
					want = append(want, first+r)
				}
			}
			first += sizes[i]
		}
		m := mustMix(t, sizes, sampler.MixOptions{Schedule: constant(weights...), Batch: batch, Ends: sampler.MixRescale})
		all := fillAll(t, m, 0, number, 1)
		checkPermutation(t, "rescale", all, want)
		if slices.Equal(all, fillAll(t, m, 0, number, 2)) {
			t.Error("two epochs are the same")
		}
		full := all[:len(all)/batch*batch]
		if seen := m.Seen(1, 0, true); !slices.Equal(seen, counts(full, sizes)) {
			t.Errorf("mix %d: %v seen in full batches, not %v", number, seen, counts(full, sizes))
		}
		m = mustMix(t, sizes, sampler.MixOptions{Schedule: constant(weights...), Batch: batch, Ends: sampler.MixStop})
		stopped := fillAll(t, m, 0, number, 1)
		if !slices.Equal(stopped, all[:len(stopped)]) {
			t.Errorf("mix %d: it differs from one that rescales before a source ends", number)
		}
		least := math.Inf(1)
		for i, c := range counts(stopped, sizes) {
			if weights[i] > 0 {
				least = min(least, float64(sizes[i]-c)-weights[i]/sumOf(weights)*float64(batch))
			}
		}
		if least > 1 {
			t.Errorf("mix %d: it stops with %.1f records more than the next batch needs", number, least)
		}
		if seen := m.Seen(2, 0, false); !slices.Equal(seen, counts(append(stopped, stopped...), sizes)) {
			t.Errorf("mix %d: %v seen", number, seen)
		}
	}
}

func sumOf(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// Weights that are set change the order from their step on, and what is kept of them is enough for later steps.
func TestReweigh(t *testing.T) {
	sizes := []int{50, 70, 90}
	m := mustMix(t, sizes, sampler.MixOptions{Schedule: constant(1, 1, 1), Batch: 9, Draws: 90})
	rows := []sampler.MixWeights{{Step: 7, Weights: []float64{1, 0, 1}}, {Step: 13, Weights: []float64{0, 1, 2}}}
	var orders []sampler.Sampler
	for _, at := range []int{0, 10, 20} {
		s, kept, err := sampler.Reweigh(m, rows, at)
		require.NoError(t, err)
		if want := []int{2, 2, 1}[at/10]; len(kept) != want {
			t.Errorf("%d rows are kept at step %d, not %d", len(kept), at, want)
		}
		again, _, err := sampler.Reweigh(m, kept, at)
		require.NoError(t, err)
		orders = append(orders, s, again)
	}
	for i, s := range orders {
		first := []int{0, 0, 10, 10, 20, 20}[i]
		for step := first; step < 30; step++ {
			var got, want, before [9]int
			s.Epoch(0, 3, step/10).Fill(step%10*9, got[:])
			orders[0].Epoch(0, 3, step/10).Fill(step%10*9, want[:])
			m.Epoch(0, 3, step/10).Fill(step%10*9, before[:])
			if got != want || (got == before) != (step < 7) {
				t.Errorf("order %d, step %d: %v, not %v", i, step, got, want)
			}
		}
	}
	for _, bad := range [][]sampler.MixWeights{
		{{Step: 1, Weights: []float64{1}}}, {{Step: 1, Weights: []float64{0, 0, 0}}}, {rows[1], rows[0]},
		{{Step: 2, Weights: []float64{1, 1, 1}, Drawn: []int{6, 6, 5}}}, {{Step: 2, Weights: []float64{1, 1, 1}, Drawn: []int{20, -2}}},
	} {
		if _, _, err := sampler.Reweigh(m, bad, 0); err == nil {
			t.Errorf("no error for %v", bad)
		}
	}
	if _, _, err := sampler.Reweigh(sampler.Shuffle{}, rows, 0); err == nil {
		t.Error("Shuffle takes weights")
	}
}

func TestMixRefuses(t *testing.T) {
	row := func(step int, w ...float64) sampler.MixWeights { return sampler.MixWeights{Step: step, Weights: w} }
	for want, o := range map[string]sampler.MixOptions{
		"one weight per source":            {Schedule: constant(1), Batch: 1},
		"weights must be finite":           {Schedule: constant(1, math.NaN()), Batch: 1},
		"a positive, finite sum":           {Schedule: constant(0, 0), Batch: 1},
		"and no records":                   {Schedule: constant(1, 1, 1), Batch: 1},
		"the least is 2^-31":               {Schedule: constant(1, 1e-12), Batch: 1},
		"must have from 1":                 {Schedule: constant(1, 1)},
		"-1 draws":                         {Schedule: constant(1, 1), Batch: 1, Draws: -1},
		"stops or rescales ends by itself": {Schedule: constant(1, 1), Batch: 1, Draws: 1, Ends: sampler.MixStop},
		"the temperature":                  {Schedule: constant(1, 1), Batch: 1, Temperature: -1},
		"Ends is 3":                        {Schedule: constant(1, 1), Batch: 1, Ends: 3},
		"for sources that repeat":          {Schedule: []sampler.MixWeights{row(0, 1, 1), row(1, 1, 1)}, Batch: 1, Ends: sampler.MixStop},
		"one source a batch was asked for": {Schedule: constant(1, 1), Batch: 1, PerBatch: true, Ends: sampler.MixRescale},
		"begins at step 1":                 {Schedule: []sampler.MixWeights{row(1, 1, 1)}, Batch: 1},
		"step 0 of the schedule":           {Schedule: []sampler.MixWeights{row(0, 1, 1), row(0, 1, 1)}, Batch: 1},
		"fewer records than its share ":    {Schedule: constant(1, 1), Batch: 1000, Ends: sampler.MixStop},
	} {
		sizes := []int{10, 20, 0}
		if len(o.Schedule[0].Weights) == 2 {
			sizes = sizes[:2]
		}
		if _, err := sampler.NewMix(sizes, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
}
