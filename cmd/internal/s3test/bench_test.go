package s3test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
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
// dataset of small and one of large records, and prints: the rate of a plain download of the same
// bytes with many connections on this machine; the time from opening to the first batch; the share
// of the link that a first, shuffled epoch reaches; later epochs, compared with those of the local
// dataset; and a loop that gets records one after the other. Last it prints all of that as a table, for
// bench/publish.
func BenchmarkLink(b *testing.B) {
	trip, rate := shapeOfLinks()
	var all []figures
	for _, c := range []struct {
		name    string
		records int
		shape   []int
	}{{"784B", setting("SMALL", 300_000), []int{28, 28}}, {"150528B", setting("LARGE", 3000), []int{3, 224, 224}}} {
		b.Run(c.name, func(b *testing.B) {
			s := Start(b, "--keep-alive") // as stores do: else each request makes a connection
			dir := filepath.Join(s.Root, "ds")
			write(b, dir, c.records, c.shape...)
			local, err := mmapds.Open(dir)
			require.NoError(b, err)
			defer local.Close()
			links := linksApart(b, s.Address)
			for i := range links {
				links[i] = s.URL(links[i], "ds")
			}
			for b.Loop() {
				f := measure(b, links, local)
				f.trip, f.rate = trip, float64(rate)
				f.print()
				all = append(all, f)
			}
		})
	}
	table(all)
}

// figures has the measurements of one dataset.
type figures struct {
	trip        time.Duration // of the link
	rate        float64       // bytes a second
	records     int
	record      int // bytes
	size        float64
	begun       []time.Duration // from opening to the first batch, each with connections of its own; sorted
	opened      time.Duration
	first       time.Duration // from there to the first batch, of the last one
	epoch       time.Duration // from there to the end of the epoch
	second      again         // later epochs
	get         time.Duration // of one record, one after the other
	plain       float64       // bytes a second of a download
	load        string        // of the machine
	requests    int64
	connections int
}

// openings is how often the way to the first batch is measured.
const openings = 5

// measure takes the plain download first, so that server and proxy have begun to work, as a store
// and a network have.
func measure(b *testing.B, urls []string, local *mmapds.Dataset) figures {
	f := figures{records: local.Len(), record: local.Specs()[0].RecordBytes(), size: float64(local.Files().Bytes()), load: load()}
	f.plain = download(b, urls[0], local)
	for _, url := range urls[1:openings] {
		f.begin(b, url)
	}
	d, ld := f.open(b, urls[openings])
	f.first, f.epoch, _ = pass(b, ld, 0)
	f.begun = append(f.begun, f.opened+f.first)
	slices.Sort(f.begun)
	st := d.Stats()
	f.requests, f.connections = st.Requests, st.InFlight
	f.second = compare(b, ld, start(b, local, trainOptions))
	f.get = plainLoop(b, urls[0], d, 40)
	return f
}

var trainOptions = loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 5, Workers: 2}

// open opens a dataset with an empty cache.
func (f *figures) open(b *testing.B, url string) (*mirror.Dataset, *loader.Loader) {
	cache := filepath.Join(b.TempDir(), "cache")
	began := time.Now()
	d, err := tryURL(b.Context(), url, mirror.Options{CacheDir: cache})
	require.NoError(b, err)
	b.Cleanup(func() { d.Close() })
	f.opened = time.Since(began)
	return d, start(b, d, trainOptions)
}

// begin measures how long a first batch takes, and lets the rest of the epoch be.
func (f *figures) begin(b *testing.B, url string) {
	d, ld := f.open(b, url)
	began := time.Now()
	for _, err := range ld.Epoch(b.Context(), 0) {
		require.NoError(b, err)
		f.begun = append(f.begun, f.opened+time.Since(began))
		break
	}
	ld.Close()
	d.Close()
	time.Sleep(500 * time.Millisecond) // until the link has nothing left of it
}

// load returns how many processes want to run on this machine.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

func (f figures) print() {
	fmt.Printf("  %d records of %d bytes; link %.0f MB/s, %v round trip; load %s\n", f.records, f.record, f.rate/1e6, f.trip, f.load)
	fmt.Printf("  first epoch %v; %d requests, %d in flight; first batch %v after opening, which took %v\n",
		f.epoch.Round(time.Millisecond), f.requests, f.connections, f.first.Round(time.Millisecond), f.opened.Round(time.Millisecond))
}

// table prints a row for each dataset.
func table(all []figures) {
	if len(all) == 0 {
		return
	}
	fmt.Printf("\n| %s | plain download | first epoch | of the link | with opening | to the first batch | round trips | second epoch, of local time (warm) | times a loop of GETs | load |\n|%s\n",
		tableHead, strings.Repeat(" --- |", 10))
	for _, f := range all {
		trips := func(i int) float64 { return float64(f.begun[i]) / float64(f.trip) }
		fmt.Printf("| %d B, %d records; %.0f MB/s, %d ms | %.0f MB/s | %.0f MB/s | %.2f | %.2f | %d ms | %.1f (%.1f to %.1f in %d openings) | %s | %.0f | %s |\n",
			f.record, f.records, f.rate/1e6, f.trip.Milliseconds(), f.plain/1e6, f.size/f.epoch.Seconds()/1e6, f.size/f.epoch.Seconds()/f.rate,
			f.size/(f.opened+f.epoch).Seconds()/f.rate, f.begun[openings/2].Milliseconds(), trips(openings/2), trips(0), trips(openings-1), openings, f.second,
			f.get.Seconds()*float64(f.records)/f.epoch.Seconds(), f.load)
	}
	fmt.Println()
}

// tableHead is the head by which bench/publish finds the table.
const tableHead = "over a link"

// start returns a loader, which ends with the benchmark.
func start(b *testing.B, src loader.Source, opts loader.Options) *loader.Loader {
	ld, err := loader.New(src, opts)
	require.NoError(b, err)
	b.Cleanup(func() { ld.Close() })
	return ld
}

// pass runs an epoch, and returns the time to its first batch, to its end, and a sum over one
// byte of each 512, so that all pages are read.
func pass(b *testing.B, ld *loader.Loader, epoch int) (first, all time.Duration, sum uint64) {
	began := time.Now()
	for batch, err := range ld.Epoch(b.Context(), epoch) {
		require.NoError(b, err)
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

// plainLoop is the loop of a simple program: a GET for each record, one after the other.
func plainLoop(b *testing.B, url string, d *mirror.Dataset, n int) time.Duration {
	bucket, u, err := cloud.Open(b.Context(), url)
	require.NoError(b, err)
	defer bucket.Close()
	size := d.Specs()[0].RecordBytes()
	buf := make([]byte, size)
	c := requests.NewClient(bucket, remote.Policy{})
	o := remote.Object{Key: u.Key + "/images-00000.npy"}
	began := time.Now()
	for i := range n {
		require.NoError(b, c.ReadAt(b.Context(), o, 4096+int64(i*7%100)*int64(size), buf))
	}
	return time.Since(began) / time.Duration(n)
}

// download gets all images with 64 connections, and returns bytes a second.
func download(b *testing.B, url string, local *mmapds.Dataset) float64 {
	bucket, u, err := cloud.Open(b.Context(), url)
	require.NoError(b, err)
	defer bucket.Close()
	c := requests.NewClient(bucket, remote.Policy{})
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
		require.NoError(b, <-errs)
	}
	return float64(total) / time.Since(began).Seconds()
}
