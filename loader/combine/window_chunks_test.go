package combine_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// counted is a gridded Source that counts the chunks that are read, and its leases.
type counted struct {
	gridded
	chunks, leases atomic.Int64
}

func (c *counted) ReadChunk(ctx context.Context, field string, at []int, dst []byte) error {
	c.chunks.Add(1)
	return c.gridded.ReadChunk(ctx, field, at, dst)
}

func (c *counted) Retain() error { c.leases.Add(1); return nil }
func (c *counted) Release()      { c.leases.Add(-1) }

func newCounted(a *nd, chunk []int) *counted {
	spec := tensor.Spec{Name: "x", DType: tensor.Int32, Shape: a.shape[1:]}
	return &counted{gridded: gridded{Func: combine.Func{Records: a.shape[0], Fields: []tensor.Spec{spec}}, a: a, chunk: chunk}}
}

// all returns how many chunks there are.
func (c *counted) all() int64 {
	n := 1
	for k, size := range c.chunk {
		n *= (c.a.shape[k] + size - 1) / size
	}
	return int64(n)
}

// epochOf reads the batches of an epoch from a step on: the records, and a copy of their bytes.
func epochOf(t *testing.T, src loader.Source, o loader.Options, epoch, step int) (records [][]int, data [][]byte) {
	t.Helper()
	ld, err := loader.New(src, o)
	if err == nil && (epoch > 0 || step > 0) {
		st := ld.State()
		st.Epoch, st.Step = epoch, step
		if err = ld.Close(); err == nil {
			ld, err = loader.Resume(src, o, st)
		}
	}
	require.NoError(t, err)
	defer ld.Close()
	for b, err := range ld.Epoch(t.Context(), epoch) {
		require.NoError(t, err)
		records = append(records, slices.Clone(b.Indices()))
		data = append(data, bytes.Clone(b.Field("x").Bytes()))
	}
	return records, data
}

// TestWindowChunkShuffle reads epochs of random windows in the order of their chunks, in one process and in several, from
// the start and from steps in between: the values are those of single reads, and every window comes once.
func TestWindowChunkShuffle(t *testing.T) {
	resumes, lanes := 0, 0
	for seed := range uint64(*programs / 2) {
		r := random(t, seed)
		shape, chunk := []int{8 + r.IntN(20)}, []int{1 + r.IntN(6)}
		w := combine.Window{Sizes: map[string]int{"0": 1 + r.IntN(6)}, Stride: map[string]int{"0": 1 + r.IntN(2)}}
		if r.IntN(2) == 0 {
			shape, chunk = append(shape, 4+r.IntN(8)), append(chunk, 1+r.IntN(8))
			w.Sizes["1"] = 1 + r.IntN(4)
			if r.IntN(2) == 0 {
				w.Pad = map[string]combine.Pad{"1": combine.PadWrap}
			}
		}
		if r.IntN(3) == 0 && shape[0] > 12 {
			w.Ranges = [][2]int{{0, shape[0] / 2}, {shape[0]/2 + 1, shape[0]}}
		}
		src := newCounted(newND(r, shape), chunk)
		ws, err := combine.NewWindows(t.Context(), w, src)
		if err != nil {
			continue
		}
		world := 1 + r.IntN(3)
		batch, ranks := 1+r.IntN(6), world
		if ws.Len() < world {
			continue
		}
		order, err := loader.NewChunkShuffle(ws, sampler.ChunkOptions{Memory: 1 << (7 + r.IntN(7)), Batch: batch * world, Ranks: ranks, Lanes: r.IntN(3)})
		if err != nil {
			if !strings.Contains(err.Error(), "of memory do not hold") {
				t.Fatal(err)
			}
			continue
		}
		if order.Plan().Lanes > 0 {
			lanes++
		}
		o := loader.Options{BatchSize: batch, Sampler: order, Seed: seed, Workers: 1 + r.IntN(2)}
		epoch := r.IntN(3)
		var steps [][]int // of all ranks
		for rank := range world {
			o.World = loader.World{Rank: rank, Size: world}
			records, data := epochOf(t, ws, o, epoch, 0)
			for k, list := range records {
				if rank == 0 {
					steps = append(steps, nil)
				}
				steps[k] = append(steps[k], list...)
				want := make([]byte, len(data[k]))
				if err := ws.Gather(t.Context(), "x", list, want); err != nil || !bytes.Equal(data[k], want) {
					t.Fatalf("rank %d, batch %d: other values than of single reads: %v", rank, k, err)
				}
			}
			for range 2 {
				step := r.IntN(len(records))
				again, same := epochOf(t, ws, o, epoch, step)
				if !slices.EqualFunc(again, records[step:], slices.Equal[[]int]) || !slices.EqualFunc(same, data[step:], bytes.Equal) {
					t.Fatalf("rank %d: resumed at batch %d, it has other records or values", rank, step)
				}
				resumes++
			}
		}
		one := o // the same global batches in one process
		one.BatchSize, one.World = batch*world, loader.World{}
		records, _ := epochOf(t, ws, one, epoch, 0)
		seen := map[int]int{}
		for k, list := range records {
			if !slices.Equal(list, steps[k][:len(list)]) {
				t.Fatalf("batch %d of one process is %v, of %d %v", k, list, world, steps[k])
			}
			for _, i := range list {
				seen[i]++
			}
		}
		if len(seen) != ws.Len() {
			t.Fatalf("an epoch has %d of %d windows", len(seen), ws.Len())
		}
		if n := src.leases.Load(); n < 0 {
			t.Fatalf("%d leases", n)
		}
	}
	t.Logf("%d resumes, %d orders with lanes", resumes, lanes)
	if resumes < 200 || lanes < 10 {
		t.Errorf("%d resumes and %d orders with lanes: this test sees too little", resumes, lanes)
	}
}

// TestWindowChunksDecodedOnce counts the chunks that an epoch decodes, as a Loader reads it with several workers.
func TestWindowChunksDecodedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := newND(r, []int{600, 4, 4})
	w := combine.Window{Sizes: map[string]int{"0": 6, "1": 2, "2": 2}}
	for _, c := range []struct {
		name   string
		memory int64
		chunk  []int
		most   float64
	}{
		{"a step a chunk", 9 << 10, []int{1, 4, 4}, 1.25},
		{"some steps a chunk", 6 << 10, []int{5, 4, 4}, 1.3},
		{"quarters", 7 << 10, []int{5, 2, 2}, 2.6},
		{"all in memory", 1 << 20, []int{5, 4, 4}, 1},
	} {
		src := newCounted(a, c.chunk)
		ws, err := combine.NewWindows(t.Context(), w, src)
		require.NoError(t, err)
		order, err := loader.NewChunkShuffle(ws, sampler.ChunkOptions{Memory: c.memory, Batch: 16})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		epochOf(t, ws, loader.Options{BatchSize: 16, Sampler: order, Workers: 2}, 0, 0)
		got, plan := float64(src.chunks.Load())/float64(src.all()), order.Plan()
		t.Logf("%s: %v; decoded %.3f", c.name, plan, got)
		if got > c.most || got > plan.Decodes+0.1 {
			t.Errorf("%s: %.3f decodes a chunk; the plan has %.3f, and %.2f are the most", c.name, got, plan.Decodes, c.most)
		}
	}
}

// TestWindowChunksOfSome has the order of chunks for some of the windows, of a table of origins, and through views.
func TestWindowChunksOfSome(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	src := newCounted(newND(r, []int{200, 6}), []int{4, 6})
	table := combine.Window{Sizes: map[string]int{"0": 5}}
	for range 300 {
		table.Origins = append(table.Origins, r.IntN(196))
	}
	ws, err := combine.NewWindows(t.Context(), table, src)
	require.NoError(t, err)
	some := r.Perm(300)[:150]
	view, err := combine.NewSelect(ws, combine.Select{Records: some})
	require.NoError(t, err)
	of := sampler.ChunkOptions{Memory: 4 << 10, Batch: 8}
	for _, c := range []struct {
		src loader.Source
		n   int
	}{{ws, 300}, {view, 150}} {
		order, err := loader.NewChunkShuffle(c.src, of)
		require.NoError(t, err)
		before := src.chunks.Load()
		records, _ := epochOf(t, c.src, loader.Options{BatchSize: 8, Sampler: order}, 0, 0)
		all := slices.Concat(records...)
		slices.Sort(all)
		if len(slices.Compact(all)) != c.n {
			t.Errorf("%d of %d windows", len(all), c.n)
		}
		if order.Plan().Lanes == 0 || float64(src.chunks.Load()-before) > 1.6*50 {
			t.Errorf("%v: %d chunks were decoded, of 50", order.Plan(), src.chunks.Load()-before)
		}
	}
	inner, err := loader.NewChunkShuffleOf(ws, some, of)
	require.NoError(t, err)
	records, _ := epochOf(t, ws, loader.Options{BatchSize: 8, Sampler: sampler.Subset{Indices: some, Inner: inner}}, 0, 0)
	got := slices.Concat(records...)
	slices.Sort(got)
	slices.Sort(some)
	if !slices.Equal(slices.Compact(got), some) {
		t.Error("a Subset with the order of its records has others")
	}
	if _, err := loader.NewChunkShuffleOf(ws, []int{300}, of); err == nil {
		t.Error("a record that does not exist has a place")
	}
	if _, err := loader.NewChunkShuffle(src, of); err == nil || !strings.Contains(err.Error(), "are not in chunks") {
		t.Errorf("not of windows: %v", err)
	}
}
