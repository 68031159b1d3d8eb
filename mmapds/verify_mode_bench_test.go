package mmapds_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// BenchmarkChecks gathers 64 records, chosen at random, of 64 MiB in memory: checked by turns with
// unchecked, and reports the median of what checking adds, in units of the gather.
func BenchmarkChecks(b *testing.B) {
	for _, size := range []int{784, 150_528} {
		path := bytesDataset(b, size, 64<<20)
		for _, checks := range []check{{mode: mmapds.VerifyOff}, {mode: mmapds.VerifyFirstTouch}, {fraction: 0.01}, {mode: mmapds.VerifyAlways}} {
			b.Run(fmt.Sprintf("%d/%v", size, checks), func(b *testing.B) {
				plain, checked := openChecked(b, path, mmapds.VerifyOff), openCheck(b, path, checks)
				for _, ds := range []*mmapds.Dataset{plain, checked} {
					require.NoError(b, ds.Warm("x", 0, ds.Len()))
				}
				compareGathers(b, plain, checked, size)
			})
		}
	}
}

func compareGathers(b *testing.B, plain, other *mmapds.Dataset, size int) {
	dst, indices := make([]byte, 64*size), make([]int, 64)
	next := 1
	timed := func(ds *mmapds.Dataset) time.Duration {
		for i := range indices {
			next = next * 7919 % 1_000_003
			indices[i] = next % ds.Len()
		}
		began := time.Now()
		require.NoError(b, ds.Gather(b.Context(), "x", indices, dst))
		return time.Since(began)
	}
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, float64(timed(other))/float64(timed(plain)))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-unchecked")
}

// bytesDataset writes records of size bytes.
func bytesDataset(b testing.TB, size, total int) string {
	b.Helper()
	s := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, size)}}
	r := store.NewRecord(s)
	return write(b, s, flat.Options{}, total/size, func(i int) *store.Record {
		for k := 0; k < size; k += 64 {
			r.Values[0][k] = byte(i + k/64)
		}
		return r
	})
}
