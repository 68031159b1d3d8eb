package loader_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

func TestSameBatchesForAnyWorkersAndPrefetch(t *testing.T) {
	const n = 5000
	var want []int
	for _, workers := range []int{1, 2, 8} {
		for _, prefetch := range []int{1, 2, 9} {
			ld := open(t, newMemorySource(n, 5), loader.Options{BatchSize: 32, Workers: workers, Prefetch: prefetch, Sampler: sampler.Shuffle{}, Seed: 7})
			first := visit(t, ld, 3)
			if want == nil {
				want = first
			}
			if !slices.Equal(first, want) {
				t.Errorf("Workers %d, Prefetch %d: other batches", workers, prefetch)
			}
			if slices.Equal(visit(t, ld, 4), want) {
				t.Errorf("epoch 4 is epoch 3")
			}
			if !slices.Equal(visit(t, ld, 3), want) {
				t.Errorf("epoch 3 is another when it comes again")
			}
		}
	}
}

func TestSequentialCopiesNothing(t *testing.T) {
	m := newMemorySource(1000, 9)
	ld := open(t, m, loader.Options{BatchSize: 64, Workers: 2})
	for i, r := range visit(t, ld, 0) {
		if i != r {
			t.Fatalf("position %d has record %d", i, r)
		}
	}
	st := ld.Stats()
	if st.CopiedBytes != 0 || st.ViewBytes != 1000*(9+8) || st.RingBytes != 0 {
		t.Errorf("%+v: want views alone, and no ring", st)
	}
	if st.Batches != 16 || st.Records != 1000 || st.Epochs != 1 || st.FirstBatch <= 0 {
		t.Errorf("%+v: want 16 batches, 1000 records, 1 epoch", st)
	}
}

func TestBatchAcrossPiecesIsCopiedAndCounted(t *testing.T) {
	m := newMemorySource(100, 9)
	m.pieces = 25
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 2})
	visit(t, ld, 0)
	// Batches 2 and 7 hold records 20 to 29 and 70 to 79.
	if st := ld.Stats(); st.CopiedBytes != 2*10*17 || st.ViewBytes != 8*10*17 {
		t.Errorf("%+v: want 2 batches of 170 bytes copied, 8 viewed", st)
	}
}

func TestRunInAnyOrderIsAView(t *testing.T) {
	ld := open(t, newMemorySource(100, 9), loader.Options{BatchSize: 10, Sampler: blocksBackwards{10}})
	got := visit(t, ld, 0)
	if got[0] != 90 || got[99] != 9 {
		t.Errorf("order is %v", got)
	}
	if st := ld.Stats(); st.CopiedBytes != 0 {
		t.Errorf("%+v: runs of consecutive records were copied", st)
	}
}

// blocksBackwards is a Sampler of a user: blocks of records, the last first.
type blocksBackwards struct{ size int }

func (o blocksBackwards) Epoch(n int, _ uint64, _ int) sampler.Sequence {
	return backwards{n, o.size}
}

type backwards struct{ n, size int }

func (s backwards) Len() int { return s.n }

func (s backwards) Fill(pos int, dst []int) {
	for i := range dst {
		at := pos + i
		dst[i] = s.n - (at/s.size+1)*s.size + at%s.size
	}
}

func TestRingIsBounded(t *testing.T) {
	o := loader.Options{BatchSize: 64, Workers: 3, Prefetch: 4, Sampler: sampler.Shuffle{}}
	ld := open(t, newMemorySource(3000, 9), o)
	visit(t, ld, 0)
	const page = 4096
	if st := ld.Stats(); st.RingBytes != (4+3+1)*2*page {
		t.Errorf("ring of %d bytes; want 8 batches of two pages", st.RingBytes)
	}
	if st := ld.Stats(); st.CopiedBytes != 3000*17 || st.ViewBytes != 0 {
		t.Errorf("%+v: want all copied", st)
	}
}

func TestDropLast(t *testing.T) {
	for _, c := range []struct{ n, batch, keep, drop int }{{100, 10, 10, 10}, {101, 10, 11, 10}, {109, 10, 11, 10}, {10, 10, 1, 1}} {
		m := newMemorySource(c.n, 2)
		if got := len(visit(t, open(t, m, loader.Options{BatchSize: c.batch}), 0)); got != c.n {
			t.Errorf("%+v: %d records", c, got)
		}
		ld := open(t, m, loader.Options{BatchSize: c.batch, DropLast: true})
		if got := len(visit(t, ld, 0)); got != c.drop*c.batch || ld.Batches(0) != c.drop {
			t.Errorf("%+v: DropLast: %d records in %d batches", c, got, ld.Batches(0))
		}
	}
}

func TestNoRecordsNoBatches(t *testing.T) {
	ld := open(t, newMemorySource(0, 2), loader.Options{BatchSize: 8, Sampler: sampler.Shuffle{}})
	if got := visit(t, ld, 0); len(got) != 0 {
		t.Errorf("records %v", got)
	}
}

func TestFieldsSelects(t *testing.T) {
	ld := open(t, newMemorySource(20, 4), loader.Options{BatchSize: 8, Fields: []string{"y"}})
	for b, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		if got := b.Field("y").Len(); got != b.Len() {
			t.Errorf("%d labels", got)
		}
		mustPanic(t, `no field x`, func() { b.Field("x") })
	}
	if st := ld.Stats(); st.ViewBytes != 20*8 {
		t.Errorf("%+v: want the labels alone", st)
	}
}

func TestNothingIsAllocatedPerBatch(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checked builds record where a batch is kept")
	}
	runs := sampler.Block{Size: 48}
	for name, o := range map[string]loader.Options{
		"sequential": {},
		"shuffled":   {Sampler: sampler.Shuffle{}},
		"runs":       {Sampler: runs},
		"split":      {Sampler: sampler.Split{To: 0.9, Inner: runs}},
		"unordered":  {Sampler: sampler.Shuffle{}, Unordered: true},
		"timeout":    {Sampler: sampler.Shuffle{}, Timeout: time.Hour},
		"backfill":   {Sampler: sampler.Shuffle{}, OnError: loader.Backfill},
		"tuned":      {Sampler: sampler.Shuffle{}},
		"a rank":     {Sampler: sampler.Shuffle{}, World: loader.World{Rank: 1, Size: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			o.BatchSize, o.Workers = 16, 2
			if got := allocsPerBatch(t, open(t, newMemorySource(200_000, 4), o)); got != 0 {
				t.Errorf("%v allocations a batch after the first", got)
			}
		})
	}
}

// allocsPerBatch measures batches from the second of an epoch on.
func allocsPerBatch(t *testing.T, ld *loader.Loader) float64 {
	next, stop := pull(ld)
	defer stop()
	next(t)
	return testing.AllocsPerRun(5000, func() {
		b := next(t)
		if b.Field("x").Len() != len(b.Indices()) {
			t.Error("wrong length")
		}
		if err := b.Keep(); err != nil {
			t.Error(err)
		}
		b.Release()
	})
}
