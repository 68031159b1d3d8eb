package loader_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

func TestSynchronousStartsNoGoroutine(t *testing.T) {
	m := newMemorySource(500, 4)
	before := runtime.NumGoroutine()
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		ld := open(t, m, loader.Options{BatchSize: 16, Workers: loader.Synchronous, Sampler: order})
		got := visit(t, ld, 0)
		checkPermutation(t, "all", got, upTo(500))
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines more", n-before)
		}
		if st := ld.Stats(); st.Workers != 0 || st.Ready != 0 && st.Ready != st.Batches {
			t.Errorf("%+v", st)
		}
	}
}

func TestSynchronousPanicsPassThrough(t *testing.T) {
	m := newMemorySource(100, 4)
	m.before = func(_ context.Context, _ string, indices []int) error {
		if slices.Contains(indices, 55) {
			panic("of the Source")
		}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: loader.Synchronous})
	mustPanic(t, "of the Source", func() { visit(t, ld, 0) })
	m.before = failOn(55)
	if n, err := run(t.Context(), ld, ignore); n != 5 || err == nil || !strings.Contains(err.Error(), "record 55") {
		t.Errorf("%d batches, then %v", n, err)
	}
	m.before = nil
	visit(t, ld, 0)
}

func TestEpochsGoOnAcrossTheirEnds(t *testing.T) {
	for _, workers := range []int{loader.Synchronous, 1, 3} {
		for _, n := range []int{3, 64, 100} {
			ld := open(t, newMemorySource(n, 4), loader.Options{BatchSize: 10, Workers: workers, Prefetch: 4, Sampler: sampler.Shuffle{}, Seed: 9})
			epochs := 0
			for number, batches := range ld.Epochs(t.Context(), 6) {
				if number != epochs {
					t.Fatalf("epoch %d comes as number %d", number, epochs)
				}
				epochs++
				var got []int
				for b, err := range batches {
					require.NoError(t, err)
					checkBatch(t, b)
					if b.Epoch() != number || b.Step() != len(got)/10 {
						t.Fatalf("batch %d of epoch %d comes in %d", b.Step(), b.Epoch(), number)
					}
					got = append(got, b.Indices()...)
					if number == 3 && b.Step() == 2 {
						break
					}
				}
				want := fillAll(t, sampler.Shuffle{}, n, 9, number)
				if !slices.Equal(got, want[:len(got)]) || len(got) < n && number != 3 {
					t.Fatalf("%d workers: epoch %d has %v", workers, number, got)
				}
			}
			if epochs != 6 || ld.State().Epoch != 6 {
				t.Errorf("%d epochs, at %+v", epochs, ld.State())
			}
		}
	}
}

func TestEpochsPrefetchTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemorySource(20, 4)
		var reads atomic.Int64
		m.before = func(context.Context, string, []int) error { reads.Add(1); return nil }
		ld := open(t, m, loader.Options{BatchSize: 10, Workers: 1, Prefetch: 2, Fields: []string{"x"}})
		for number, batches := range ld.Epochs(t.Context(), 3) {
			for range batches {
			}
			synctest.Wait()
			if got, want := reads.Load(), []int64{5, 6, 6}[number]; got < want-1 {
				t.Errorf("epoch %d: %d reads after its end; want about %d", number, got, want)
			}
		}
	})
}

func TestEpochsInnerLoops(t *testing.T) {
	ld := open(t, newMemorySource(30, 4), loader.Options{BatchSize: 10})
	var numbers []int
	for number, batches := range ld.Epochs(t.Context(), 5) {
		numbers = append(numbers, number)
		switch number {
		case 0: // skipped
		case 1:
			for range batches {
				if _, err := run(t.Context(), ld, ignore); !errors.Is(err, loader.ErrBusy) {
					t.Errorf("an epoch within another: %v", err)
				}
			}
			for _, err := range batches {
				if err == nil || !strings.Contains(err.Error(), "once only") {
					t.Errorf("second loop over the same epoch: %v", err)
				}
			}
		case 2:
			func() {
				defer func() { _ = recover() }()
				for range batches {
					panic("body")
				}
			}()
		}
		if number == 3 {
			break
		}
	}
	if !slices.Equal(numbers, []int{0, 1, 2, 3}) {
		t.Errorf("epochs %v", numbers)
	}
	visit(t, ld, 0)
}

func TestEpochsAfterAFailure(t *testing.T) {
	m := newMemorySource(100, 4)
	m.before = failOn(55)
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 2})
	for range 2 { // the position stays at the batch that failed
		failed := 0
		for _, batches := range ld.Epochs(t.Context(), 1) {
			for _, err := range batches {
				if err != nil {
					failed++
				}
			}
		}
		if st := ld.State(); failed != 1 || st.Step != 5 || st.Epoch != 0 {
			t.Errorf("%d failures, at %+v", failed, st)
		}
	}
	m.before = nil
	steps := 0
	for _, batches := range ld.Epochs(t.Context(), 1) {
		for b, err := range batches {
			require.NoError(t, err)
			checkBatch(t, b)
			steps++
		}
	}
	if steps != 5 {
		t.Errorf("%d batches were left", steps)
	}
}

// TestBackfill has some records fail: batches keep their size, the places of those records
// hold others and are not valid, and all is the same for any number of workers.
func TestBackfill(t *testing.T) {
	bad := []int{3, 40, 41, 42, 99}
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		var want []int
		for _, workers := range []int{1, 2, 4, loader.Synchronous} {
			m := newMemorySource(100, 4)
			m.before = func(ctx context.Context, field string, indices []int) error {
				for _, r := range bad {
					if err := failOn(r)(ctx, field, indices); err != nil {
						return err
					}
				}
				return nil
			}
			var reported atomic.Int64
			ld := open(t, m, loader.Options{
				BatchSize: 10, Workers: workers, Sampler: order, OnError: loader.Backfill,
				Report: func(e *loader.Error) {
					if !slices.Contains(bad, e.Record) || !errors.Is(e, errBad) {
						t.Errorf("reported: %v", e)
					}
					reported.Add(1)
				},
			})
			var got, valid []int
			for b, err := range ld.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				checkBatch(t, b)
				got = append(got, b.Indices()...)
				for i, r := range b.Indices() {
					if b.Mask()[i] {
						valid = append(valid, r)
					}
					if slices.Contains(bad, r) {
						t.Errorf("record %d is present", r)
					}
				}
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%T: %d workers: other records", order, workers)
			}
			checkPermutation(t, "valid records", append(valid, bad...), upTo(100))
			if st := ld.Stats(); len(got) != 100 || st.Skipped != len(bad) || reported.Load() != int64(len(bad)) {
				t.Errorf("%d records, %d skipped, %d reported", len(got), st.Skipped, reported.Load())
			}
		}
	}
}

func TestBackfillGivesUp(t *testing.T) {
	m := newMemorySource(30, 4)
	m.before = func(_ context.Context, field string, _ []int) error { return errBad }
	ld := open(t, m, loader.Options{BatchSize: 10, OnError: loader.Backfill})
	n, err := run(t.Context(), ld, ignore)
	if n != 0 || !errors.Is(err, errBad) || !strings.Contains(err.Error(), "nor can any of 16 records") {
		t.Errorf("%d batches, then %v", n, err)
	}
}

func TestTimeoutNamesTheRecord(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { testTimeout(t, deaf) })
	}
}

// testTimeout has a read hang; a deaf one does not heed its context.
func testTimeout(t *testing.T, deaf bool) {
	m := newMemorySource(100, 4)
	release := make(chan struct{})
	hang := true
	m.before = func(ctx context.Context, field string, indices []int) error {
		if !hang || field != "x" || !slices.Contains(indices, 37) {
			return nil
		}
		if deaf {
			<-release
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	ld, err := loader.New(m, loader.Options{BatchSize: 10, Workers: 2, Sampler: sampler.Shuffle{}, Timeout: time.Minute})
	require.NoError(t, err)
	began := time.Now()
	_, err = run(t.Context(), ld, ignore)
	took := time.Since(began)
	var e *loader.Error
	if !errors.Is(err, loader.ErrTimeout) || !errors.As(err, &e) || e.Record != 37 || e.Field != "x" {
		t.Errorf("deaf %v: error %v", deaf, err)
	}
	if want := time.Minute; took != want && !(deaf && took == 2*want) {
		t.Errorf("deaf %v: it took %v", deaf, took)
	}
	if deaf {
		if _, err := run(t.Context(), ld, ignore); !errors.Is(err, loader.ErrTimeout) {
			t.Errorf("epoch while a read hangs: %v", err)
		}
		close(release)
		synctest.Wait()
	}
	hang = false
	visit(t, ld, 0) // the Loader goes on
	require.NoError(t, ld.Close())
}

func TestCloseWhileAReadHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemorySource(100, 4)
		release := make(chan struct{})
		m.before = func(context.Context, string, []int) error { <-release; return nil }
		ld, err := loader.New(m, loader.Options{BatchSize: 10, Workers: 2, Sampler: sampler.Shuffle{}, Timeout: time.Second})
		require.NoError(t, err)
		if _, err := run(t.Context(), ld, ignore); !errors.Is(err, loader.ErrTimeout) {
			t.Errorf("error %v", err)
		}
		if err := ld.Close(); !errors.Is(err, loader.ErrTimeout) {
			t.Errorf("Close: %v", err)
		}
		close(release)
		synctest.Wait()
		if held, ring := m.held.Load(), ld.Stats().RingBytes; held != 0 || ring != 0 {
			t.Errorf("%d leases and %d bytes are left", held, ring)
		}
	})
}

func TestTimeoutIsPerBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemorySource(100, 4)
		m.before = func(context.Context, string, []int) error { time.Sleep(time.Second); return nil }
		ld := open(t, m, loader.Options{BatchSize: 10, Workers: 1, Sampler: sampler.Shuffle{}, Timeout: 30 * time.Second})
		if n, err := run(t.Context(), ld, ignore); n != 10 || err != nil {
			t.Errorf("%d batches, then %v", n, err)
		}
	})
}

func TestFirstBatchIsMadeByAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemorySource(100, 4)
		m.before = func(_ context.Context, field string, indices []int) error {
			if field == "x" {
				time.Sleep(time.Duration(len(indices)) * time.Second)
			}
			return nil
		}
		ld := open(t, m, loader.Options{BatchSize: 40, Workers: 4, Sampler: sampler.Shuffle{}})
		visit(t, ld, 0)
		if got := ld.Stats().FirstBatch; got != 10*time.Second {
			t.Errorf("first batch after %v; four workers need 10 s for it, one 40 s", got)
		}
	})
}

func TestAsCompletedPassesASlowBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemorySource(1000, 4)
		m.before = func(_ context.Context, field string, indices []int) error {
			if slices.Contains(indices, 15) {
				time.Sleep(time.Hour)
			}
			time.Sleep(time.Second)
			return nil
		}
		ld := open(t, m, loader.Options{BatchSize: 10, Workers: 2, Unordered: true})
		var steps []int
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			checkBatch(t, b)
			steps = append(steps, b.Step())
		}
		if steps[1] == 1 || slices.Index(steps, 1) < 60 {
			t.Errorf("the slow batch comes as number %d", slices.Index(steps, 1))
		}
		checkPermutation(t, "steps", steps, upTo(100))
	})
}

func TestFillerWritesToTheCallersMemory(t *testing.T) {
	m, tf := newImages(t, 50)
	o := loader.Options{BatchSize: 8, Sampler: sampler.Shuffle{}, Seed: 1, Transforms: tf, World: loader.World{Rank: 1, Size: 2}}
	ld, err := loader.New(m, o)
	require.NoError(t, err)
	defer ld.Close()
	f, err := ld.BatchFiller()
	require.NoError(t, err)
	x, y := make([]byte, 8*3*6*6*4), make([]byte, 8*8)
	for b, err := range ld.Epoch(t.Context(), 1) {
		require.NoError(t, err)
		got, err := f.Fill(t.Context(), 1, b.Step(), x, y)
		require.NoError(t, err)
		n := got.Len()
		if n != b.Len() || !slices.Equal(got.Indices(), b.Indices()) || !slices.Equal(got.Mask(), b.Mask()) {
			t.Fatalf("batch %d: records %v, not %v", b.Step(), got.Indices(), b.Indices())
		}
		if string(x[:len(b.Field("x").Bytes())]) != string(b.Field("x").Bytes()) || string(y[:n*8]) != string(b.Field("y").Bytes()) {
			t.Fatalf("batch %d: other bytes", b.Step())
		}
	}
	if m.held.Load() != 0 {
		t.Errorf("%d leases are left", m.held.Load())
	}
	if !invariants.Enabled {
		if got := testing.AllocsPerRun(100, func() { f.Fill(t.Context(), 1, 0, x, y) }); got != 0 {
			t.Errorf("%v allocations a batch", got)
		}
	}
	for want, c := range map[string]struct {
		step int
		dst  [][]byte
	}{
		"epoch 1 has no batch 9": {9, [][]byte{x, y}}, "memory for 1 fields": {0, [][]byte{x}}, `3 bytes for field "y"`: {0, [][]byte{x, y[:3]}},
	} {
		if _, err := f.Fill(t.Context(), 1, c.step, c.dst...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	b, err := f.Fill(t.Context(), 1, 0, x, y)
	require.NoError(t, err)
	m.before = failOn(b.Indices()[0])
	if _, err := f.Fill(t.Context(), 1, 0, x, y); err == nil || !strings.Contains(err.Error(), "batch 0: record") {
		t.Errorf("failing record: %v", err)
	}
}

// heap is an Allocator of the test.
type heap struct {
	bytes []byte
	freed bool
}

func (h *heap) Alloc(n int) ([]byte, error) { h.bytes = make([]byte, n); return h.bytes, nil }
func (h *heap) Free([]byte) error           { h.freed = true; return nil }
func (h *heap) Pinned() bool                { return true }

func TestMemoryHoldsEveryBatch(t *testing.T) {
	h := &heap{}
	ld, err := loader.New(newMemorySource(100, 4), loader.Options{BatchSize: 10, Workers: 1, Allocator: h}) // a search for workers would add buffers
	require.NoError(t, err)
	visit(t, ld, 0)
	st := ld.Stats()
	if st.ViewBytes != 0 || st.CopiedBytes != 1200 || st.Pinned != len(h.bytes) || st.RingBytes != len(h.bytes) {
		t.Errorf("%+v with memory of %d bytes", st, len(h.bytes))
	}
	if err := ld.Close(); err != nil || !h.freed {
		t.Errorf("Close: %v; freed: %v", err, h.freed)
	}
}

func TestBudgetIsKept(t *testing.T) {
	const page = 4096
	for _, c := range []struct{ budget, workers, prefetch, wantWorkers, wantPrefetch int }{
		{100 * 2 * page, 4, 6, 4, 6}, {9 * 2 * page, 4, 6, 4, 4}, {6 * 2 * page, 4, 6, 3, 2}, {5 * 2 * page, 4, 6, 2, 2}, {4 * 2 * page, 4, 6, 1, 2},
		{6 * 2 * page, 4, 1, 4, 1}, {3*2*page + 5, 4, 6, 1, 1},
		{2 * 2 * page, loader.Synchronous, 6, 0, 1},
	} {
		ld := open(t, newMemorySource(1000, 4), loader.Options{BatchSize: 10, Budget: c.budget, Workers: c.workers, Prefetch: c.prefetch, Sampler: sampler.Shuffle{}})
		visit(t, ld, 0)
		if st := ld.Stats(); st.Workers != c.wantWorkers || st.Prefetch != c.wantPrefetch || st.RingBytes > c.budget {
			t.Errorf("%+v: %d workers, %d prefetch, %d bytes", c, st.Workers, st.Prefetch, st.RingBytes)
		}
	}
	_, err := loader.New(newMemorySource(10, 4), loader.Options{BatchSize: 10, Budget: 100})
	if err == nil || !strings.Contains(err.Error(), "Budget of 100 bytes is too small: a batch has 8192, and 3 of them") {
		t.Errorf("error %v", err)
	}
}
