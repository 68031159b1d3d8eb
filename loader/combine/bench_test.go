package combine_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// openArray returns a file of n records of some bytes, which is in the page cache.
func openArray(b *testing.B, n, size int) *mmapds.Dataset {
	b.Helper()
	path := filepath.Join(b.TempDir(), "x.npy")
	f, err := os.Create(path)
	require.NoError(b, err)
	header := layout.Header(tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{size}}, int64(n))
	record := make([]byte, size)
	if _, err := f.Write(header); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		record[0] = byte(i)
		if _, err := f.Write(record); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, f.Close())
	ds, err := mmapds.Open(path)
	require.NoError(b, err)
	b.Cleanup(func() { ds.Close() })
	return ds
}

// epochSeconds loads an epoch in shuffled batches, and returns the seconds of wall time and of CPU time.
func epochSeconds(b *testing.B, ld *loader.Loader, epoch int) (wall, processors float64) {
	b.Helper()
	start, used := time.Now(), usage.Process()
	for _, err := range ld.Epoch(b.Context(), epoch) {
		require.NoError(b, err)
	}
	return time.Since(start).Seconds(), (usage.Process() - used).Seconds()
}

// BenchmarkFiltered loads shuffled batches of the records that a filter keeps, and, in turns with that, of all records of
// the same file. The ratios of the rates, and of the records per second of CPU time, are medians over the pairs.
func BenchmarkFiltered(b *testing.B) {
	for _, c := range []struct {
		records, size, batch int
		where                []string
	}{
		{400_000, 784, 256, []string{"sample(0.5)", "not sample(0.01)", "sample(0.1)"}},
		{4000, 150_528, 64, []string{"sample(0.5)", "not sample(0.01)"}},
	} {
		ds := openArray(b, c.records, c.size)
		for _, where := range c.where {
			b.Run(fmt.Sprintf("bytes=%d/%s", c.size, where), func(b *testing.B) { benchmarkFiltered(b, ds, where, c.batch) })
		}
	}
}

func benchmarkFiltered(b *testing.B, ds *mmapds.Dataset, where string, batch int) {
	set, err := expr.Find(b.Context(), ds, where)
	require.NoError(b, err)
	var lds [2]*loader.Loader
	for i, s := range []combine.Select{{Set: set}, {}} {
		v, err := combine.NewSelect(ds, s)
		require.NoError(b, err)
		if lds[i], err = loader.New(v, loader.Options{BatchSize: batch, Sampler: sampler.Shuffle{}}); err != nil {
			b.Fatal(err)
		}
		defer lds[i].Close()
		epochSeconds(b, lds[i], 0)
	}
	var ratios, used, rates []float64
	share := float64(set.Count()) / float64(ds.Len())
	epoch := 0
	for b.Loop() {
		epoch++
		var seconds, processors [2]float64
		for i := range lds {
			k := (i + epoch) % 2 // each is the first one as often
			seconds[k], processors[k] = epochSeconds(b, lds[k], epoch)
		}
		ratios, rates = append(ratios, share*seconds[1]/seconds[0]), append(rates, float64(set.Count())/seconds[0])
		used = append(used, share*processors[1]/processors[0])
	}
	b.ReportMetric(median(ratios), "of-all")
	b.ReportMetric(median(used), "of-all/CPU")
	b.ReportMetric(median(rates), "records/s")
	b.ReportMetric(0, "ns/op")
}

func median(x []float64) float64 {
	slices.SortFunc(x, cmp.Compare[float64])
	return x[len(x)/2]
}

// BenchmarkTranslate finds the records of a shuffled order, one after the other: those of 10^7 that a filter keeps.
func BenchmarkTranslate(b *testing.B) {
	const n = 10_000_000
	ds := openArray(b, n, 1)
	for _, where := range []string{"sample(0.5)", "not sample(0.01)", "not sample(0.0001)", "sample(0.01)"} {
		set, err := expr.Find(b.Context(), ds, where)
		require.NoError(b, err)
		v, err := combine.NewSelect(ds, combine.Select{Set: set})
		require.NoError(b, err)
		order, places, out := sampler.Shuffle{}.Epoch(v.Len(), 1, 0), make([]int, 256), []int(nil)
		b.Run(fmt.Sprintf("%s/%s", combine.KindOfRows(v), where), func(b *testing.B) {
			at := 0
			for b.Loop() {
				if order.Fill(at, places); at+2*len(places) < v.Len() {
					at += len(places)
				} else {
					at = 0
				}
				out = combine.Translate(v, out[:0], places)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(places)), "ns/record")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkJoin matches records by a whole number and by a text, both sides in random orders. Of the left side, as many
// have a match as have not.
func BenchmarkJoin(b *testing.B) {
	for _, kind := range []string{"int64", "text"} {
		r := rand.New(rand.NewPCG(1, 2))
		left, right := joinSide(b, r, kind, 2**joinRecords), joinSide(b, r, kind, *joinRecords)
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				if _, m, err := combine.NewJoin(b.Context(), left, right, combine.Join{On: "k"}); err != nil || len(m.Of) != *joinRecords {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(3**joinRecords)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

var joinRecords = flag.Int("join-records", 1_000_000, "records of the right side of BenchmarkJoin, which has twice as many on the left")

func joinSide(b *testing.B, r *rand.Rand, kind string, n int) loader.Source {
	b.Helper()
	src, err := combine.NewArrays(keyArray(r, "k", kind, r.Perm(n)), combine.Array{Name: fmt.Sprint("x", n), Values: tensor.From(make([]uint8, n))})
	require.NoError(b, err)
	return src
}
