package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

// cold compares shuffled images that are not in the page cache with as many reads of the system, 32
// at a time. It reports how late a goroutine is meanwhile that only wakes up every millisecond, and
// how late it is while this program sleeps, in turn with the others and for about as long; and how
// many page faults had to wait for the disk.
func (b *bench) cold() error {
	d := *b.sets[1]
	d.name = "cold" // a file of its own: pages that somebody maps stay in the cache
	if err := d.write(d.path(b)); err != nil {
		return err
	}
	c := &coldBench{d: &d, dir: d.path(b), beats: make(map[string][]time.Duration), faults: make(map[string]int64)}
	list := []measure.Contender{
		c.contender("nothing: asleep", func() error { time.Sleep(nap); return nil }),
		c.contender("32 preads in flight", c.preads),
		c.contender("32 preads in flight, into batches", c.batches),
		c.contender("penstock", func() error { return c.epoch(0, mmapds.ReadAuto) }),
		c.contender("penstock, 1 worker", func() error { return c.epoch(1, mmapds.ReadAuto) }),
		c.contender("penstock, 2 workers", func() error { return c.epoch(2, mmapds.ReadAuto) }),
		c.contender("penstock, 2 workers, O_DIRECT", func() error { return c.epoch(2, mmapds.ReadDirect) }),
	}
	results, err := measure.Rounds(b.o.rounds, d.n, d.n, list)
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Cold/150528", "record", results)
	rows := [][]string{{"shuffled, 150528-byte records, cold", "records/s", "GB/s",
		"of the bandwidth of the preads, fastest rounds", "clock", "major faults"}}
	late := [][]string{{"a heartbeat is late by more than asleep", "half of the beats", "95 of 100", "99 of 100",
		"at most"}}
	idle := c.beats[results[0].Name]
	late = append(late, append([]string{"asleep it is late by"}, lateness(idle, nil)...))
	for _, r := range results[1:] {
		row := append([]string{r.Name}, rate(r, d.size())...)
		rows = append(rows, append(row, fastest(results[1], r), results[1].Over(r, measure.Wall).String(),
			fmt.Sprint(c.faults[r.Name])))
		late = append(late, append([]string{r.Name}, lateness(c.beats[r.Name], idle)...))
	}
	measure.Table(os.Stdout, late)
	measure.Table(os.Stdout, rows)
	fmt.Printf("in memory when a round began: at most %.0f %% of the bytes\n\n", 100*c.warm)
	return nil
}

type coldBench struct {
	d      *dataset
	dir    string
	warm   float64 // largest part that was in memory before a round
	round  uint64
	beats  map[string][]time.Duration
	faults map[string]int64
}

// nap is about as long as an epoch takes.
const nap = 300 * time.Millisecond

// contender drops the file from the page cache, then measures f.
func (c *coldBench) contender(name string, f func() error) measure.Contender {
	return measure.Contender{Name: name, Do: func(int, int) (s measure.Cost, err error) {
		if err := c.drop(); err != nil {
			return s, err
		}
		before := majorFaults()
		late := beats(func() error {
			s, err = measure.Time(f)
			return err
		})
		c.beats[name] = append(c.beats[name], late...)
		c.faults[name] += majorFaults() - before
		return s, err
	}}
}

func (c *coldBench) file() (*os.File, error) { return os.Open(filepath.Join(c.dir, "x-00000.npy")) }

// majorFaults returns how many pages this process had to wait for, in its own code or in
// system calls.
func majorFaults() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Majflt
}

// drop has the system forget the file's pages, and notes how many it kept.
func (c *coldBench) drop() error {
	f, err := c.file()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var st unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Len: uint64(info.Size())}, &st, 0); err != nil {
		return fmt.Errorf("cachestat, which says whether the cache is cold: %w", err)
	}
	c.warm = max(c.warm, float64(st.Cache)*float64(os.Getpagesize())/float64(info.Size()))
	return nil
}

// shuffled opens the file for reads without readahead, and returns another order of its records each time.
func (c *coldBench) shuffled() (f *os.File, order []int, err error) {
	if f, err = c.file(); err != nil {
		return nil, nil, err
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		f.Close()
		return nil, nil, err
	}
	c.round++
	return f, rand.New(rand.NewPCG(c.round, 1)).Perm(c.d.n), nil
}

// preads reads all records in random order, by 32 goroutines.
func (c *coldBench) preads() error {
	f, order, err := c.shuffled()
	if err != nil {
		return err
	}
	defer f.Close()
	size := c.d.size()
	var next atomic.Int64
	var crew sync.WaitGroup
	var errs [32]error
	for k := range errs {
		crew.Go(func() {
			buf := make([]byte, size)
			for errs[k] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(order) {
					return
				}
				_, errs[k] = f.ReadAt(buf, 4096+int64(order[i]*size))
				runtime.KeepAlive(touch(buf)) // as a training step would, and the epochs do
			}
		})
	}
	crew.Wait()
	return errors.Join(errs[:]...)
}

// epoch opens the dataset and reads it once, shuffled.
func (c *coldBench) epoch(workers int, read mmapds.ReadMode) error {
	ds, err := mmapds.Open(c.dir, mmapds.WithRead(read))
	if err != nil {
		return err
	}
	defer ds.Close()
	c.round++
	ld, err := loader.New(ds, loader.Options{BatchSize: c.d.batch, Sampler: sampler.Shuffle{}, Seed: c.round,
		Workers: workers})
	if err != nil {
		return err
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			return err
		}
		runtime.KeepAlive(touch(b.Field("x").Bytes()))
	}
	return nil
}

// beats returns how late a goroutine woke up each time, while f ran.
func beats(f func() error) (late []time.Duration) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			began := time.Now()
			time.Sleep(time.Millisecond)
			late = append(late, time.Since(began)-time.Millisecond)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	_ = f() // its caller keeps the error
	close(stop)
	<-done
	return late
}

// lateness writes quantiles, less those of control if there is one.
func lateness(late, control []time.Duration) (out []string) {
	for _, q := range []float64{0.5, 0.95, 0.99, 1} {
		d := quantile(late, q)
		if control != nil {
			d -= quantile(control, q)
		}
		out = append(out, fmt.Sprintf("%.2f ms", d.Seconds()*1e3))
	}
	return out
}

func quantile(list []time.Duration, q float64) time.Duration {
	slices.Sort(list)
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

// dropPages has the system forget the pages of a dataset's files.
func dropPages(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		err = unix.Fdatasync(int(f.Fd()))
		if err == nil {
			err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// batches reads all records in random order by 32 goroutines, into a ring of batches that this one hands out in order:
// the least that any loader of batches does. Reads go on across their borders.
func (c *coldBench) batches() error {
	f, order, err := c.shuffled()
	if err != nil {
		return err
	}
	defer f.Close()
	size := c.d.size()
	const ring = 4
	buffers := make([][]byte, ring)
	left := make([]sync.WaitGroup, (c.d.n+c.d.batch-1)/c.d.batch)
	for i := range left {
		left[i].Add(min(c.d.batch, c.d.n-i*c.d.batch))
	}
	free := make(chan int, c.d.n) // places that may be read
	for k := range min(ring*c.d.batch, c.d.n) {
		free <- k
	}
	for k := range buffers {
		buffers[k] = make([]byte, c.d.batch*size)
	}
	var crew sync.WaitGroup
	errs := make([]error, 32)
	for k := range errs {
		crew.Go(func() {
			for i := range free {
				at := i % (ring * c.d.batch)
				buf := buffers[at/c.d.batch][at%c.d.batch*size:][:size]
				if _, err := f.ReadAt(buf, 4096+int64(order[i]*size)); err != nil {
					errs[k] = err
				}
				left[i/c.d.batch].Done()
			}
		})
	}
	for b := range left {
		left[b].Wait()
		n := min(c.d.batch, c.d.n-b*c.d.batch)
		runtime.KeepAlive(touch(buffers[b%ring][:n*size]))
		for k := (b + ring) * c.d.batch; k < min((b+ring+1)*c.d.batch, c.d.n); k++ {
			free <- k
		}
	}
	close(free)
	crew.Wait()
	return errors.Join(errs...)
}
