package combine_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
)

// joinedWindows returns windows of one size over several arrays in chunks, one after the other.
func joinedWindows(t *testing.T, r *rand.Rand) (*combine.Concat, int64) {
	t.Helper()
	var sources []loader.Source
	size, bytes := 1+r.IntN(4), int64(0)
	for range 1 + r.IntN(4) {
		src := newCounted(newND(r, []int{size + r.IntN(30), 4}), []int{1 + r.IntN(6), 1 + r.IntN(4)})
		bytes += int64(16 * src.Len())
		ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": size}}, src)
		require.NoError(t, err)
		sources = append(sources, ws)
	}
	if r.IntN(3) == 0 {
		inner, err := combine.NewConcat(sources...)
		require.NoError(t, err)
		sources = append(sources, inner)
		bytes *= 2
	}
	all, err := combine.NewConcat(sources...)
	require.NoError(t, err)
	return all, bytes
}

// TestConcatChunkShuffle reads epochs of windows of several arrays in the order of their chunks, in one process and in
// several, all or some of them, from the start and from steps in between.
func TestConcatChunkShuffle(t *testing.T) {
	lanes := 0
	for seed := range uint64(*programs / 3) {
		r := random(t, seed)
		all, size := joinedWindows(t, r)
		world, batch, n := 1+r.IntN(3), 1+r.IntN(6), all.Len()
		o := sampler.ChunkOptions{Memory: 1 + size*int64(1+r.IntN(20))/16, Batch: batch * world, Ranks: world, Lanes: r.IntN(3)}
		var some []int
		if r.IntN(3) == 0 {
			some = r.Perm(n)[:1+r.IntN(n)]
			n = len(some)
		}
		order, err := loader.NewChunkShuffleOf(all, some, o)
		if err != nil {
			if !strings.Contains(err.Error(), "memory do not hold") && !strings.Contains(err.Error(), "ranks") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		plan := order.Plan()
		if plan.Lanes > 0 {
			lanes++
		}
		if plan.Bytes > o.Memory || plan.Decodes < 1 {
			t.Fatalf("seed %d: the plan %+v for %d bytes", seed, plan, o.Memory)
		}
		lo := loader.Options{BatchSize: batch, Sampler: order, Seed: seed, Workers: 1 + r.IntN(2)}
		if some != nil {
			lo.Sampler = sampler.Subset{Indices: some, Inner: order}
		}
		seen := map[int]int{}
		for rank := range world {
			lo.World = loader.World{Rank: rank, Size: world}
			records, data := epochOf(t, all, lo, 1, 0)
			for k, list := range records {
				want := make([]byte, len(data[k]))
				if err := all.Gather(t.Context(), "x", list, want); err != nil || !bytes.Equal(data[k], want) {
					t.Fatalf("seed %d: rank %d, batch %d: other values than of single reads: %v", seed, rank, k, err)
				}
				for _, i := range list {
					seen[i]++
				}
			}
			step := r.IntN(len(records))
			again, same := epochOf(t, all, lo, 1, step)
			if !slices.EqualFunc(again, records[step:], slices.Equal[[]int]) || !slices.EqualFunc(same, data[step:], bytes.Equal) {
				t.Fatalf("seed %d: rank %d, resumed at batch %d, it has other records or values", seed, rank, step)
			}
		}
		if len(seen) != n {
			t.Fatalf("seed %d: an epoch has %d of %d windows", seed, len(seen), n)
		}
	}
	if lanes < *programs/20 {
		t.Errorf("%d orders with lanes: this test sees too little", lanes)
	}
}

// TestConcatChunksEvenly has every batch of every rank have the share of each source, to one record, and decodes few
// chunks twice.
func TestConcatChunksEvenly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{3000, 1000, 500}
	var sources []loader.Source
	var counts []*counted
	for _, n := range sizes {
		src := newCounted(newND(r, []int{n}), []int{20})
		ws, err := combine.NewWindows(t.Context(), combine.Window{Sizes: map[string]int{"0": 1}}, src)
		require.NoError(t, err)
		sources, counts = append(sources, ws), append(counts, src)
	}
	all, err := combine.NewConcat(sources...)
	require.NoError(t, err)
	order, err := loader.NewChunkShuffle(all, sampler.ChunkOptions{Memory: 8000, Batch: 90, Ranks: 2})
	require.NoError(t, err)
	batches := make([][]int, 2)
	for rank := range 2 {
		records, _ := epochOf(t, all, loader.Options{BatchSize: 45, Sampler: order, Workers: 1, World: loader.World{Rank: rank, Size: 2}}, 0, 0)
		for k, list := range records {
			of := make([]int, 3)
			for _, i := range list {
				source, _ := all.Locate(i)
				of[source]++
			}
			for i, n := range of {
				if want := 45 * sizes[i] / 4500; n < want-1 || n > want+1 {
					t.Fatalf("rank %d, batch %d has %v records of the sources", rank, k, of)
				}
			}
			batches[rank] = append(batches[rank], list...)
		}
	}
	if slices.Sort(batches[0]); len(batches[0]) != 2250 {
		t.Errorf("rank 0 has %d records", len(batches[0]))
	}
	decoded, chunks := int64(0), int64(0)
	for _, c := range counts {
		decoded, chunks = decoded+c.chunks.Load(), chunks+c.all()
	}
	if plan := order.Plan(); float64(decoded) > 1.1*plan.Decodes*float64(chunks) || plan.Decodes > 1.5 {
		t.Errorf("%d of %d chunks were decoded, and the plan says %v", decoded, chunks, plan)
	}
}
