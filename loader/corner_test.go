package loader_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// leaving is a Sampler whose Fill ends its goroutine.
type leaving struct{ at int }

func (o leaving) Epoch(n int, _ uint64, _ int) sampler.Sequence { return leavingSequence{n, o.at} }

type leavingSequence struct{ n, at int }

func (s leavingSequence) Len() int { return s.n }

func (s leavingSequence) Fill(pos int, dst []int) {
	for i := range dst {
		if pos+i == s.at {
			runtime.Goexit()
		}
		dst[i] = pos + i
	}
}

func TestGoexitWhileTheFirstBatchIsPrepared(t *testing.T) {
	for _, at := range []int{0, 15} {
		ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Workers: 3, Sampler: leaving{at}})
		for range 3 {
			if n, err := run(t.Context(), ld, ignore); n != at/10 || err == nil || !strings.Contains(err.Error(), "runtime.Goexit") {
				t.Fatalf("%d batches, then %v", n, err)
			}
		}
	}
}

func TestSynchronousIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Workers: loader.Synchronous})
		ctx, cancel := context.WithCancel(t.Context())
		n, err := run(ctx, ld, func(b loader.Batch) {
			cancel()
			synctest.Wait() // until the event has arrived
		})
		if n != 1 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d batches, then %v", n, err)
		}
	})
}

func TestResumeAtTheEndOfAnEpoch(t *testing.T) {
	m := newMemorySource(100, 4)
	ld := open(t, m, loader.Options{BatchSize: 10})
	st := ld.State()
	st.Epoch, st.Step = 4, 10
	ld, err := loader.Resume(m, loader.Options{BatchSize: 10}, st)
	require.NoError(t, err)
	defer ld.Close()
	if got := ld.State(); got.Epoch != 5 || got.Step != 0 {
		t.Errorf("%+v", got)
	}
	if _, err := loader.Resume(m, loader.Options{}, st); err == nil {
		t.Error("resumed without BatchSize")
	}
}

func TestEpochsOfAClosedLoader(t *testing.T) {
	ld, err := loader.New(newMemorySource(100, 4), loader.Options{BatchSize: 10})
	require.NoError(t, err)
	require.NoError(t, ld.Close())
	n := 0
	for _, batches := range ld.Epochs(t.Context(), 3) {
		for _, err := range batches {
			if n++; !errors.Is(err, loader.ErrClosed) {
				t.Errorf("error %v", err)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d errors; the first ends both loops", n)
	}
}

func TestMixRefuses(t *testing.T) {
	ten := newMemorySource(10, 4)
	all, err := combine.NewConcat(ten, ten)
	require.NoError(t, err)
	mix, err := sampler.NewMix(all.Sizes(), sampler.MixOptions{Batch: 1})
	require.NoError(t, err)
	if _, err := loader.New(ten, loader.Options{BatchSize: 1, Sampler: mix}); err == nil || !strings.Contains(err.Error(), "mix: made for 20 records; the Source has 10") {
		t.Errorf("error %v", err)
	}
	if _, err := combine.NewConcat(); err == nil {
		t.Error("no sources are joined")
	}
}

// warming is a memory whose records can be warmed, but for one.
type warming struct {
	*memory
	bad int
}

func (warming) IsWarm(string, int, int) bool { return false }

func (w warming) Warm(_ string, a, b int) error {
	if a <= w.bad && w.bad < b {
		return addressed{w.bad}
	}
	return nil
}

func TestJoinedWarms(t *testing.T) {
	all, err := combine.NewConcat(newMemorySource(10, 4), warming{newMemorySource(10, 4), 5})
	require.NoError(t, err)
	ld := openWords(t, all, loader.Options{BatchSize: 4})
	_, err = run(t.Context(), ld, ignore)
	var e *loader.Error
	if !errors.As(err, &e) || e.Record != 15 || e.Batch != 3 || err.Error() != "loader: batch 3: record 15 (source 1): memory: record 5: gone" || !errors.As(err, &addressed{}) {
		t.Errorf("error %v", err)
	}
}

// full is an Allocator that has none.
type full struct{}

func (full) Alloc(int) ([]byte, error) { return nil, errBad }
func (full) Free([]byte) error         { return nil }

func TestMemoryThatIsFull(t *testing.T) {
	for _, policy := range []loader.OnError{loader.Fail, loader.Backfill} {
		ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Allocator: full{}, OnError: policy})
		if n, err := run(t.Context(), ld, ignore); n != 0 || !errors.Is(err, errBad) {
			t.Errorf("%d batches, then %v", n, err)
		}
	}
}

func TestCancelledRepair(t *testing.T) {
	m := newMemorySource(100, 4)
	ctx, cancel := context.WithCancel(t.Context())
	m.before = func(ctx context.Context, _ string, indices []int) error {
		if len(indices) == 1 {
			cancel()
			<-ctx.Done()
		}
		return errBad
	}
	ld := open(t, m, loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}, OnError: loader.Backfill, Workers: 1})
	if n, err := run(ctx, ld, ignore); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d batches, then %v", n, err)
	}
}

func TestFillerNeedsItsState(t *testing.T) {
	calls := 0
	o := loader.Options{BatchSize: 10, Workers: 1, Collate: loader.Collate{Worker: func(int) (loader.CollateFunc, error) {
		if calls++; calls > 1 {
			return nil, errBad
		}
		return func(*loader.MutableBatch) error { return nil }, nil
	}}}
	ld := open(t, newMemorySource(100, 4), o)
	if _, err := ld.BatchFiller(); !errors.Is(err, errBad) {
		t.Errorf("error %v", err)
	}
}

func TestWeightsThatRoundingLeaves(t *testing.T) {
	for seed := range 200 {
		weights := make([]float64, 3+seed%40)
		for i := range weights {
			weights[i] = math.Pow(0.1, float64((i*7+seed)%5)) * float64((i+seed)%3)
		}
		if slices.Max(weights) == 0 {
			continue
		}
		o, err := sampler.NewWeighted(weights, 2000)
		require.NoError(t, err)
		for pos, r := range fillAll(t, o, len(weights), uint64(seed), 0) {
			if weights[r] == 0 {
				t.Fatalf("weights %v: position %d has record %d", weights, pos, r)
			}
		}
	}
	for _, draws := range []int{0, -1} {
		if _, err := sampler.NewWeighted([]float64{1}, draws); err == nil || !strings.Contains(err.Error(), "an epoch must have at least 1") {
			t.Errorf("%d draws: %v", draws, err)
		}
	}
}

func TestImagesRefuse(t *testing.T) {
	p, err := transforms.Compose(transforms.Crop{Height: 9, Width: 1})
	require.NoError(t, err)
	spec := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{4, 4, 3}}
	if _, err := (loader.Images{Pipeline: p}).Output(spec); err == nil {
		t.Error("a crop larger than the image")
	}
	if _, err := (loader.Images{Pipeline: p}).Worker(tensor.Spec{Name: "x", DType: tensor.Int8}, 0); err == nil {
		t.Error("a worker for no image")
	}
}

func TestCollateSeesOffsets(t *testing.T) {
	o := loader.Options{BatchSize: 10, Collate: loader.Collate{
		Adds: []tensor.Spec{{Name: "rows", DType: tensor.Int64}},
		Worker: func(int) (loader.CollateFunc, error) {
			return func(d *loader.MutableBatch) error {
				ends := d.Offsets("t")
				for i := range d.Len() {
					tensor.As[int64](d.Field("rows"))[i] = ends[i+1] - ends[i]
				}
				return nil
			}, nil
		},
	}}
	for b, err := range openWords(t, newWords(40), o).Epoch(t.Context(), 0) {
		require.NoError(t, err)
		for i, r := range b.Indices() {
			if got := tensor.As[int64](b.Field("rows"))[i]; int(got) != len(wordsOf(r)) {
				t.Errorf("record %d: %d rows", r, got)
			}
		}
	}
}

func TestNegativeLimits(t *testing.T) {
	_, err := loader.New(newMemorySource(10, 4), loader.Options{BatchSize: 1, Budget: -1, Timeout: -time.Second, World: loader.World{Rank: 3, Size: 2}, OnError: 9})
	for _, want := range []string{"a Budget of -1 and a Timeout of -1s", "World.Rank is 3; it must be from 0 to 1", "OnError is 9"} {
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
}
