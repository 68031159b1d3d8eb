package loader_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/loader"
)

func TestBucketsVisitEachRecordOnce(t *testing.T) {
	for _, n := range []int{1, 5, 16, 100, 1003} {
		for _, buckets := range []int{1, 3, 1000} {
			lengths := make([]int, n)
			for i := range lengths {
				lengths[i] = i * i % 91
			}
			o, err := loader.NewBuckets(lengths, 16, buckets)
			if err != nil {
				t.Fatal(err)
			}
			checkPermutation(t, "records", fillAll(t, o, n, 3, 1), upTo(n))
		}
	}
}

// TestBucketsPadLess compares the padding of batches with that of a shuffle.
func TestBucketsPadLess(t *testing.T) {
	w := newWords(4000)
	lengths, err := loader.Lengths(t.Context(), w, "t")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range lengths {
		if n != len(wordsOf(i)) {
			t.Fatalf("record %d has %d rows, not %d", i, len(wordsOf(i)), n)
		}
	}
	padded := func(order []int) (sum int) {
		for batch := range slices.Chunk(order, 32) {
			longest := 0
			for _, r := range batch {
				longest = max(longest, lengths[r])
			}
			for _, r := range batch {
				sum += longest - lengths[r]
			}
		}
		return sum
	}
	o, err := loader.NewBuckets(lengths, 32, 20)
	if err != nil {
		t.Fatal(err)
	}
	shuffled, bucketed := padded(fillAll(t, loader.Shuffle{}, 4000, 1, 0)), padded(fillAll(t, o, 4000, 1, 0))
	if bucketed*5 > shuffled {
		t.Errorf("buckets pad %d rows, a shuffle %d", bucketed, shuffled)
	}
	a, b := fillAll(t, o, 4000, 1, 0)[:32], fillAll(t, o, 4000, 1, 1)[:32]
	if slices.Equal(a, b) {
		t.Error("two epochs begin with the same batch")
	}
	ld := openWords(t, w, loader.Options{BatchSize: 32, Order: o, Workers: 2})
	for b, err := range ld.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		checkWords(t, b)
	}
}

func TestBucketsRefuse(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {1, 0}} {
		if _, err := loader.NewBuckets([]int{1}, c[0], c[1]); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
	o, err := loader.NewBuckets([]int{1, 2}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loader.New(newMemorySource(3, 1), loader.Options{BatchSize: 1, Order: o}); err == nil || !strings.Contains(err.Error(), "2 lengths for 3 records") {
		t.Errorf("error %v", err)
	}
	if _, err := loader.Lengths(t.Context(), newMemorySource(3, 1), "x"); err == nil {
		t.Error("lengths of a Source without ragged fields")
	}
	if _, err := loader.Lengths(t.Context(), lengthless{newWords(3)}, "t"); err == nil || !strings.Contains(err.Error(), "unreadable word") {
		t.Errorf("error %v", err)
	}
}
