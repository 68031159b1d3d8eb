package mmapds_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/mmapds"
)

// BenchmarkGather gathers records, chosen at random, of 256 MiB in memory, by turns with a bare loop
// that copies as many from a view and one that copies them back to back. It reports medians of
// the loop's and the copy's speed divided by the gather's.
func BenchmarkGather(b *testing.B) {
	for _, size := range []int{784, 3072, 12_288, 150_528} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ds := openChecked(b, bytesDataset(b, size, 256<<20), mmapds.VerifyOff)
			if err := ds.Warm("x", 0, ds.Len()); err != nil {
				b.Fatal(err)
			}
			v, err := ds.Slice("x", 0, ds.Len())
			if err != nil {
				b.Fatal(err)
			}
			benchmarkGather(b, ds, v.Bytes(), size)
		})
	}
}

// BenchmarkFirstEpoch gathers each record once, in random order and batches of 256 at most, of 128
// MiB that were just opened, all in the page cache: what it takes to map them is in it.
func BenchmarkFirstEpoch(b *testing.B) {
	for _, size := range []int{784, 3072, 12_288, 150_528} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			path := bytesDataset(b, size, 128<<20)
			n := min(256, (8<<20)/size)
			dst := make([]byte, n*size)
			clear(dst)
			records := 0
			for b.Loop() {
				b.StopTimer()
				ds, err := mmapds.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				order := rand.Perm(ds.Len())
				b.StartTimer()
				for ; len(order) >= n; order = order[n:] {
					if err := ds.Gather(b.Context(), "x", order[:n], dst); err != nil {
						b.Fatal(err)
					}
					records += n
				}
				if err := ds.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
		})
	}
}

func benchmarkGather(b *testing.B, ds *mmapds.Dataset, all []byte, size int) {
	n := max(4, (256<<10)/size) // a piece that takes less than a time slice
	indices, ring := make([]int, n), make([]byte, (64<<20)/(n*size)*n*size)
	clear(ring)
	next, at := 1, 0
	timed := func(f func(dst []byte)) float64 {
		for i := range indices {
			next = next * 48271 % 2147483647
			indices[i] = next % (ds.Len() - n)
		}
		dst := ring[at:][:n*size]
		at = (at + n*size) % len(ring)
		began := time.Now()
		f(dst)
		return float64(time.Since(began))
	}
	var times [3][]float64
	for b.Loop() {
		times[0] = append(times[0], timed(func(dst []byte) {
			if err := ds.Gather(b.Context(), "x", indices, dst); err != nil {
				b.Fatal(err)
			}
		}))
		times[1] = append(times[1], timed(func(dst []byte) {
			for k, i := range indices {
				copy(dst[k*size:][:size], all[i*size:])
			}
		}))
		times[2] = append(times[2], timed(func(dst []byte) { copy(dst, all[indices[0]*size:]) }))
	}
	var median [3]float64
	for k, t := range times {
		slices.Sort(t)
		median[k] = t[len(t)/2]
	}
	b.ReportMetric(median[1]/median[0], "of-loop")
	b.ReportMetric(median[2]/median[0], "of-memcpy")
	b.ReportMetric(median[0]/float64(n), "ns/record")
}
