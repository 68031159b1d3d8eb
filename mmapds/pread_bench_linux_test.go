package mmapds_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
)

const coldSize, coldBatch = 150_528, 64

// BenchmarkCold gathers batches of 64 records of 150,528 bytes, none of which is in memory, and by
// turns reads as many by 32 goroutines that do nothing but pread: "of-preads" is the median of its
// speed in units of theirs. "late-ms" is the longest that a goroutine which wants to run each
// millisecond was late meanwhile, "idle-late-ms" the same while nothing is read here.
func BenchmarkCold(b *testing.B) {
	path := bytesDataset(b, coldSize, 384<<20)
	for name, read := range map[string]mmapds.ReadMode{"auto": mmapds.ReadAuto, "mapped": mmapds.ReadMapped, "pread": mmapds.ReadPread, "direct": mmapds.ReadDirect} {
		b.Run(name, func(b *testing.B) {
			var gathers, preads []float64
			late := time.Duration(0)
			for b.Loop() {
				ds := openEvicted(b, path, mmapds.WithRead(read))
				beat := heartbeat()
				g, p := coldPass(b, ds)
				late = max(late, beat())
				if err := ds.Close(); err != nil {
					b.Fatal(err)
				}
				gathers, preads = append(gathers, g...), append(preads, p...)
			}
			slices.Sort(gathers)
			slices.Sort(preads)
			half := len(gathers) / 2
			b.ReportMetric(preads[half]/gathers[half], "of-preads")
			b.ReportMetric(coldBatch*coldSize*1e3/gathers[half], "MB/s")
			b.ReportMetric(late.Seconds()*1e3, "late-ms")
			beat := heartbeat()
			time.Sleep(500 * time.Millisecond)
			b.ReportMetric(beat().Seconds()*1e3, "idle-late-ms")
		})
	}
}

// coldPass reads each record once, and returns the nanoseconds of each batch.
func coldPass(b *testing.B, ds *mmapds.Dataset) (gathers, preads []float64) {
	order := rand.New(rand.NewPCG(1, 2)).Perm(ds.Len())
	dst := make([]byte, coldBatch*coldSize)
	clear(dst)
	for ; len(order) >= 2*coldBatch; order = order[2*coldBatch:] {
		began := time.Now()
		if err := ds.Gather(b.Context(), "x", order[:coldBatch], dst); err != nil {
			b.Fatal(err)
		}
		half := time.Now()
		readAll(b, ds, order[coldBatch:2*coldBatch], dst)
		gathers, preads = append(gathers, float64(half.Sub(began))), append(preads, float64(time.Since(half)))
	}
	return gathers, preads
}

// readAll reads records by 32 goroutines.
func readAll(b *testing.B, ds *mmapds.Dataset, indices []int, dst []byte) {
	var all sync.WaitGroup
	var next atomic.Int64
	column := layout.Of(ds.Files()).Columns[0]
	files := make(map[string]*os.File)
	for _, e := range column.Extents {
		f, err := os.Open(e.Path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
			b.Fatal(err)
		}
		files[e.Path] = f
	}
	for range 32 {
		all.Go(func() {
			for k := next.Add(1) - 1; k < int64(len(indices)); k = next.Add(1) - 1 {
				e, _ := column.Extent(int64(indices[k]))
				if _, err := files[e.Path].ReadAt(dst[k*coldSize:][:coldSize], e.Offset+(int64(indices[k])-e.First)*coldSize); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// heartbeat starts a goroutine that sleeps for a millisecond again and again; the function that
// it returns ends it and says by how much the longest sleep was too long.
func heartbeat() func() time.Duration {
	stop, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		late := time.Duration(0)
		for {
			select {
			case <-stop:
				result <- late
				return
			default:
			}
			began := time.Now()
			time.Sleep(time.Millisecond)
			late = max(late, time.Since(began)-time.Millisecond)
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-result
	}
}
