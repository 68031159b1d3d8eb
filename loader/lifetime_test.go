package loader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// mustPanic fails the test unless f panics with a text that contains want.
func mustPanic(t testing.TB, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Errorf("panic %q; want %q", got, want)
		}
	}()
	f()
}

// pull returns epoch 0 batch by batch.
func pull(ld *loader.Loader) (next func(testing.TB) loader.Batch, stop func()) {
	step, stop := iter.Pull2(ld.Epoch(context.Background(), 0))
	return func(t testing.TB) loader.Batch {
		b, err, ok := step()
		if err != nil || !ok {
			t.Fatalf("no batch: %v", err)
		}
		return b
	}, stop
}

const stale = "used after its time"

// checkStale fails the test unless every use of b panics.
func checkStale(t testing.TB, b loader.Batch) {
	t.Helper()
	for _, use := range []func(){
		func() { b.Field("x") }, func() { b.Indices() }, func() { b.Len() }, func() { b.Step() }, func() { _ = b.Keep() },
	} {
		mustPanic(t, stale, use)
	}
	b.Release() // has no effect
}

func TestBatchEndsWithItsLoopBody(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Sampler: order})
		var last loader.Batch
		for b, err := range ld.Epoch(context.Background(), 0) {
			require.NoError(t, err)
			if last != (loader.Batch{}) {
				checkStale(t, last)
			}
			checkBatch(t, b)
			last = b
		}
		checkStale(t, last)
	}
	checkStale(t, loader.Batch{})
}

func TestReleaseEndsTheBatchAtOnce(t *testing.T) {
	ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}})
	for b, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		b.Release()
		checkStale(t, b)
	}
}

func TestLeasesAreThoseOfViews(t *testing.T) {
	for _, c := range []struct {
		order sampler.Sampler
		want  int64
	}{{sampler.Sequential{}, 1}, {sampler.Shuffle{}, 0}} {
		m := newMemorySource(100, 4)
		ld := open(t, m, loader.Options{BatchSize: 10, Workers: 3, Sampler: c.order})
		for b, err := range ld.Epoch(context.Background(), 0) {
			require.NoError(t, err)
			// With the last batch nothing is being filled.
			if got := m.held.Load(); b.Step() == 9 && got != c.want {
				t.Errorf("%T: %d leases for the last batch, not %d", c.order, got, c.want)
			}
		}
		if got := m.held.Load(); got != 0 {
			t.Errorf("%T: %d leases after the epoch", c.order, got)
		}
	}
}

func TestKeepHoldsBeyondTheEpoch(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		m := newMemorySource(100, 4)
		ld := open(t, m, loader.Options{BatchSize: 10, Prefetch: 3, Sampler: order})
		var kept []loader.Batch
		for b, err := range ld.Epoch(context.Background(), 0) {
			require.NoError(t, err)
			if b.Step()%4 == 1 {
				for range 2 { // the second changes nothing
					require.NoError(t, b.Keep())
				}
				kept = append(kept, b)
			}
		}
		visit(t, ld, 1) // reuses all other memory
		if got := ld.Stats().Kept; got != len(kept) {
			t.Errorf("Stats says %d kept, not %d", got, len(kept))
		}
		for _, b := range kept {
			checkBatch(t, b)
			b.Release()
			checkStale(t, b)
		}
		if got := ld.Stats().Kept; got != 0 {
			t.Errorf("Stats says %d kept after Release", got)
		}
	}
}

func TestKeepingTooManyIsAnError(t *testing.T) {
	ld := open(t, newMemorySource(1000, 4), loader.Options{BatchSize: 10, Workers: 2, Prefetch: 3, Sampler: sampler.Shuffle{}})
	var kept []loader.Batch
	steps := 0
	for b, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		steps++
		err := b.Keep()
		if len(kept) < 3 && err != nil || len(kept) == 3 && !errors.Is(err, loader.ErrKept) {
			t.Fatalf("Keep with %d kept: %v", len(kept), err)
		}
		if err != nil && invariants.Enabled && strings.Count(err.Error(), "lifetime_test.go:") != 3 {
			t.Errorf("Keep does not say where the others are kept: %v", err)
		}
		if err == nil {
			kept = append(kept, b)
		}
		checkBatch(t, b)
	}
	if steps != 100 {
		t.Errorf("%d batches, not 100", steps)
	}
	for _, b := range kept {
		checkBatch(t, b)
		b.Release()
	}
}

func TestOldHandleDoesNotReleaseANewBatch(t *testing.T) {
	ld := open(t, newMemorySource(1000, 4), loader.Options{BatchSize: 10, Workers: 1, Prefetch: 1, Sampler: sampler.Shuffle{}})
	var old []loader.Batch
	for b, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		for _, o := range old {
			o.Release()
		}
		checkBatch(t, b)
		old = append(old, b)
	}
}

func TestKeptBatchesAreReleasedByOtherGoroutines(t *testing.T) {
	ld := open(t, newMemorySource(4000, 4), loader.Options{BatchSize: 10, Workers: 2, Prefetch: 4, Sampler: sampler.Shuffle{}})
	tokens := make(chan struct{}, 4)
	batches := make(chan loader.Batch, 4)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for b := range batches {
				checkBatch(t, b)
				b.Release()
				<-tokens
			}
		})
	}
	for b, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		tokens <- struct{}{}
		require.NoError(t, b.Keep())
		batches <- b
	}
	close(batches)
	wg.Wait()
}

func TestCloseReportsKeptBatches(t *testing.T) {
	m := newMemorySource(100, 4)
	ld, err := loader.New(m, loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}})
	require.NoError(t, err)
	next, stop := pull(ld)
	b := next(t)
	require.NoError(t, b.Keep())
	stop()
	err = ld.Close()
	if err == nil || !strings.Contains(err.Error(), "1 kept batch") {
		t.Errorf("Close: %v", err)
	}
	if invariants.Enabled && !strings.Contains(err.Error(), "lifetime_test.go:") {
		t.Errorf("Close does not say where: %v", err)
	}
	checkBatch(t, b) // still valid
	b.Release()
	checkStale(t, b)
	if got := ld.Stats().RingBytes; got != 0 {
		t.Errorf("a ring of %d bytes is left", got)
	}
	if got := m.held.Load(); got != 0 {
		t.Errorf("%d leases are left", got)
	}
}

func TestReleasedMemoryIsPoisonedInCheckedBuilds(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs -tags invariants or -race")
	}
	ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 100, Sampler: sampler.Shuffle{}})
	next, stop := pull(ld)
	defer stop()
	b := next(t)
	bytes := b.Field("x").Bytes()
	poison := strings.Repeat(string([]byte{invariants.PoisonByte}), len(bytes))
	if string(bytes) == poison {
		t.Fatal("poisoned while valid")
	}
	b.Release()
	if string(bytes) != poison {
		t.Errorf("not poisoned after Release: % x", bytes[:16])
	}
}

func TestCloseTwice(t *testing.T) {
	ld, err := loader.New(newMemorySource(10, 4), loader.Options{BatchSize: 10})
	require.NoError(t, err)
	require.NoError(t, ld.Close())
	if err := ld.Close(); !errors.Is(err, loader.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	for _, err := range ld.Epoch(context.Background(), 0) {
		if !errors.Is(err, loader.ErrClosed) {
			t.Errorf("Epoch after Close: %v", err)
		}
	}
}
