package loader_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// fillAll returns all of an epoch, and checks that pieces are the same as the whole.
func fillAll(t testing.TB, o sampler.Sampler, n int, seed uint64, epoch int) []int {
	t.Helper()
	seq := o.Epoch(n, seed, epoch)
	all := make([]int, seq.Len())
	seq.Fill(0, all)
	for pos := 0; pos < len(all); pos += 13 {
		piece := make([]int, min(5, len(all)-pos))
		seq.Fill(pos, piece)
		if !slices.Equal(piece, all[pos:pos+len(piece)]) {
			t.Fatalf("%T: position %d: %v in pieces, %v in one", o, pos, piece, all[pos:pos+len(piece)])
		}
	}
	return all
}

// checkPermutation fails the test unless got holds want, each once.
func checkPermutation(t testing.TB, what string, got, want []int) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%s: %d records, not the %d wanted", what, len(got), len(want))
	}
}

// Batches hold what the Sampler lists, also of orders that know their runs without listing them.
func TestBatchesOfRuns(t *testing.T) {
	for _, n := range []int{99, 100, 103, 640} {
		for _, o := range []sampler.Sampler{sampler.Sequential{}, sampler.Block{Size: 4}, sampler.Block{Size: 10}, sampler.Block{Size: 64}} {
			for _, batch := range []int{1, 4, 5, 10, 64} {
				for rank := range 3 {
					ld := open(t, newMemorySource(n, 4), loader.Options{BatchSize: batch, Sampler: o, Seed: 7, World: loader.World{Rank: rank, Size: 3}})
					checkBatchesOf(t, ld, fillAll(t, o, n, 7, 2), batch, rank)
				}
			}
		}
	}
}

// checkBatchesOf compares epoch 2 of one of three ranks with its order.
func checkBatchesOf(t *testing.T, ld *loader.Loader, order []int, batch, rank int) {
	t.Helper()
	for b, err := range ld.Epoch(t.Context(), 2) {
		require.NoError(t, err)
		checkBatch(t, b)
		for i, r := range b.Indices() {
			if pos := b.Step()*3*batch + rank*b.Len() + i; b.Mask()[i] != (pos < len(order)) || r != order[pos%len(order)] {
				t.Fatalf("batches of %d, rank %d: step %d: record %d at place %d", batch, rank, b.Step(), r, i)
			}
		}
	}
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestJoinedAcrossSources(t *testing.T) {
	a, b := newMemorySource(10, 4), newMemorySource(10, 4)
	all, err := combine.NewConcat(a, b)
	require.NoError(t, err)
	require.NoError(t, all.Retain())
	defer all.Release()
	v, err := all.Slice("x", 8, 12)
	require.NoError(t, err)
	want := []byte{pixel(8, 0), pixel(9, 0), pixel(0, 0), pixel(1, 0)}
	for i, w := range want {
		if v.Bytes()[i*4] != w {
			t.Errorf("record %d of the run is %d, not %d", i, v.Bytes()[i*4], w)
		}
	}
	if all.Contiguous("x", 8, 12) || !all.Contiguous("x", 10, 20) {
		t.Error("Contiguous is wrong")
	}
	b.closed.Store(true)
	if err := all.Retain(); err == nil || a.held.Load() != 1 {
		t.Errorf("Retain of a closed part: %v, %d leases of the other", err, a.held.Load())
	}
	if _, err := combine.NewConcat(a, newMemorySource(3, 5)); err == nil || !strings.Contains(err.Error(), "source 1: has the fields x uint8(5,)") {
		t.Errorf("other fields: %v", err)
	}
}

func TestJoinedRagged(t *testing.T) {
	a, b := newWords(20), newWords(30)
	all, err := combine.NewConcat(a, b)
	require.NoError(t, err)
	for _, o := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		ld := openWords(t, all, loader.Options{BatchSize: 7, Sampler: o, Workers: 2})
		for batch, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			values, ends := tensor.As[int32](batch.Field("t")), batch.Offsets("t")
			for i, r := range batch.Indices() {
				_, number := all.Locate(r)
				if got := values[ends[i]:ends[i+1]]; !slices.Equal(got, wordsOf(number)) {
					t.Fatalf("%T: record %d: %v", o, r, got)
				}
			}
		}
	}
	offsets := make([]int64, 7)
	v, err := all.SliceRagged("t", 17, 23, offsets)
	want := slices.Concat(wordsOf(17), wordsOf(18), wordsOf(19), wordsOf(0), wordsOf(1), wordsOf(2))
	if err != nil || !slices.Equal(tensor.As[int32](v), want) || int(offsets[6]) != len(want) || offsets[0] != 0 {
		t.Errorf("run across sources: %v, offsets %v, %v", tensor.As[int32](v), offsets, err)
	}
	b.bad = 2
	if _, err := all.SliceRagged("t", 17, 23, offsets); err == nil {
		t.Error("a failing part is ignored")
	}
	plain := newMemorySource(20, 4)
	plain.specs = a.specs
	if _, err := combine.NewConcat(a, plain); err == nil || !strings.Contains(err.Error(), "source 1 has fields of variable length, but is no loader.RaggedSource") {
		t.Errorf("error %v", err)
	}
}

func TestJoinedErrorHasItsNumber(t *testing.T) {
	a, b := newMemorySource(10, 4), newMemorySource(10, 4)
	b.before = failOn(7)
	all, err := combine.NewConcat(a, b)
	require.NoError(t, err)
	ld, err := loader.New(all, loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}})
	require.NoError(t, err)
	defer ld.Close()
	_, err = run(t.Context(), ld, ignore)
	if err == nil || !strings.Contains(err.Error(), "record 17") {
		t.Errorf("error %v; want record 17", err)
	}
}

func TestWrongOrdersAreRefused(t *testing.T) {
	nine, err := sampler.NewWeighted(make9(), 9)
	require.NoError(t, err)
	for want, o := range map[string]sampler.Sampler{
		"Subset: index 1 is record 10; there are 10 records": sampler.Subset{Indices: []int{1, 10}},
		"Ranges[0] is [5, 5)":                                sampler.Subset{Ranges: [][2]int{{5, 5}}},
		"both Indices and Ranges":                            sampler.Subset{Indices: []int{1}, Ranges: [][2]int{{0, 1}}},
		"From is 0.5 and To is 0.5; they must be shares":     sampler.Split{From: 0.5, To: 0.5},
		"of 10 records is empty":                             sampler.Split{From: 0.5, To: 0.501},
		"9 weights for 10":                                   nine,
		"Ranges[0] is [0, 11)":                               sampler.Subset{Indices: []int{1}, Inner: sampler.Subset{Ranges: [][2]int{{0, 11}}}},
	} {
		if _, err := loader.New(newMemorySource(10, 4), loader.Options{BatchSize: 1, Sampler: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%#v: %v; want %s", o, err, want)
		}
	}
	for _, weights := range [][]float64{nil, {0, 0}, {1, -1}, {math.NaN()}, {math.Inf(1)}} {
		if _, err := sampler.NewWeighted(weights, 9); err == nil {
			t.Errorf("weights %v are taken", weights)
		}
	}
}

func make9() []float64 { return []float64{1, 1, 1, 1, 1, 1, 1, 1, 1} }

// TestBucketsPadLess compares the padding of batches with that of a shuffle.
// Batches of a Bucket pad little, all ranks have a part of the same one, each record comes once, and other ranks go on
// with the same batches.
func TestBucketLoads(t *testing.T) {
	const n = 4003
	w := newWords(n)
	lengths, err := loader.Column(t.Context(), w, "t")
	require.NoError(t, err)
	for i, n := range lengths {
		if int(n) != len(wordsOf(i)) {
			t.Fatalf("record %d has %v rows, not %d", i, n, len(wordsOf(i)))
		}
	}
	padded := func(batches [][]int) (sum float64) {
		for _, batch := range batches {
			longest := 0.0
			for _, r := range batch {
				longest = max(longest, lengths[r])
			}
			for _, r := range batch {
				sum += longest - lengths[r]
			}
		}
		return sum
	}
	o, err := sampler.NewBucket(lengths, sampler.BucketOptions{Batch: 36, Buckets: 20, Multiple: 12})
	require.NoError(t, err)
	// load returns the records of each step on all ranks, without those that fill batches up.
	load := func(ranks int, drop bool, from loader.State) (out [][]int, middle loader.State) {
		for rank := range ranks {
			ld := openWords(t, w, loader.Options{BatchSize: 36 / ranks, Sampler: o, Workers: rank%2 + 1, DropLast: drop,
				World: loader.World{Rank: rank, Size: ranks}})
			if from.Version != 0 {
				require.NoError(t, ld.Seek(from))
			}
			if rank == 0 {
				out = make([][]int, ld.Batches(0))
			}
			for b, err := range ld.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				checkWords(t, b)
				for i, r := range b.Indices() {
					if b.Mask()[i] {
						out[b.Step()] = append(out[b.Step()], r)
					}
				}
				if b.Step() == 50 {
					middle = ld.State()
				}
			}
		}
		return out, middle
	}
	one, middle := load(1, false, loader.State{})
	checkPermutation(t, "records", slices.Concat(one...), upTo(n))
	shuffled := slices.Collect(slices.Chunk(fillAll(t, sampler.Shuffle{}, n, 1, 0), 36))
	if b, s := padded(one), padded(shuffled); b*5 > s {
		t.Errorf("buckets pad %v rows, a shuffle %v", b, s)
	}
	for _, ranks := range []int{2, 3, 12} {
		got, _ := load(ranks, false, loader.State{})
		rest, _ := load(ranks, false, middle)
		for step := range one {
			if !slices.Equal(got[step], one[step]) {
				t.Fatalf("%d ranks, step %d: %v, not %v", ranks, step, got[step], one[step])
			}
			if step > 50 && !slices.Equal(rest[step], one[step]) || step <= 50 && rest[step] != nil {
				t.Fatalf("%d ranks go on at step %d: %v, not %v", ranks, step, rest[step], one[step])
			}
		}
	}
	whole, _ := load(2, true, loader.State{})
	for step, records := range whole {
		if len(records) != 36 {
			t.Errorf("step %d has %d records", step, len(records))
		}
	}
	if len(whole) < len(one)-20 {
		t.Errorf("%d of %d batches are full", len(whole), len(one))
	}
	uneven := loader.World{Size: 2, Last: loader.LastUneven}
	if _, err := loader.New(w, loader.Options{BatchSize: 18, Sampler: o, World: uneven}); err == nil || !strings.Contains(err.Error(), "use LastEqual") {
		t.Errorf("error %v", err)
	}
}

func TestBucketsRefuse(t *testing.T) {
	o, err := sampler.NewBucket([]float64{1, 2}, sampler.BucketOptions{Batch: 1, Buckets: 1})
	require.NoError(t, err)
	if _, err := loader.New(newMemorySource(3, 1), loader.Options{BatchSize: 1, Sampler: o}); err == nil || !strings.Contains(err.Error(), "made for 2 records") {
		t.Errorf("error %v", err)
	}
	if got, err := loader.Column(t.Context(), newMemorySource(3, 1), "x"); err != nil || got[2] != float64(pixel(2, 0)) {
		t.Errorf("column %v: %v", got, err)
	}
	for want, field := range map[string]string{"not one number": "x", "no such field": "none"} {
		if _, err := loader.Column(t.Context(), newWords(3), field); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	if _, err := loader.Lengths(t.Context(), newMemorySource(3, 1), "x"); err == nil {
		t.Error("lengths of a Source without ragged fields")
	}
	if _, err := loader.Lengths(t.Context(), lengthless{newWords(3)}, "t"); err == nil || !strings.Contains(err.Error(), "unreadable word") {
		t.Errorf("error %v", err)
	}
}

func TestRegionsRefuse(t *testing.T) {
	weighted, err := sampler.NewWeighted(slices.Repeat([]float64{1}, 25), 25)
	require.NoError(t, err)
	for _, c := range []struct {
		order sampler.Regions
		want  string
	}{
		{sampler.Regions{}, "Count is 0"},
		{sampler.Regions{Count: 101, Batch: 101}, "Count is 101"},
		{sampler.Regions{Count: 4}, "Batch is 0"},
		{sampler.Regions{Count: 4, Batch: 10}, "evenly among 4 regions; choose a multiple"},
		{sampler.Regions{Count: 4, Batch: 8, Inner: weighted}, "does not visit each record once"},
		{sampler.Regions{Count: 4, Batch: 8, Inner: sampler.Split{To: 0.5}}, "does not visit each record once"},
		{sampler.Regions{Count: 4, Batch: 8, Inner: sampler.Subset{Indices: []int{70}}}, "there are 25 records"},
	} {
		_, err := loader.New(newMemorySource(100, 4), loader.Options{BatchSize: 8, Sampler: c.order})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.order, err, c.want)
		}
	}
}
