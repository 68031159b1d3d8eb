package loader_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// run iterates an epoch and returns the number of batches and the error that ended it.
func run(ctx context.Context, ld *loader.Loader, body func(loader.Batch)) (batches int, err error) {
	for b, e := range ld.Epoch(ctx, 0) {
		if e != nil {
			err = e
			continue // the loop must end on its own
		}
		batches++
		body(b)
	}
	return batches, err
}

func ignore(loader.Batch) {}

var errBad = errors.New("bad sector")

func failOn(record int) func(context.Context, string, []int) error {
	return func(_ context.Context, field string, indices []int) error {
		if field == "x" && slices.Contains(indices, record) {
			return errBad
		}
		return nil
	}
}

func TestFailureNamesBatchRecordAndField(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		for _, workers := range []int{1, 4} {
			m := newMemorySource(1000, 4)
			m.before = failOn(407)
			ld := open(t, m, loader.Options{BatchSize: 10, Workers: workers, Sampler: order})
			at := make([]int, 1000)
			order.Epoch(1000, 0, 0).Fill(0, at)
			step := slices.Index(at, 407) / 10
			n, err := run(t.Context(), ld, func(b loader.Batch) { checkBatch(t, b) })
			want := fmt.Sprintf("loader: batch %d: record 407: field \"x\": bad sector", step)
			if err == nil || err.Error() != want || !errors.Is(err, errBad) || n != step {
				t.Errorf("%T, %d workers: %d batches, then %v; want %d, then %s", order, workers, n, err, step, want)
			}
			var e *loader.Error
			if !errors.As(err, &e) || e.Batch != step || e.Record != 407 || e.Field != "x" || e.Epoch != 0 {
				t.Errorf("%T: error is %#v", order, e)
			}
			m.before = nil
			visit(t, ld, 1) // the Loader goes on
		}
	}
}

func TestNoBatchIsBegunAfterAFailure(t *testing.T) {
	m := newMemorySource(100, 4)
	var later atomic.Int64
	m.before = func(_ context.Context, _ string, indices []int) error {
		if indices[0] >= 40 {
			later.Add(1)
		}
		if slices.Contains(indices, 31) {
			return errBad
		}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 1, Prefetch: 8})
	_, err := run(t.Context(), ld, ignore)
	if !errors.Is(err, errBad) || later.Load() != 0 {
		t.Errorf("%d reads for batches after the failed one; error %v", later.Load(), err)
	}
}

// addressed is an error of a Source that names the record itself.
type addressed struct{ record int }

func (e addressed) Error() string { return fmt.Sprintf("memory: record %d: gone", e.record) }
func (e addressed) Record() int   { return e.record }

func TestFailureThatNamesItsRecordIsTrusted(t *testing.T) {
	m := newMemorySource(100, 4)
	var calls atomic.Int64
	m.before = func(_ context.Context, field string, indices []int) error {
		if field == "y" && slices.Contains(indices, 42) {
			calls.Add(1)
			return fmt.Errorf("wrapped: %w", addressed{42})
		}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 1})
	_, err := run(t.Context(), ld, ignore)
	if want := "loader: batch 4: wrapped: memory: record 42: gone"; err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
	var e *loader.Error
	if !errors.As(err, &e) || e.Record != 42 || calls.Load() != 1 {
		t.Errorf("error %#v after %d reads", e, calls.Load())
	}
}

func TestFailureThatDoesNotRepeat(t *testing.T) {
	m := newMemorySource(100, 4)
	var calls atomic.Int64
	m.before = func(_ context.Context, _ string, indices []int) error {
		if len(indices) == 10 && calls.Add(1) == 3 {
			return errBad
		}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 1, Sampler: sampler.Shuffle{}})
	_, err := run(t.Context(), ld, ignore)
	var e *loader.Error
	if !errors.As(err, &e) || e.Record != -1 || e.Batch != 1 || !errors.Is(err, errBad) {
		t.Errorf("error %v", err)
	}
}

func TestOrderOutOfRange(t *testing.T) {
	for name, c := range map[string]struct {
		indices  []int
		batches  int
		position int // of the missing record
	}{
		"before the first":     {[]int{-1, 0, 1, 2}, 0, 0},
		"a run over the end":   {[]int{0, 1, 2, 3, 97, 98, 99, 100}, 1, 7},
		"after a run":          {[]int{3, 4, 5, 100}, 0, 3},
		"before the first, in": {[]int{7, 9, -3, 4}, 0, 2},
		"after the last":       {[]int{0, 1, 2, 3, 7, 6, 5, 4, 9, 1000, 8, 7}, 2, 9},
		"a run that overflows": {[]int{math.MaxInt, math.MinInt, math.MinInt + 1, math.MinInt + 2}, 0, 0},
	} {
		ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 4, Sampler: listed(c.indices)})
		n, err := run(t.Context(), ld, func(b loader.Batch) { checkBatch(t, b) })
		want := fmt.Sprintf("the Sampler puts record %d at position %d, but", c.indices[c.position], c.position)
		if err == nil || !strings.Contains(err.Error(), want) || n != c.batches {
			t.Errorf("%s: %v after %d batches; want %s", name, err, n, want)
		}
	}
}

// listed is a Sampler of any numbers, which need not be those of records.
type listed []int

func (l listed) Epoch(int, uint64, int) sampler.Sequence { return l }
func (l listed) Len() int                                { return len(l) }
func (l listed) Fill(pos int, dst []int)                 { copy(dst, l[pos:]) }

func TestPanicOfTheSourceIsAnError(t *testing.T) {
	m := newMemorySource(100, 4)
	m.before = func(_ context.Context, _ string, indices []int) error {
		if slices.Contains(indices, 55) {
			var nothing []int
			_ = nothing[indices[0]]
		}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 2})
	n, err := run(t.Context(), ld, ignore)
	if err == nil || n != 5 {
		t.Fatalf("%d batches, then %v", n, err)
	}
	for _, want := range []string{`loader: batch 5: record 55: field "x": panic: runtime error: index out of range`, "source_test.go:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	m.before = nil
	visit(t, ld, 0)
}

func TestGoexitOfTheSourceIsAnError(t *testing.T) {
	m := newMemorySource(100, 4)
	m.before = func(_ context.Context, _ string, indices []int) error {
		if slices.Contains(indices, 55) {
			runtime.Goexit()
		}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 1})
	for range 3 {
		if n, err := run(t.Context(), ld, ignore); n != 5 || err == nil || err.Error() != "loader: batch 5: runtime.Goexit was called by the Source, a Transform or Collate" {
			t.Fatalf("%d batches, then %v", n, err)
		}
	}
	m.before = nil
	visit(t, ld, 0) // there is a worker still
}

func TestClosedSource(t *testing.T) {
	m := newMemorySource(100, 4)
	m.closed.Store(true)
	ld := open(t, m, loader.Options{BatchSize: 10})
	if n, err := run(t.Context(), ld, ignore); n != 0 || !errors.Is(err, errSourceClosed) {
		t.Errorf("%d batches, then %v", n, err)
	}
}

func TestLeavingTheLoopEndsTheReading(t *testing.T) {
	leave := map[string]func(*loader.Loader){
		"break": func(ld *loader.Loader) {
			for b := range ld.Epoch(context.Background(), 0) {
				if b.Step() == 3 {
					break
				}
			}
		},
		"panic": func(ld *loader.Loader) {
			defer func() { _ = recover() }()
			for b := range ld.Epoch(context.Background(), 0) {
				if b.Step() == 3 {
					panic("body")
				}
			}
		},
		"goexit": func(ld *loader.Loader) {
			var wg sync.WaitGroup
			wg.Go(func() {
				for b := range ld.Epoch(context.Background(), 0) {
					if b.Step() == 3 {
						runtime.Goexit()
					}
				}
			})
			wg.Wait()
		},
	}
	for name, f := range leave {
		t.Run(name, func(t *testing.T) {
			m := newMemorySource(10_000, 4)
			var reading atomic.Int64
			m.before = func(context.Context, string, []int) error {
				reading.Add(1)
				defer reading.Add(-1)
				runtime.Gosched()
				return nil
			}
			ld := open(t, m, loader.Options{BatchSize: 10, Workers: 4, Prefetch: 8})
			for range 50 {
				f(ld)
				if n, held := reading.Load(), m.held.Load(); n != 0 || held != 0 {
					t.Fatalf("%d reads and %d leases go on", n, held)
				}
			}
			visit(t, ld, 0)
		})
	}
}

// hangTimeout is the time that a test waits for a loader that hangs.
const hangTimeout = time.Minute

func TestCancelWhileWaiting(t *testing.T) {
	m := newMemorySource(100, 4)
	stuck := make(chan struct{}, 8)
	m.before = func(ctx context.Context, _ string, indices []int) error {
		if slices.Contains(indices, 0) {
			stuck <- struct{}{}
			select {
			case <-ctx.Done(): // a read that hangs until it is cancelled
				return ctx.Err()
			case <-time.After(hangTimeout):
				return errors.New("the read is not cancelled")
			}
		}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 2, Sampler: sampler.Shuffle{}})
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	go func() {
		<-stuck
		cancel(why)
	}()
	_, err := run(ctx, ld, ignore)
	if !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "loader: batch ") {
		t.Errorf("error %v", err)
	}
	if _, err := run(ctx, ld, ignore); !errors.Is(err, why) {
		t.Errorf("epoch of a cancelled context: %v", err)
	}
	m.before = nil
	visit(t, ld, 0)
}

// panicking is an Allocator, and a Sampler, of somebody who made a mistake.
type panicking struct{ sampler.Sequential }

func (panicking) Alloc(int) ([]byte, error) { panic("no memory") }
func (panicking) Free([]byte) error         { return nil }

func (panicking) Epoch(n int, _ uint64, _ int) sampler.Sequence { return panicSequence(n) }

type panicSequence int

func (s panicSequence) Len() int { return int(s) }

func (s panicSequence) Fill(pos int, dst []int) {
	if pos >= 50 {
		panic("no order")
	}
	sampler.Sequential{}.Epoch(int(s), 0, 0).Fill(pos, dst)
}

// TestPanicsOfTheCaller has what the caller gave panic, where no record is to blame.
func TestPanicsOfTheCaller(t *testing.T) {
	for _, workers := range []int{1, 3, 6} { // six look ahead to where the order panics from the first batch on
		for name, c := range map[string]struct {
			o    loader.Options
			want string
			n    int
		}{
			"report": {loader.Options{OnError: loader.Backfill, Report: func(*loader.Error) { panic("no report") }}, "loader: batch 3: panic: no report\n", 3},
			"memory": {loader.Options{Allocator: panicking{}}, "loader: batch 0: panic: no memory\n", 0},
			"order":  {loader.Options{Sampler: panicking{}}, "loader: batch 5: panic: no order\n", 5},
		} {
			for _, horizon := range []int64{0, 1 << 20} {
				src := &remoteSource{memory: newMemorySource(100, 4), horizon: horizon}
				if name == "report" {
					src.before = failOn(33)
				}
				c.o.BatchSize, c.o.Workers = 10, workers
				n, err := run(t.Context(), openWords(t, src, c.o), ignore)
				var e *loader.Error
				if n != c.n || !errors.As(err, &e) || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%s, %d workers, horizon %d: %d batches, then %v", name, workers, horizon, n, err)
				}
			}
		}
	}
}

// TestCancelInTheBody asks for the error right after the body that cancelled, however many
// batches are ready.
func TestCancelInTheBody(t *testing.T) {
	for _, workers := range []int{loader.Synchronous, 1, 3} {
		for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
			ld := open(t, newMemorySource(1000, 4), loader.Options{BatchSize: 10, Workers: workers, Sampler: order})
			ctx, cancel := context.WithCancelCause(context.Background())
			n, err := run(ctx, ld, func(b loader.Batch) {
				if b.Step() == 2 {
					cancel(errBad)
				}
			})
			if n != 3 || !errors.Is(err, errBad) {
				t.Errorf("%d workers: %d batches, then %v", workers, n, err)
			}
		}
	}
}

func TestBreakCancelsTheReads(t *testing.T) {
	m := newMemorySource(1000, 4)
	first := make([]int, 10) // the records of batch 0
	sampler.Shuffle{}.Epoch(m.n, 0, 0).Fill(0, first)
	stuck := make(chan struct{}, 100)
	m.before = func(ctx context.Context, _ string, indices []int) error {
		if slices.Contains(first, indices[0]) {
			return nil
		}
		stuck <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Workers: 3, Sampler: sampler.Shuffle{}})
	for _, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		<-stuck // another batch hangs, until break cancels it
		break
	}
}

func TestTwoEpochsAtOnceAreAnError(t *testing.T) {
	ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10})
	n, err := run(t.Context(), ld, func(loader.Batch) {
		if n, err := run(context.Background(), ld, ignore); n != 0 || !errors.Is(err, loader.ErrBusy) {
			t.Errorf("inner epoch: %d batches, then %v", n, err)
		}
	})
	if n != 10 || err != nil {
		t.Errorf("outer epoch: %d batches, then %v", n, err)
	}
}

func TestCloseInTheBody(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		m := newMemorySource(1000, 4)
		ld, err := loader.New(m, loader.Options{BatchSize: 10, Sampler: order})
		require.NoError(t, err)
		n, err := run(t.Context(), ld, func(b loader.Batch) {
			if err := ld.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			checkBatch(t, b) // valid to the end of the body
		})
		if n != 1 || err != loader.ErrClosed {
			t.Errorf("%d batches, then %v", n, err)
		}
		if st := ld.Stats(); m.held.Load() != 0 || st.RingBytes != 0 {
			t.Errorf("%d leases, ring of %d bytes left", m.held.Load(), st.RingBytes)
		}
	}
}

func TestSlowRecordsDelayNoOtherBatch(t *testing.T) {
	const n, batch = 200, 10
	m := newMemorySource(n, 4)
	others := make(chan struct{}, n)
	m.before = func(_ context.Context, field string, indices []int) error {
		if field != "x" {
			return nil
		}
		if slices.Contains(indices, 0) {
			for range 3 { // batch 0 is not done before three others are
				select {
				case <-others:
				case <-time.After(hangTimeout):
					return errors.New("no other batch is read meanwhile")
				}
			}
			return nil
		}
		others <- struct{}{}
		return nil
	}
	ld := open(t, m, loader.Options{BatchSize: batch, Workers: 2, Prefetch: 2})
	if got := visit(t, ld, 0); got[0] != 0 {
		t.Errorf("first record is %d", got[0])
	}
}

func TestSoak(t *testing.T) {
	m := newMemorySource(3000, 4)
	ld := open(t, m, loader.Options{BatchSize: 16, Workers: 3, Prefetch: 3, Sampler: sampler.Shuffle{}, Seed: 5})
	var kept []loader.Batch
	for round := range 150 {
		m.before = nil
		if round%5 == 4 {
			m.before = failOn(round * 13 % 3000)
		}
		ctx, cancel := context.WithCancel(context.Background())
		for b, err := range ld.Epoch(ctx, round) {
			if err != nil {
				if round%5 != 4 && round%5 != 3 {
					t.Fatal(err)
				}
				break
			}
			checkBatch(t, b)
			if b.Step()%11 == round%11 && b.Keep() == nil {
				kept = append(kept, b)
			}
			if len(kept) == 3 {
				checkBatch(t, kept[0])
				kept[0].Release()
				kept = kept[1:]
			}
			if b.Step() == round && round%5 == 2 {
				break
			}
			if b.Step() == round && round%5 == 3 {
				cancel()
			}
		}
		cancel()
		if st := ld.Stats(); st.Kept != len(kept) {
			t.Fatalf("%d kept, not %d", st.Kept, len(kept))
		}
	}
	for _, b := range kept {
		checkBatch(t, b)
		b.Release()
	}
	if got := m.held.Load(); got != 0 {
		t.Errorf("%d leases are held between epochs", got)
	}
}
