package loader_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// vast is a Source of a billion records that have no memory.
type vast struct{ *memory }

func (vast) Len() int                         { return 1_000_000_000 }
func (vast) Contiguous(string, int, int) bool { return false }
func (vast) Prefetch(string, int, int) error  { return nil }
func (vast) Gather(_ context.Context, _ string, indices []int, dst []byte) error {
	clear(dst)
	return nil
}

func TestABillionRecordsTakeNoMemory(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the buffers of checked builds are on the heap")
	}
	src := vast{newMemorySource(1, 4)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ld, err := loader.New(src, loader.Options{BatchSize: 256, Workers: 4, Sampler: sampler.Shuffle{}, Seed: 1})
	require.NoError(t, err)
	for range ld.Epoch(t.Context(), 1) {
		break
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 256<<10 {
		t.Errorf("%d bytes were allocated up to the first batch", got)
	}
	require.NoError(t, ld.Close())
	st := loader.State{Epoch: 1, Step: 3_900_000}
	full := ld.State()
	full.Epoch, full.Step = st.Epoch, st.Step
	ld, err = loader.Resume(src, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}, Seed: 1}, full)
	require.NoError(t, err)
	defer ld.Close()
	want := make([]int, 256)
	sampler.Shuffle{}.Epoch(src.Len(), 1, 1).Fill(st.Step*256, want)
	for b, err := range ld.Epoch(t.Context(), 1) {
		if err != nil || b.Step() != st.Step || b.Indices()[0] != want[0] {
			t.Errorf("resumed at batch %d with record %d: %v", b.Step(), b.Indices()[0], err)
		}
		break
	}
}

// TestSoakMapped runs loops of all kinds over mapped files, many of which end badly,
// and checks that they leave nothing behind.
func TestSoakMapped(t *testing.T) {
	rounds := 120
	if testing.Short() {
		rounds = 20
	}
	path := writeMapped(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	var heap, files, goroutines int
	for round := range rounds {
		if round == 10 { // everything that is allocated once exists
			heap, files, goroutines = held(t)
		}
		soakRound(t, path, rnd)
	}
	h, f, g := held(t)
	if f > files || g > goroutines || h > heap+(4<<20) {
		t.Errorf("%d bytes, %d files, %d goroutines; after ten rounds there were %d, %d, %d", h, f, g, heap, files, goroutines)
	}
}

// held returns the bytes of the heap, the open files and the goroutines.
func held(t *testing.T) (heap, files, goroutines int) {
	leftGoroutines()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return int(m.HeapAlloc), len(entries), runtime.NumGoroutine()
}

// soakRound opens the dataset, iterates in some way, and closes it.
func soakRound(t *testing.T, path string, rnd *rand.Rand) {
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	orders := []sampler.Sampler{nil, sampler.Shuffle{}, sampler.Block{Size: 32}, sampler.Split{To: 0.5, Inner: sampler.Shuffle{}}}
	o := loader.Options{
		BatchSize: 1 + rnd.IntN(64), Prefetch: 1 + rnd.IntN(4), Workers: []int{loader.Synchronous, 1, 2, 5}[rnd.IntN(4)],
		Sampler: orders[rnd.IntN(4)], Unordered: rnd.IntN(2) == 0, OnError: loader.OnError(rnd.IntN(3)),
		World: loader.World{Rank: rnd.IntN(2), Size: 2}, Seed: rnd.Uint64(),
	}
	bad := rnd.IntN(4) == 0
	if o.Workers != loader.Synchronous && rnd.IntN(2) == 0 {
		o.Transforms = map[string]loader.Transform{"x": negate{func(r loader.Record) error {
			if bad && r.Index%200 == 7 {
				return errBad
			}
			return nil
		}}}
	}
	ld, err := loader.New(ds, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	kept := soakLoop(t, ld, ctx, cancel, rnd)
	cancel()
	for _, b := range kept {
		if y := tensor.As[int64](b.Field("y")); b.Mask()[0] && y[0] != int64(3*b.Indices()[0]) {
			t.Errorf("a kept batch changed")
		}
		b.Release()
	}
	require.NoError(t, ld.Close())
	require.NoError(t, ds.Close())
}

// soakLoop iterates two epochs, and ends them in some way. It returns the batches it keeps.
func soakLoop(t *testing.T, ld *loader.Loader, ctx context.Context, cancel func(), rnd *rand.Rand) (kept []loader.Batch) {
	end := rnd.IntN(5)
	at := rnd.IntN(20)
	for _, batches := range ld.Epochs(ctx, 2) {
		for b, err := range batches {
			if err != nil {
				if !errors.Is(err, errBad) && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return kept
			}
			if rnd.IntN(6) == 0 && b.Keep() == nil {
				kept = append(kept, b)
			}
			if b.Step() != at {
				continue
			}
			switch end {
			case 0:
				return kept
			case 1:
				cancel()
			}
			if end == 2 {
				break
			}
		}
	}
	return kept
}

// TestTruncatedWhileIterated cuts a file while its records are read. The loop ends with an
// error that names it, and nothing is left.
func TestTruncatedWhileIterated(t *testing.T) {
	for _, workers := range []int{1, 3} {
		path := writeMapped(t)
		ld := openMapped(t, path, loader.Options{BatchSize: 16, Workers: workers, Sampler: sampler.Shuffle{}})
		n, err := run(t.Context(), ld, func(b loader.Batch) {
			if b.Step() == 3 {
				cut(t, filepath.Join(path, "x-00001.npy"), 4096)
			}
		})
		var e *loader.Error
		if n < 4 || !errors.As(err, &e) || e.Field != "x" || e.Record < 512 || e.Record >= 1024 {
			t.Errorf("%d batches, then %v", n, err)
		}
	}
}
