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

func mustBucket(t testing.TB, values []float64, o sampler.BucketOptions) *sampler.Bucket {
	t.Helper()
	b, err := sampler.NewBucket(values, o)
	require.NoError(t, err)
	return b
}

// Every record comes once; a batch has one bucket, as many records as its size, and keeps to the budget; each bucket has
// at most one that is not full, which whole leaves out.
func TestBucketBatches(t *testing.T) {
	for number := range uint64(60) {
		rng := rand.New(rand.NewPCG(number, 3))
		values := make([]float64, 1+rng.IntN(2000))
		for i := range values {
			values[i] = math.Round(math.Exp(rng.NormFloat64()) * 50)
		}
		o := sampler.BucketOptions{Batch: 12 * (1 + rng.IntN(6)), Multiple: []int{0, 1, 3, 12}[rng.IntN(4)]}
		if number%2 == 0 {
			o.Bounds = []float64{20, 50, 51, 400}
		} else {
			o.Buckets = 1 + rng.IntN(30)
		}
		if rng.IntN(2) == 0 {
			o.Budget = 12*slices.Max(values) + float64(rng.IntN(5000))
		}
		b := mustBucket(t, values, o)
		checkPermutation(t, "records", fillAll(t, b, len(values), number, 1), upTo(len(values)))
		seq := b.Epoch(len(values), number, 1).(sampler.BatchedSequence)
		all, whole := seq.Batches(false), seq.Batches(true)
		var got []int
		var spans [][2]float64
		full, partial := 0, 0
		for step := range all.Len() {
			pos, n := all.At(step)
			if first, of := all.Of(pos + n - 1); first != pos || of != n {
				t.Fatalf("bucket %d: position %d is of the batch [%d, +%d), not [%d, +%d)", number, pos+n-1, first, of, pos, n)
			}
			records := make([]int, n)
			seq.Fill(pos, records)
			got = append(got, records...)
			low, high := math.Inf(1), math.Inf(-1)
			for _, r := range records {
				low, high = min(low, values[r]), max(high, values[r])
			}
			spans = append(spans, [2]float64{low, high})
			if n > o.Batch || o.Budget > 0 && high*float64(n) > o.Budget {
				t.Fatalf("bucket %d: %d records of up to %v", number, n, high)
			}
			if n%max(1, o.Multiple) != 0 {
				partial++
			}
		}
		checkPermutation(t, "records of batches", got, upTo(len(values)))
		for _, s := range spans { // of two buckets they do not overlap
			for _, bound := range o.Bounds {
				if s[0] < bound && s[1] >= bound {
					t.Fatalf("bucket %d: a batch has numbers from %v to %v", number, s[0], s[1])
				}
			}
		}
		buckets := len(o.Bounds) + 1
		if o.Bounds == nil {
			buckets = o.Buckets
		}
		for step := range whole.Len() {
			if _, n := whole.At(step); n%max(1, o.Multiple) != 0 || o.Budget == 0 && n != o.Batch/max(1, o.Multiple)*max(1, o.Multiple) {
				t.Fatalf("bucket %d: a batch of %d is whole", number, n)
			}
			full++
		}
		if partial > buckets || all.Len()-full > buckets {
			t.Errorf("bucket %d: %d of %d batches are not full, of %d buckets", number, all.Len()-full, all.Len(), buckets)
		}
	}
}

// Bounds that pad least: with as many records in each bucket, 26 % would be padding.
func TestBucketPadsLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values, sum, padded := make([]float64, 200_000), 0.0, 0.0
	for i := range values {
		values[i] = math.Exp(rng.NormFloat64())
		sum += values[i]
	}
	b := mustBucket(t, values, sampler.BucketOptions{Batch: 64, Buckets: 50})
	seq := b.Epoch(len(values), 1, 1).(sampler.BatchedSequence)
	batches := seq.Batches(false)
	for step := range batches.Len() {
		pos, n := batches.At(step)
		records, most := make([]int, n), 0.0
		seq.Fill(pos, records)
		for _, r := range records {
			most = max(most, values[r])
		}
		padded += most * float64(n)
	}
	if part := 1 - sum/padded; part > 0.06 {
		t.Errorf("%.1f %% of batches is padding", 100*part)
	}
}

// Batches come in another order, and buckets in another one, in each epoch.
func TestBucketEpochs(t *testing.T) {
	values := make([]float64, 1000)
	for i := range values {
		values[i] = float64(i % 100)
	}
	b := mustBucket(t, values, sampler.BucketOptions{Batch: 10, Buckets: 10})
	order := func(epoch int) (at []int) {
		batches := sampler.BatchesOf(b.Epoch(1000, 1, epoch), false)
		for step := range batches.Len() {
			pos, _ := batches.At(step)
			at = append(at, pos/100)
		}
		return at
	}
	if slices.Equal(order(0), order(1)) || slices.IsSorted(order(0)) {
		t.Error("the buckets come in the same order")
	}
	if slices.Equal(fillAll(t, b, 1000, 1, 0), fillAll(t, b, 1000, 1, 1)) {
		t.Error("the records of buckets come in the same order")
	}
}

func TestBucketRefuses(t *testing.T) {
	for want, o := range map[string]sampler.BucketOptions{
		"a batch has at least 1":                 {Buckets: 1},
		"0 buckets and 0 bounds":                 {Batch: 1},
		"2 buckets and 1 bounds":                 {Batch: 1, Buckets: 2, Bounds: []float64{1}},
		"bounds [2 1] must ascend":               {Batch: 1, Bounds: []float64{2, 1}},
		"bounds [1 1] must ascend":               {Batch: 1, Bounds: []float64{1, 1}},
		"bounds [NaN] must ascend":               {Batch: 1, Bounds: []float64{math.NaN()}},
		"no multiple of 4":                       {Batch: 3, Buckets: 1, Multiple: 4},
		"the budget is -1":                       {Batch: 3, Buckets: 1, Budget: -1},
		"2 of them cost more than the budget of": {Batch: 4, Buckets: 1, Budget: 15, Multiple: 2},
	} {
		if _, err := sampler.NewBucket([]float64{1, 9}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	if _, err := sampler.NewBucket([]float64{1, math.NaN()}, sampler.BucketOptions{Batch: 1, Buckets: 1}); err == nil {
		t.Error("NaN has a bucket")
	}
}
