package feed

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

// Each option of a client is that of the loader.
func TestLoaderOptions(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		o    Options
		want loader.Options
	}{
		{Options{BatchSize: 3}, loader.Options{BatchSize: 3, Prefetch: 4}},
		{
			Options{BatchSize: 3, DropLast: true, Rank: 2, WorldSize: 5, Seed: 9, Slots: 7, NumWorkers: 6, InOrder: &no, Timeout: 1.5, OnError: "blank"},
			loader.Options{BatchSize: 3, DropLast: true, World: loader.World{Rank: 2, Size: 5}, Seed: 9, Prefetch: 7, Workers: 6, Unordered: true, Timeout: 1500 * time.Millisecond, OnError: loader.Blank},
		},
		{Options{BatchSize: 1, InOrder: &yes, OnError: "backfill"}, loader.Options{BatchSize: 1, Prefetch: 4, OnError: loader.Backfill}},
		{Options{BatchSize: 1, OnError: "fail"}, loader.Options{BatchSize: 1, Prefetch: 4}},
	} {
		if got := c.o.loader(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v, want %+v", c.o, got, c.want)
		}
	}
}

// Small batches have more slots, if the client does not say how many.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		slots int
		batch int64
		want  int
	}{{0, 0, 16}, {0, 1, 16}, {0, 200 << 10, 10}, {0, 512 << 10, 4}, {0, mostBatch, 4}, {7, 1, 7}} {
		o := Options{Slots: c.slots}
		if got := o.slots(c.batch); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// numbersFile returns a file of 16 bytes that are not asked for, and numbers.
func numbersFile(t *testing.T, ints []int64, floats []float64) arrays {
	t.Helper()
	b := make([]byte, 16)
	for _, x := range ints {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	for _, x := range floats {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	path := filepath.Join(t.TempDir(), "numbers")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return arrays{f}
}

// orderOf returns an epoch of a sampler.
func orderOf(s sampler.Sampler, n int) []int {
	seq := s.Epoch(n, 5, 2)
	out := make([]int, seq.Len())
	seq.Fill(0, out)
	return out
}

// Each sampler of a client is that of package sampler, with all its parameters.
func TestSamplers(t *testing.T) {
	ds, err := mmapds.Open(makeDataset(t, true))
	require.NoError(t, err)
	defer ds.Close()
	lengths, err := loader.Lengths(t.Context(), ds, "tokens")
	require.NoError(t, err)
	ints, weights := []int64{7, 3, 40, 3, 12, 9, 0, 49}, make([]float64, records)
	for i := range weights {
		weights[i] = float64(i % 7)
	}
	indices := []int{7, 3, 40, 3, 12, 9, 0, 49}
	file := numbersFile(t, ints, weights)
	samples := 20
	must := func(s sampler.Sampler, err error) sampler.Sampler {
		require.NoError(t, err)
		return s
	}
	kept := []int{1, 5, 8, 9, 20, 21, 22, 30, 41, 44, 48}
	lengthsOf := func(all []int, chosen []int) (some []int) {
		for _, r := range chosen {
			some = append(some, all[r])
		}
		return some
	}
	keptLengths := lengthsOf(lengths, kept)
	of := func(values []float64, buckets int) sampler.Sampler {
		return must(sampler.NewBucket(values, sampler.BucketOptions{Batch: 8, Buckets: buckets}))
	}
	bucket := func(lengths []int, buckets int) sampler.Sampler {
		values := make([]float64, len(lengths))
		for i, n := range lengths {
			values[i] = float64(n)
		}
		return of(values, buckets)
	}
	var keptWeights []float64
	for _, r := range kept {
		keptWeights = append(keptWeights, weights[r])
	}
	shuffle := &samplerOption{Kind: "shuffle"}
	for _, c := range []struct {
		k    *samplerOption
		kept []int
		want sampler.Sampler
	}{
		{&samplerOption{Kind: "sequential"}, nil, sampler.Sequential{}},
		{shuffle, nil, sampler.Shuffle{}},
		{&samplerOption{Kind: "block", Size: 5}, nil, sampler.Block{Size: 5}},
		{&samplerOption{Kind: "weighted", Weights: array{16 + 8*8, records}}, nil, must(sampler.NewWeighted(weights, records))},
		{&samplerOption{Kind: "weighted", Weights: array{16 + 8*8, records}, NumSamples: &samples}, nil, must(sampler.NewWeighted(weights, 20))},
		{&samplerOption{Kind: "bucket", Buckets: 3}, nil, bucket(lengths, 3)},
		{&samplerOption{Kind: "bucket", Field: "tokens", Buckets: 2}, kept, sampler.Subset{Indices: kept, Inner: bucket(keptLengths, 2)}},
		{&samplerOption{Kind: "bucket", Buckets: 3, Field: "no", Values: &array{16 + 8*8, records}}, nil, of(weights, 3)},
		{&samplerOption{Kind: "bucket", Buckets: 3, Values: &array{16 + 8*8, records}}, kept, sampler.Subset{Indices: kept, Inner: of(keptWeights, 3)}},
		{&samplerOption{Kind: "subset", Indices: &array{16, 8}, Inner: &samplerOption{Kind: "bucket", Buckets: 2}}, nil, sampler.Subset{Indices: indices, Inner: bucket(lengthsOf(lengths, indices), 2)}},
		{&samplerOption{Kind: "subset", Ranges: [][2]int{{1, 4}}, Inner: &samplerOption{Kind: "bucket", Buckets: 1}}, kept, sampler.Subset{Indices: kept[1:4], Inner: bucket(keptLengths[1:4], 1)}},
		{&samplerOption{Kind: "regions", Count: 3, Inner: shuffle}, nil, sampler.Regions{Count: 3, Batch: 8, Inner: sampler.Shuffle{}}},
		{&samplerOption{Kind: "subset", Indices: &array{16, 8}}, nil, sampler.Subset{Indices: indices}},
		{&samplerOption{Kind: "subset", Indices: &array{24, 3}, Inner: shuffle}, nil, sampler.Subset{Indices: indices[1:4], Inner: sampler.Shuffle{}}},
		{&samplerOption{Kind: "subset", Ranges: [][2]int{{30, 40}, {2, 5}}, Inner: shuffle}, nil, sampler.Subset{Ranges: [][2]int{{30, 40}, {2, 5}}, Inner: sampler.Shuffle{}}},
		{&samplerOption{Kind: "split", Seed: 3, Start: 0.2, Stop: 0.7, Inner: shuffle}, nil, sampler.Split{Seed: 3, From: 0.2, To: 0.7, Inner: sampler.Shuffle{}}},
		{shuffle, kept, sampler.Subset{Indices: kept, Inner: sampler.Shuffle{}}},
	} {
		got, err := sampled{src: ds, global: 8, kept: c.kept, arrays: file}.order(t.Context(), c.k)
		if err != nil {
			t.Errorf("%+v: %v", c.k, err)
			continue
		}
		if got, want := orderOf(got, records), orderOf(c.want, records); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", c.k, got, want)
		}
	}
	for _, where := range []array{{16, 60}, {0, 61}, {-8, 1}, {8, -1}, {1 << 40, 1}, {8, 1 << 60}} {
		if _, err := file.ints(where); err == nil {
			t.Errorf("%+v: no error for numbers that are not in the file", where)
		}
	}
}

// Each option of pack is that of package combine.
func TestPack(t *testing.T) {
	ds, err := mmapds.Open(makeDataset(t, true))
	require.NoError(t, err)
	defer ds.Close()
	shuffle := &samplerOption{Kind: "shuffle"}
	for _, c := range []struct {
		p    pack
		want combine.Pack
	}{
		{pack{Length: 96}, combine.Pack{Length: 96}},
		{pack{Length: 96, Overflow: "fail", Sampler: shuffle, Seed: 4}, combine.Pack{Length: 96, Sampler: sampler.Shuffle{}, Seed: 4}},
		{pack{Length: 96, Sampler: shuffle, Seed: 4, Epoch: 6, MaxOpenRows: 1}, combine.Pack{Length: 96, Sampler: sampler.Shuffle{}, Seed: 4, Epoch: 6, MaxOpenRows: 1}},
		{pack{Length: 40, Overflow: "truncate", Fields: []string{"tokens"}, Pad: map[string]float64{"tokens": -1}}, combine.Pack{Length: 40, Overflow: combine.OverflowTruncate, Fields: []string{"tokens"}, Pad: map[string]float64{"tokens": -1}}},
		{pack{Length: 40, Overflow: "split"}, combine.Pack{Length: 40, Overflow: combine.OverflowSplit}},
	} {
		got, fields, err := c.p.of(t.Context(), sampled{src: ds}, false)
		require.NoError(t, err)
		want, err := combine.NewPacked(t.Context(), ds, c.want)
		require.NoError(t, err)
		if got.Len() != want.Len() || len(fields) != len(want.Specs()) {
			t.Fatalf("%+v: %d rows, want %d", c.p, got.Len(), want.Len())
		}
		for row := range want.Len() {
			if !slices.Equal(got.Pieces(row), want.Pieces(row)) {
				t.Fatalf("%+v: row %d is %v, want %v", c.p, row, got.Pieces(row), want.Pieces(row))
			}
		}
	}
}
