package sampler_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/sampler"
)

func TestRunShuffleIsAPermutationOfRuns(t *testing.T) {
	for _, c := range []struct{ n, run int }{{0, 4}, {3, 4}, {4, 4}, {100, 10}, {103, 10}, {99, 100}, {50_007, 7}, {1000, 1}, {1000, 0}} {
		cuts := map[int]bool{}
		for seed := range uint64(5) {
			got := fillAll(t, sampler.Block{Size: c.run}, c.n, seed, 1)
			checkPermutation(t, fmt.Sprint(c), got, upTo(c.n))
			for i := 0; c.run > 1 && i < c.n; i += c.run {
				run := got[i:min(c.n, i+c.run)]
				for k, r := range run {
					if r != run[0]+k {
						t.Fatalf("%+v: position %d: %v is not a run", c, i, run)
					}
				}
			}
			if tail := c.n % max(1, c.run); tail > 0 && c.run > 1 {
				cuts[got[c.n-tail]] = true
			}
		}
		if c.run == 10 && c.n == 103 && len(cuts) < 3 {
			t.Errorf("%+v: the tail is at %v in five epochs", c, cuts)
		}
	}
}

func TestRandomness(t *testing.T) {
	const n, batch = 100_000, 64
	last := 1.1
	for _, c := range []struct {
		order  sampler.Sampler
		lo, hi float64
	}{
		{sampler.Shuffle{}, 0.98, 1},
		{sampler.Block{Size: 4}, 0.3, 0.45},
		{sampler.Block{Size: 16}, 0.05, 0.12},
		{sampler.Block{Size: 64}, 0, 0.02},
		{sampler.Sequential{}, 0, 0.02},
	} {
		got := sampler.Randomness(c.order, n, batch, 1, 1)
		if got < c.lo || got > c.hi || got > last+0.01 {
			t.Errorf("%#v: %.3f; want %v to %v, not much more than before", c.order, got, c.lo, c.hi)
		}
		last = got
	}
	if got := sampler.Randomness(sampler.Shuffle{}, 10, 1, 1, 1); got != 0 {
		t.Errorf("batches of one: %v", got)
	}
}

func TestSubset(t *testing.T) {
	indices := []int{7, 3, 3, 99, 50}
	if got := fillAll(t, sampler.Subset{Indices: indices}, 100, 1, 0); !slices.Equal(got, indices) {
		t.Errorf("indices: %v", got)
	}
	shuffled := fillAll(t, sampler.Subset{Indices: indices, Inner: sampler.Shuffle{}}, 100, 1, 0)
	checkPermutation(t, "shuffled", shuffled, indices)
	ranges := sampler.Subset{Ranges: [][2]int{{90, 95}, {0, 3}, {40, 41}}}
	want := []int{90, 91, 92, 93, 94, 0, 1, 2, 40}
	if got := fillAll(t, ranges, 100, 1, 0); !slices.Equal(got, want) {
		t.Errorf("ranges: %v", got)
	}
	ranges.Inner = sampler.Shuffle{}
	checkPermutation(t, "ranges shuffled", fillAll(t, ranges, 100, 1, 5), want)
}

// TestRepeats asks orders whether a record may come more than once.
func TestRepeats(t *testing.T) {
	weighted, err := sampler.NewWeighted([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5)
	require.NoError(t, err)
	for _, c := range []struct {
		order interface{ Repeats() bool }
		want  bool
	}{
		{weighted, true},
		{sampler.Subset{}, false},
		{sampler.Subset{Indices: []int{7, 3, 1}}, false},
		{sampler.Subset{Indices: []int{7, 3, 7}}, true},
		{sampler.Subset{Indices: []int{7, 3}, Inner: weighted}, true},
		{sampler.Subset{Ranges: [][2]int{{5, 9}, {0, 5}}, Inner: sampler.Shuffle{}}, false},
		{sampler.Subset{Ranges: [][2]int{{5, 9}, {0, 6}}}, true},
		{sampler.Subset{Ranges: [][2]int{{0, 10}}, Inner: weighted}, true},
		{sampler.Split{To: 1, Inner: sampler.Shuffle{}}, false},
		{sampler.Split{To: 1, Inner: weighted}, true},
		{sampler.Split{To: 1, Inner: sampler.Subset{Indices: []int{7, 7}}}, true},
	} {
		if got := c.order.Repeats(); got != c.want {
			t.Errorf("%#v: %v", c.order, got)
		}
	}
}

func TestSplitDivides(t *testing.T) {
	for _, n := range []int{10, 101, 4097, 20_000} {
		var all []int
		for _, part := range [][2]float64{{0, 0.75}, {0.75, 0.9}, {0.9, 1}} {
			o := sampler.Split{Seed: 4, From: part[0], To: part[1], Inner: sampler.Shuffle{}}
			got := fillAll(t, o, n, 9, 2)
			if share := float64(len(got)) / float64(n); math.Abs(share-(part[1]-part[0])) > 1/float64(n) {
				t.Errorf("n %d: %v has %d records", n, part, len(got))
			}
			checkPermutation(t, "another epoch", fillAll(t, o, n, 10, 3), got)
			all = append(all, got...)
		}
		checkPermutation(t, fmt.Sprint("all parts of ", n), all, upTo(n))
	}
}

func TestWeightedFollowsWeights(t *testing.T) {
	weights := []float64{1, 0, 5, 0.5, 3.5, 0}
	o, err := sampler.NewWeighted(weights, 100_000)
	require.NoError(t, err)
	counts := make([]int, len(weights))
	for _, r := range fillAll(t, o, len(weights), 3, 0) {
		counts[r]++
	}
	for i, w := range weights {
		want := w / 10 * 100_000
		if math.Abs(float64(counts[i])-want) > 5*math.Sqrt(want) {
			t.Errorf("record %d of weight %v: drawn %d times, not %.0f", i, w, counts[i], want)
		}
	}
	if slices.Equal(fillAll(t, o, 6, 3, 1), fillAll(t, o, 6, 3, 0)) {
		t.Error("two epochs are the same")
	}
}

// Without replacement, the first draw is in proportion to the weights, the second one in proportion to those that are left,
// and no record comes twice.
func TestWeightedOnce(t *testing.T) {
	weights := []float64{1, 0, 2, 5}
	o, err := sampler.NewWeightedOnce(weights, 3)
	require.NoError(t, err)
	const epochs = 20_000
	var first [4]int
	pairs := 0
	for epoch := range epochs {
		got := fillAll(t, o, 4, 7, epoch)
		checkPermutation(t, "records", got, []int{0, 2, 3})
		first[got[0]]++
		if got[0] == 3 && got[1] == 2 {
			pairs++
		}
	}
	for i, w := range weights {
		if want := w / 8 * epochs; math.Abs(float64(first[i])-want) > 5*math.Sqrt(want+1) {
			t.Errorf("record %d is first %d times, not %.0f", i, first[i], want)
		}
	}
	if want := 5.0 / 8 * 2 / 3 * epochs; math.Abs(float64(pairs)-want) > 5*math.Sqrt(want) {
		t.Errorf("3 and 2 are first %d times, not %.0f", pairs, want)
	}
	for _, draws := range []int{0, 4} {
		if _, err := sampler.NewWeightedOnce(weights, draws); err == nil {
			t.Errorf("%d draws of 3 records", draws)
		}
	}
}

func TestBalanced(t *testing.T) {
	if got := sampler.Balanced([]float64{3, 1, 3, 3}); !slices.Equal(got, []float64{1. / 3, 1, 1. / 3, 1. / 3}) {
		t.Errorf("weights %v", got)
	}
}

// permuted returns the order of a single bucket: the permutation that sources of a Mix and
// buckets have.
func permuted(t testing.TB, n int, seed uint64, epoch int) []int {
	t.Helper()
	o := mustBucket(t, make([]float64, n), sampler.BucketOptions{Batch: n, Buckets: 1})
	p := make([]int, n)
	o.Epoch(n, seed, epoch).Fill(0, p)
	return p
}

func TestPermutationOfPartsIsUniform(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8, 13} {
		positions := make([]int, n*n)
		pairs := make([]int, n*(n-1))
		for seed := range 6000 {
			p := permuted(t, n, uint64(seed), seed%3)
			for i, r := range p {
				positions[i*n+r]++
			}
			pairs[pair(p[0], p[1], n)]++
		}
		checkUniform(t, fmt.Sprintf("n %d: record at position", n), positions)
		checkUniform(t, fmt.Sprintf("n %d: first two", n), pairs)
	}
}

// TestOrdersNeverChange pins what a State relies on.
func TestOrdersNeverChange(t *testing.T) {
	weighted, err := sampler.NewWeighted([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 100)
	require.NoError(t, err)
	once, err := sampler.NewWeightedOnce([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 10)
	require.NoError(t, err)
	mix, err := sampler.NewMix([]int{7, 3}, sampler.MixOptions{Schedule: constant(1, 2), Batch: 10, Draws: 100})
	require.NoError(t, err)
	buckets := mustBucket(t, []float64{5, 3, 8, 1, 9, 2, 7, 7, 6, 0}, sampler.BucketOptions{Batch: 2, Buckets: 2})
	for _, c := range []struct {
		o    sampler.Sampler
		want []int
	}{
		{sampler.Block{Size: 3}, []int{4, 5, 6, 7, 8, 0}},
		{weighted, []int{8, 7, 7, 6, 9, 2}},
		{mix, []int{6, 7, 9, 0, 9, 7}},
		{buckets, []int{3, 9, 5, 7, 4, 8}},
		{once, []int{9, 1, 6, 8, 5, 3}},
		{sampler.Split{Seed: 1, From: 0.2, To: 0.9, Inner: sampler.Shuffle{}}, []int{3, 6, 8, 0, 4, 7}},
	} {
		got := make([]int, 6)
		c.o.Epoch(10, 42, 1).Fill(1, got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%T: %#v", c.o, got)
		}
	}
}

// TestLongOrdersNeverChange pins digests of epochs whose positions are computed many at a time.
func TestLongOrdersNeverChange(t *testing.T) {
	mix, err := sampler.NewMix([]int{5000, 70_000, 3}, sampler.MixOptions{Schedule: constant(1, 2, 0.1), Batch: 100, Draws: 20_000})
	require.NoError(t, err)
	lengths := make([]float64, 20_011)
	for i := range lengths {
		lengths[i] = float64(i * i % 97)
	}
	buckets := mustBucket(t, lengths, sampler.BucketOptions{Batch: 24, Buckets: 5})
	for _, c := range []struct {
		o    sampler.Sampler
		n    int
		want uint64
	}{
		{mix, 75_003, 0xebdd84f39270ae91},
		{buckets, len(lengths), 0x4edf0294ce134b41},
		{sampler.Shuffle{}, 50_021, 0x16a31d966e8880a6},
		{sampler.Block{Size: 3}, 50_021, 0x75482764e718f308},
		{sampler.Split{From: 0.1, To: 0.9, Inner: sampler.Shuffle{}}, 50_021, 0x461761be4b65ce45},
		{sampler.Split{From: 0.1, To: 0.9}, 4001, 0xc94786808f2138e3},
	} {
		h := fnv.New64a()
		for _, r := range fillAll(t, c.o, c.n, 42, 1) {
			fmt.Fprintln(h, r)
		}
		if got := h.Sum64(); got != c.want {
			t.Errorf("%T: %#x", c.o, got)
		}
	}
}

// fillAll returns all of an epoch, and checks that pieces are the same as the whole.
func fillAll(t testing.TB, o sampler.Sampler, n int, seed uint64, epoch int) []int {
	t.Helper()
	seq := o.Epoch(n, seed, epoch)
	all := make([]int, seq.Len())
	seq.Fill(0, all)
	for pos := 0; pos < len(all); pos += 13 {
		piece := make([]int, min(5, len(all)-pos))
		seq.Fill(pos, piece)
		if !slices.Equal(piece, all[pos:pos+len(piece)]) {
			t.Fatalf("%T: position %d: %v in pieces, %v in one", o, pos, piece, all[pos:pos+len(piece)])
		}
	}
	return all
}

// checkPermutation fails the test unless got holds want, each once.
func checkPermutation(t testing.TB, what string, got, want []int) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%s: %d records, not the %d wanted", what, len(got), len(want))
	}
}

func upTo(n int) []int {
	all := make([]int, n)
	sampler.Sequential{}.Epoch(n, 0, 0).Fill(0, all)
	return all
}
