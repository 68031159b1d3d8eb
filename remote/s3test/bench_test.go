package s3test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
)

// setting returns a number of the environment, or what it is without.
func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// BenchmarkLink trains over a shaped link, RTT_MS and LINK_MBS (50 and 200 unless set), from a
// dataset of small and one of large records, and says: what a first, shuffled epoch has of the
// link; the time from opening to the first batch; a second epoch, and one of the local dataset;
// and a loop that gets records one after the other. What a plain download of the same bytes
// with many connections reaches on this machine stands beside it.
func BenchmarkLink(b *testing.B) {
	trip := time.Duration(setting("RTT_MS", 50)) * time.Millisecond
	rate := int64(setting("LINK_MBS", 200)) * 1e6
	for _, c := range []struct {
		name    string
		records int
		shape   []int
	}{{"784B", setting("SMALL", 300_000), []int{28, 28}}, {"150528B", setting("LARGE", 3000), []int{3, 224, 224}}} {
		b.Run(c.name, func(b *testing.B) {
			s := Start(b)
			dir := filepath.Join(s.Root, "ds")
			write(b, dir, c.records, c.shape...)
			local, err := mmapds.Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer local.Close()
			l := NewLink(b, s.Address)
			l.Shape(b, trip, rate)
			for b.Loop() {
				run(b, s.URL(l.Address, "ds"), local, trip, float64(rate))
			}
		})
	}
}

func run(b *testing.B, url string, local *mmapds.Dataset, trip time.Duration, rate float64) {
	cache := filepath.Join(b.TempDir(), "cache")
	opts := loader.Options{BatchSize: 64, Order: loader.Shuffle{}, Seed: 5, Workers: 2}
	began := time.Now()
	d, err := tryURL(b.Context(), url, mirror.Options{CacheDir: cache})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	opened := time.Since(began)
	first, all, _ := pass(b, d, opts, 0)
	st := d.Stats()
	size := float64(local.Files().Bytes())
	fmt.Printf("  %d records, %.0f MB; link %.0f MB/s, %v round trip\n", d.Len(), size/1e6, rate/1e6, trip)
	fmt.Printf("  first epoch      %8v  %.0f MB/s, %.2f of the link (from opening: %.2f); %d requests, %d retries, %d hedges, %d in flight\n",
		all.Round(time.Millisecond), size/all.Seconds()/1e6, size/all.Seconds()/rate, size/(all+opened).Seconds()/rate, st.Requests, st.Retries, st.Hedges, st.InFlight)
	fmt.Printf("  to first batch   %8v  %.1f round trips (%v of it to open)\n", (opened + first).Round(time.Millisecond), float64(opened+first)/float64(trip), opened.Round(time.Millisecond))
	for range 2 { // alternating, so that both see the same machine
		_, second, sum := pass(b, d, opts, 1)
		_, here, want := pass(b, local, opts, 1)
		if sum != want {
			b.Fatal("other bytes than from the local dataset")
		}
		fmt.Printf("  second epoch     %8v  local %v: %.3f of it\n", second.Round(time.Millisecond), here.Round(time.Millisecond), second.Seconds()/here.Seconds())
	}
	loop := plainLoop(b, url, d, 40)
	fmt.Printf("  loop of GETs     %8v  a record: %.0f MB/s; the first epoch is %.0f times as fast\n", loop.Round(time.Microsecond),
		size/float64(d.Len())/loop.Seconds()/1e6, loop.Seconds()*float64(d.Len())/all.Seconds())
	got := download(b, url, local)
	fmt.Printf("  plain download   %8.0f MB/s with 64 connections of 4 MiB requests, nothing done with the bytes\n", got/1e6)
}

// pass runs an epoch, and returns the time to its first batch, to its end, and a sum over one
// byte of each page, so that all are read.
func pass(b *testing.B, src loader.Source, opts loader.Options, epoch int) (first, all time.Duration, sum uint64) {
	ld, err := loader.New(src, opts)
	if err != nil {
		b.Fatal(err)
	}
	defer ld.Close()
	began := time.Now()
	for batch, err := range ld.Epoch(b.Context(), epoch) {
		if err != nil {
			b.Fatal(err)
		}
		if first == 0 {
			first = time.Since(began)
		}
		x := batch.Field("images").Bytes()
		for i := 0; i < len(x); i += 512 {
			sum = sum*31 + uint64(x[i])
		}
	}
	return first, time.Since(began), sum
}

// plainLoop is what a simple program does: a GET for each record, one after the other.
func plainLoop(b *testing.B, url string, d *mirror.Dataset, n int) time.Duration {
	bucket, u, err := cloud.Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer bucket.Close()
	size := d.Specs()[0].RecordBytes()
	buf := make([]byte, size)
	c := remote.NewClient(bucket, remote.Policy{Hedge: -1})
	o := remote.Object{Key: u.Key + "/images-00000.npy"}
	began := time.Now()
	for i := range n {
		if err := c.ReadAt(b.Context(), o, 4096+int64(i*7%100)*int64(size), buf); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began) / time.Duration(n)
}

// download gets all images with 64 connections, and returns bytes a second.
func download(b *testing.B, url string, local *mmapds.Dataset) float64 {
	bucket, u, err := cloud.Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer bucket.Close()
	c := remote.NewClient(bucket, remote.Policy{Hedge: -1})
	type piece struct {
		key    string
		off, n int64
	}
	work := make(chan piece)
	errs := make(chan error, 64)
	for range 64 {
		go func() {
			buf := make([]byte, 4<<20)
			for p := range work {
				if err := c.ReadAt(context.Background(), remote.Object{Key: p.key}, p.off, buf[:p.n]); err != nil {
					errs <- err
					for range work {
					}
					return
				}
			}
			errs <- nil
		}()
	}
	began := time.Now()
	total := int64(0)
	for _, s := range local.Manifest().Shards {
		f := s.Files[0]
		for off := int64(0); off < f.Bytes; off += 4 << 20 {
			n := min(4<<20, f.Bytes-off)
			total += n
			work <- piece{u.Key + "/" + f.Name, off, n}
		}
	}
	close(work)
	for range 64 {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	return float64(total) / time.Since(began).Seconds()
}
