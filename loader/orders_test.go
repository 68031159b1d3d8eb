package loader_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// fillAll returns all of an epoch, and checks that pieces are the same as the whole.
func fillAll(t testing.TB, o loader.Order, n int, seed uint64, epoch int) []int {
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

// Batches hold what the Order lists, also of orders that know their runs without listing them.
func TestBatchesOfRuns(t *testing.T) {
	for _, n := range []int{99, 100, 103, 640} {
		for _, o := range []loader.Order{loader.Sequential{}, loader.RunShuffle{Run: 4}, loader.RunShuffle{Run: 10}, loader.RunShuffle{Run: 64}} {
			for _, batch := range []int{1, 4, 5, 10, 64} {
				for rank := range 3 {
					ld := open(t, newMemorySource(n, 4), loader.Options{BatchSize: batch, Order: o, Seed: 7, World: loader.World{Rank: rank, Size: 3}})
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
		if err != nil {
			t.Fatal(err)
		}
		checkBatch(t, b)
		for i, r := range b.Indices() {
			if pos := b.Step()*3*batch + rank*b.Len() + i; b.Valid()[i] != (pos < len(order)) || r != order[pos%len(order)] {
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

func TestRunShuffleIsAPermutationOfRuns(t *testing.T) {
	for _, c := range []struct{ n, run int }{{0, 4}, {3, 4}, {4, 4}, {100, 10}, {103, 10}, {99, 100}, {50_007, 7}, {1000, 1}, {1000, 0}} {
		cuts := map[int]bool{}
		for seed := range uint64(5) {
			got := fillAll(t, loader.RunShuffle{Run: c.run}, c.n, seed, 1)
			checkPermutation(t, fmt.Sprint(c), got, upTo(c.n))
			for i := 0; c.run > 1 && i < c.n; i += c.run {
				run := got[i:min(c.n, i+c.run)]
				for k, r := range run {
					if r != run[0]+k {
						t.Fatalf("%+v: position %d: %v is no run", c, i, run)
					}
				}
			}
			if tail := c.n % max(1, c.run); tail > 0 && c.run > 1 {
				cuts[got[c.n-tail]] = true
			}
		}
		if c.run == 10 && c.n == 103 && len(cuts) < 3 {
			t.Errorf("%+v: the tail is at %v in five epochs", c, cuts)
		}
	}
}

func TestRunShuffleKeepsBatchesViews(t *testing.T) {
	ld := open(t, newMemorySource(1000, 4), loader.Options{BatchSize: 25, Workers: 2, Order: loader.RunShuffle{Run: 50}, Seed: 3})
	got := visit(t, ld, 0)
	if st := ld.Stats(); st.CopiedBytes != 0 || slices.IsSorted(got) {
		t.Errorf("%d bytes copied; sorted: %v", st.CopiedBytes, slices.IsSorted(got))
	}
}

func TestRandomness(t *testing.T) {
	const n, batch = 100_000, 64
	last := 1.1
	for _, c := range []struct {
		order  loader.Order
		lo, hi float64
	}{
		{loader.Shuffle{}, 0.98, 1},
		{loader.RunShuffle{Run: 4}, 0.3, 0.45},
		{loader.RunShuffle{Run: 16}, 0.05, 0.12},
		{loader.RunShuffle{Run: 64}, 0, 0.02},
		{loader.Sequential{}, 0, 0.02},
	} {
		got := loader.Randomness(c.order, n, batch, 1)
		if got < c.lo || got > c.hi || got > last+0.01 {
			t.Errorf("%#v: %.3f; want %v to %v, not much more than before", c.order, got, c.lo, c.hi)
		}
		last = got
	}
	if got := loader.Randomness(loader.Shuffle{}, 10, 1, 1); got != 0 {
		t.Errorf("batches of one: %v", got)
	}
}

func TestSubset(t *testing.T) {
	indices := []int{7, 3, 3, 99, 50}
	if got := fillAll(t, loader.Subset{Indices: indices}, 100, 1, 0); !slices.Equal(got, indices) {
		t.Errorf("indices: %v", got)
	}
	shuffled := fillAll(t, loader.Subset{Indices: indices, Inner: loader.Shuffle{}}, 100, 1, 0)
	checkPermutation(t, "shuffled", shuffled, indices)
	ranges := loader.Subset{Ranges: [][2]int{{90, 95}, {0, 3}, {40, 41}}}
	want := []int{90, 91, 92, 93, 94, 0, 1, 2, 40}
	if got := fillAll(t, ranges, 100, 1, 0); !slices.Equal(got, want) {
		t.Errorf("ranges: %v", got)
	}
	ranges.Inner = loader.Shuffle{}
	checkPermutation(t, "ranges shuffled", fillAll(t, ranges, 100, 1, 5), want)
}

// TestRepeats asks orders whether a record may come more than once.
func TestRepeats(t *testing.T) {
	weighted, err := loader.NewWeighted([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		order interface{ Repeats() bool }
		want  bool
	}{
		{weighted, true},
		{loader.Subset{}, false},
		{loader.Subset{Indices: []int{7, 3, 1}}, false},
		{loader.Subset{Indices: []int{7, 3, 7}}, true},
		{loader.Subset{Indices: []int{7, 3}, Inner: weighted}, true},
		{loader.Subset{Ranges: [][2]int{{5, 9}, {0, 5}}, Inner: loader.Shuffle{}}, false},
		{loader.Subset{Ranges: [][2]int{{5, 9}, {0, 6}}}, true},
		{loader.Subset{Ranges: [][2]int{{0, 10}}, Inner: weighted}, true},
		{loader.Split{To: 1, Inner: loader.Shuffle{}}, false},
		{loader.Split{To: 1, Inner: weighted}, true},
		{loader.Split{To: 1, Inner: loader.Subset{Indices: []int{7, 7}}}, true},
	} {
		if got := c.order.Repeats(); got != c.want {
			t.Errorf("%#v: %v", c.order, got)
		}
	}
}

func TestSplitDivides(t *testing.T) {
	for _, n := range []int{10, 101, 4097, 20_000} {
		var all []int
		for _, part := range [][2]float64{{0, 0.75}, {0.75, 0.9}, {0.9, 1}} {
			o := loader.Split{Seed: 4, From: part[0], To: part[1], Inner: loader.Shuffle{}}
			got := fillAll(t, o, n, 9, 2)
			if share := float64(len(got)) / float64(n); math.Abs(share-(part[1]-part[0])) > 1/float64(n) {
				t.Errorf("n %d: %v has %d records", n, part, len(got))
			}
			checkPermutation(t, "another epoch", fillAll(t, o, n, 10, 3), got)
			all = append(all, got...)
		}
		checkPermutation(t, fmt.Sprint("all parts of ", n), all, upTo(n))
	}
}

func TestWeightedFollowsWeights(t *testing.T) {
	weights := []float64{1, 0, 5, 0.5, 3.5, 0}
	o, err := loader.NewWeighted(weights, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, len(weights))
	for _, r := range fillAll(t, o, len(weights), 3, 0) {
		counts[r]++
	}
	for i, w := range weights {
		want := w / 10 * 100_000
		if math.Abs(float64(counts[i])-want) > 5*math.Sqrt(want) {
			t.Errorf("record %d of weight %v: drawn %d times, not %.0f", i, w, counts[i], want)
		}
	}
	if slices.Equal(fillAll(t, o, 6, 3, 1), fillAll(t, o, 6, 3, 0)) {
		t.Error("two epochs are the same")
	}
}

func TestMixKeepsShares(t *testing.T) {
	a, b, c := newMemorySource(10, 4), newMemorySource(5000, 4), newMemorySource(300, 4)
	all, err := loader.Join(a, b, c)
	if err != nil {
		t.Fatal(err)
	}
	o, err := loader.NewMix(all, []float64{1, 2, 1}, 3*4096)
	if err != nil {
		t.Fatal(err)
	}
	got := fillAll(t, o, all.Len(), 5, 0)
	for block := range 3 {
		var counts [3]int
		for _, r := range got[block*4096 : (block+1)*4096] {
			part, _ := all.Part(r)
			counts[part]++
		}
		if counts != [3]int{1024, 2048, 1024} {
			t.Errorf("block %d: %v", block, counts)
		}
	}
	// Each part comes in whole passes: in 3072 draws of 10 records, each 307 or 308 times.
	times := map[int]int{}
	for _, r := range got {
		times[r]++
	}
	for r := range 10 {
		if times[r] != 307 && times[r] != 308 {
			t.Errorf("record %d of the first part comes %d times", r, times[r])
		}
	}
	for r := 10; r < 5010; r++ {
		if times[r] != 1 && times[r] != 2 {
			t.Errorf("record %d of the second part comes %d times", r, times[r])
		}
	}
}

func TestMixLoads(t *testing.T) {
	a, b := newMemorySource(100, 4), newMemorySource(50, 4)
	all, err := loader.Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	o, err := loader.NewMix(all, []float64{1, 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []loader.Order{o, loader.Sequential{}} {
		ld, err := loader.New(all, loader.Options{BatchSize: 30, Order: order, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for batch, err := range ld.Epoch(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			x := batch.Field("x")
			for i, r := range batch.Indices() {
				_, number := all.Part(r)
				if got := x.Bytes()[i*4]; got != pixel(number, 0) {
					t.Fatalf("record %d: byte %d", r, got)
				}
			}
		}
		if err := ld.Close(); err != nil {
			t.Error(err)
		}
	}
	if held := a.held.Load() + b.held.Load(); held != 0 {
		t.Errorf("%d leases left", held)
	}
}

func TestJoinedAcrossSources(t *testing.T) {
	a, b := newMemorySource(10, 4), newMemorySource(10, 4)
	all, err := loader.Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Retain(); err != nil {
		t.Fatal(err)
	}
	defer all.Release()
	v, err := all.Run("x", 8, 12)
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := loader.Join(a, newMemorySource(3, 5)); err == nil || !strings.Contains(err.Error(), "source 1: has the fields x uint8(5,)") {
		t.Errorf("other fields: %v", err)
	}
}

func TestJoinedRagged(t *testing.T) {
	a, b := newWords(20), newWords(30)
	all, err := loader.Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []loader.Order{loader.Sequential{}, loader.Shuffle{}} {
		ld := openWords(t, all, loader.Options{BatchSize: 7, Order: o, Workers: 2})
		for batch, err := range ld.Epoch(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			values, ends := tensor.As[int32](batch.Field("t")), batch.Offsets("t")
			for i, r := range batch.Indices() {
				_, number := all.Part(r)
				if got := values[ends[i]:ends[i+1]]; !slices.Equal(got, wordsOf(number)) {
					t.Fatalf("%T: record %d: %v", o, r, got)
				}
			}
		}
	}
	offsets := make([]int64, 7)
	v, err := all.RunRagged("t", 17, 23, offsets)
	want := slices.Concat(wordsOf(17), wordsOf(18), wordsOf(19), wordsOf(0), wordsOf(1), wordsOf(2))
	if err != nil || !slices.Equal(tensor.As[int32](v), want) || int(offsets[6]) != len(want) || offsets[0] != 0 {
		t.Errorf("run across sources: %v, offsets %v, %v", tensor.As[int32](v), offsets, err)
	}
	b.bad = 2
	if _, err := all.RunRagged("t", 17, 23, offsets); err == nil {
		t.Error("a failing part is ignored")
	}
	plain := newMemorySource(20, 4)
	plain.specs = a.specs
	if _, err := loader.Join(a, plain); err == nil || !strings.Contains(err.Error(), "source 1 has fields of variable length, but no RunRagged") {
		t.Errorf("error %v", err)
	}
}

func TestJoinedErrorHasItsNumber(t *testing.T) {
	a, b := newMemorySource(10, 4), newMemorySource(10, 4)
	b.before = failOn(7)
	all, err := loader.Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	ld, err := loader.New(all, loader.Options{BatchSize: 4, Order: loader.Shuffle{}})
	if err != nil {
		t.Fatal(err)
	}
	defer ld.Close()
	_, err = run(t.Context(), ld, ignore)
	if err == nil || !strings.Contains(err.Error(), "record 17") {
		t.Errorf("error %v; want record 17", err)
	}
}

func TestWrongOrdersAreRefused(t *testing.T) {
	nine, err := loader.NewWeighted(make9(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]loader.Order{
		"Indices[1] is record 10": loader.Subset{Indices: []int{1, 10}},
		"Ranges[0] is [5, 5)":     loader.Subset{Ranges: [][2]int{{5, 5}}},
		"both Indices and Ranges": loader.Subset{Indices: []int{1}, Ranges: [][2]int{{0, 1}}},
		"[0.5, 0.5) is no part":   loader.Split{From: 0.5, To: 0.5},
		"of 10 records is empty":  loader.Split{From: 0.5, To: 0.501},
		"9 weights for 10":        nine,
		"Ranges[0] is [0, 11)":    loader.Subset{Indices: []int{1}, Inner: loader.Subset{Ranges: [][2]int{{0, 11}}}},
	} {
		if _, err := loader.New(newMemorySource(10, 4), loader.Options{BatchSize: 1, Order: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%#v: %v; want %s", o, err, want)
		}
	}
	for _, weights := range [][]float64{nil, {0, 0}, {1, -1}, {math.NaN()}, {math.Inf(1)}} {
		if _, err := loader.NewWeighted(weights, 0); err == nil {
			t.Errorf("weights %v are taken", weights)
		}
	}
}

func make9() []float64 { return []float64{1, 1, 1, 1, 1, 1, 1, 1, 1} }

// permuted returns the order of a single bucket: the permutation that parts of a Mix and
// buckets have.
func permuted(t testing.TB, n int, seed uint64, epoch int) []int {
	t.Helper()
	o, err := loader.NewBuckets(make([]int, n), n, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]int, n)
	o.Epoch(n, seed, epoch).Fill(0, p)
	return p
}

func TestPermutationOfPartsIsUniform(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8, 13} {
		positions := make([]int, n*n)
		pairs := make([]int, n*(n-1))
		for seed := range 6000 {
			p := permuted(t, n, uint64(seed), seed%3)
			for i, r := range p {
				positions[i*n+r]++
			}
			pairs[pair(p[0], p[1], n)]++
		}
		checkUniform(t, fmt.Sprintf("n %d: record at position", n), positions)
		checkUniform(t, fmt.Sprintf("n %d: first two", n), pairs)
	}
}

// TestOrdersNeverChange pins what a State relies on.
func TestOrdersNeverChange(t *testing.T) {
	weighted, err := loader.NewWeighted([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 100)
	if err != nil {
		t.Fatal(err)
	}
	both, err := loader.Join(newMemorySource(7, 1), newMemorySource(3, 1))
	if err != nil {
		t.Fatal(err)
	}
	mix, err := loader.NewMix(both, []float64{1, 2}, 100)
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := loader.NewBuckets([]int{5, 3, 8, 1, 9, 2, 7, 7, 6, 0}, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    loader.Order
		want []int
	}{
		{loader.RunShuffle{Run: 3}, []int{4, 5, 6, 7, 8, 0}},
		{weighted, []int{8, 7, 7, 6, 9, 2}},
		{mix, []int{0, 7, 5, 9, 1, 9}},
		{buckets, []int{0, 2, 6, 9, 3, 1}},
		{loader.Split{Seed: 1, From: 0.2, To: 0.9, Inner: loader.Shuffle{}}, []int{3, 6, 8, 0, 4, 7}},
	} {
		got := make([]int, 6)
		c.o.Epoch(10, 42, 1).Fill(1, got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%T: %#v", c.o, got)
		}
	}
}

// TestLongOrdersNeverChange pins digests of epochs whose positions are computed many at a time.
func TestLongOrdersNeverChange(t *testing.T) {
	both, err := loader.Join(newMemorySource(5000, 1), newMemorySource(70_000, 1), newMemorySource(3, 1))
	if err != nil {
		t.Fatal(err)
	}
	mix, err := loader.NewMix(both, []float64{1, 2, 0.1}, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	lengths := make([]int, 20_011)
	for i := range lengths {
		lengths[i] = i * i % 97
	}
	buckets, err := loader.NewBuckets(lengths, 24, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    loader.Order
		n    int
		want uint64
	}{
		{mix, both.Len(), 0x80c84f0cc66447dc},
		{buckets, len(lengths), 0xe19546617f57c65f},
		{loader.Shuffle{}, 50_021, 0x16a31d966e8880a6},
		{loader.RunShuffle{Run: 3}, 50_021, 0x75482764e718f308},
		{loader.Split{From: 0.1, To: 0.9, Inner: loader.Shuffle{}}, 50_021, 0x461761be4b65ce45},
		{loader.Split{From: 0.1, To: 0.9}, 4001, 0xc94786808f2138e3},
	} {
		h := fnv.New64a()
		for _, r := range fillAll(t, c.o, c.n, 42, 1) {
			fmt.Fprintln(h, r)
		}
		if got := h.Sum64(); got != c.want {
			t.Errorf("%T: %#x", c.o, got)
		}
	}
}
